"""Examples of a training: a row per query and positive, with negatives, as the trainer's losses take them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from curate.commands.train.triples import TrainTriples
from curate.core.errors import DataError

Row = dict[str, Any]


def numbers(triples: TrainTriples, queries: Sequence[int], negatives: int) -> list[tuple[int, list[int]]]:
    """Return (query, [positive, negatives...]) per query and positive.

    Several positives of one query take turns in its list of negatives, so that more of it is used.
    """
    found = []
    for query in queries:
        wrong = list(triples.negatives[query])
        for place, positive in enumerate(triples.positives[query]):
            start = place * negatives % len(wrong) if wrong else 0
            found.append((query, [positive, *(wrong[start:] + wrong[:start])[:negatives]]))
    return found


def spared(triples: TrainTriples) -> dict[int, list[int]]:
    """Return, per positive, the documents that are relevant to a query of it: none of them is its negative."""
    found: dict[int, set[int]] = {}
    for positives in triples.positives:
        for positive in positives:
            found.setdefault(positive, set()).update(positives)
    return {each: sorted(others - {each}) for each, others in found.items() if len(others) > 1}


def kept_rows(triples: TrainTriples, queries: Sequence[int], negatives: int, none: int) -> list[Row]:
    """Return rows of a query and the numbers of its documents, whose vectors are kept."""
    return [
        {"anchor": triples.queries[query], "label": _filled(documents, negatives + 1, none)}
        for query, documents in numbers(triples, queries, negatives)
    ]


def text_rows(triples: TrainTriples, queries: Sequence[int], negatives: int, none: int) -> list[Row]:
    """Return rows of a query and the texts of its documents; a row with too few negatives repeats its positive.

    What only fills up has the number `none` in `label`, and counts for nothing.
    """
    return [
        _texts(triples, query, documents, negatives) | {"label": _filled(documents, negatives + 1, none)}
        for query, documents in numbers(triples, queries, negatives)
    ]


def graded_rows(triples: TrainTriples, queries: Sequence[int], negatives: int, none: int) -> list[Row]:
    """Return a row per query with its documents, best first, spread over their scores where they are too many.

    `label` begins with the query's number.
    """
    rows = []
    for query in queries:
        known = [*triples.positives[query], *triples.negatives[query]]
        known.sort(key=lambda each, query=query: -triples.grades[query, each])  # type: ignore[misc]
        size = min(negatives + 1, len(known))
        chosen = [known[at * (len(known) - 1) // max(size - 1, 1)] for at in range(size)]
        label = [query, *_filled(chosen, negatives + 1, none)]
        rows.append(_texts(triples, query, chosen, negatives) | {"label": label})
    return rows


def sources(triples: TrainTriples, queries: Sequence[int]) -> list[str]:
    """Return the source of every pair, in the order of rows; DataError where batches of one source make no sense."""
    found = [triples.sources[query, documents[0]] for query, documents in numbers(triples, queries, 0)]
    counts = Counter(found)
    remedy = "give a column `source`, or take recipe contrastive"
    if bare := counts[""]:
        raise DataError(f"{triples.place}: {bare:,} pairs have no source, expected one per pair; {remedy}")
    if len(counts) < 2:
        raise DataError(
            f"{triples.place}: all pairs are of source {found[0]!r}, expected two sources or more; {remedy}"
        )
    if single := [name for name, count in counts.items() if count < 2]:
        raise DataError(
            f"{triples.place}: source {single[0]!r} has a single pair to train on, expected two or more, which are "
            "negatives of each other; drop it, or give it the name of a source that is alike"
        )
    return found


def own_rows(triples: TrainTriples, queries: Sequence[int]) -> list[Row]:
    """Return every text of the training queries once, with its number among queries and documents."""
    used = sorted({each for query in queries for each in (*triples.positives[query], *triples.negatives[query])})
    asked = [{"anchor": triples.queries[query], "label": len(triples.documents) + query} for query in queries]
    return [*asked, *({"anchor": triples.documents[each], "label": each} for each in used)]


def _texts(triples: TrainTriples, query: int, documents: Sequence[int], negatives: int) -> Row:
    row: Row = {"anchor": triples.queries[query], "positive": triples.documents[documents[0]]}
    filled = _filled(documents, negatives + 1, documents[0])[1:]
    return row | {f"negative_{at}": triples.documents[number] for at, number in enumerate(filled, start=1)}


def _filled(documents: Sequence[int], size: int, none: int) -> list[int]:
    return [*documents, *[none] * (size - len(documents))]
