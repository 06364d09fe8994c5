"""Examples of a training: a row per query and positive, with negatives, as the trainer's losses take them."""

from collections.abc import Sequence
from typing import Any

from curate.evaluation.training.triples import TrainTriples

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
        for each in positives:
            found.setdefault(each, set()).update(positives)
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
    rows = []
    for query, documents in numbers(triples, queries, negatives):
        row: Row = {"anchor": triples.queries[query], "positive": triples.documents[documents[0]]}
        for place, number in enumerate(_filled(documents, negatives + 1, documents[0])[1:], start=1):
            row[f"negative_{place}"] = triples.documents[number]
        rows.append(row | {"label": _filled(documents, negatives + 1, none)})
    return rows


def own_rows(triples: TrainTriples, queries: Sequence[int]) -> list[Row]:
    """Return every text of the training queries once, with its number among queries and documents."""
    used = sorted({each for query in queries for each in (*triples.positives[query], *triples.negatives[query])})
    asked = [{"anchor": triples.queries[query], "label": len(triples.documents) + query} for query in queries]
    return [*asked, *({"anchor": triples.documents[each], "label": each} for each in used)]


def _filled(documents: Sequence[int], size: int, none: int) -> list[int]:
    return [*documents, *[none] * (size - len(documents))]
