"""Scores of documents in a file of triples: read from a row, and refused where they cannot be soft targets."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curate.commands.train import DevSplit
from curate.core.errors import DataError
from curate.core.sampling import shuffled
from curate.system.files import sha256
from curate.tables.readers import Problem
from curate.tables.readers.encoding import ending
from curate.tables.readers.file import ENDINGS, File, format_of

FEWEST = 3
"""Different scores; two of them say no more than positive and negative do."""


def grades_in_row(place: str, row: Mapping[str, Any], column: str, count: int) -> list[float]:
    """Return the scores of the documents in a column; DataError if they are not as many numbers, 0 or more."""
    name = f"{column}_scores"
    value = row.get(name)
    if isinstance(value, str):
        with suppress(json.JSONDecodeError):  # the sentence below shows what was found
            value = json.loads(value)
    found = value if isinstance(value, list) else [] if value is None else [value]
    right = all(isinstance(each, int | float) and math.isfinite(each) and each >= 0 for each in found)
    if len(found) != count or not right:
        raise DataError(
            f"{place}: found {value!r} in {name}, expected a number of 0 or more per document of {column} ({count}); "
            "`curate train-set` writes them, or take recipe contrastive, which needs none"
        )
    return [float(each) for each in found]


def check_grades(place: Path, queries: int, found: Mapping[tuple[int, int], float]) -> None:
    """Raise DataError if the scores of all queries say nothing that positives and negatives do not say."""
    different = sorted({*found.values()})
    if len(different) < FEWEST:
        raise DataError(
            f"{place}: the scores have {len(different)} different values ({', '.join(map(str, different))}), expected "
            f"{FEWEST} or more: fewer are no graded targets; take recipe contrastive"
        )
    if none := queries - len({query for (query, _), score in found.items() if score > 0}):
        raise DataError(
            f"{place}: {none:,} of {queries:,} queries have no document with a score above 0, expected one per query; "
            "drop those queries"
        )


# Read triples to train on: what `curate train-set` wrote, or any table of queries, positives and negatives.

LISTS = "triples.jsonl"
QUERY = ("query", "anchor", "question", "sentence1")
POSITIVE = ("positive", "positives", "pos", "answer", "sentence2")
NEGATIVE = ("negative", "negatives", "neg")
Pair = tuple[int, int]
"""Numbers of a query and of a document."""
READ = tuple(name for name, kind in ENDINGS.items() if kind not in ("trec", "txt"))
REMEDY = "name them query, positive and negative (also anchor, pos, neg, negative_1, negative_2, ...)"


@dataclass(frozen=True)
class TrainTriples:
    """Queries with the documents that are relevant to them, and those that are not."""

    place: Path
    """The file that was read."""
    digest: str
    queries: Sequence[str]
    """Different texts, in the order of the file."""
    documents: Sequence[str]
    """Different texts."""
    positives: Sequence[Sequence[int]]
    """Per query, numbers of documents."""
    negatives: Sequence[Sequence[int]]
    groups: Sequence[str]
    """Per query, the column `group`; empty where there is none."""
    notes: Sequence[str] = ()
    sources: Mapping[Pair, str] = field(default_factory=dict)
    """The column `source` of a query and its positive."""
    grades: Mapping[Pair, float] = field(default_factory=dict)
    """The columns of scores of a query and its document, highest kept; empty where a file has none."""

    @property
    def pairs(self) -> int:
        """Return how many queries and positives belong together."""
        return sum(map(len, self.positives))


def locate(place: Path) -> Path:
    """Return the file of triples that a run, a folder or a path stands for; DataError if there is none."""
    if place.is_file():
        if ending(place)[0] not in READ:
            raise DataError(f"{place}: found the ending {place.suffix!r}, expected one of {', '.join(READ)}")
        return place
    if not place.exists():
        raise DataError(
            f"{place}: no such file or folder; give the triples of `curate train-set`, or a file of triples"
        )
    for folder in (place, place / "triples", place / "train_set" / "triples"):
        if (folder / LISTS).is_file():
            return folder / LISTS
    raise DataError(
        f"{place}: found no {LISTS} there, expected a folder that `curate train-set` wrote, or its run; make one with "
        "`curate train-set`, or give a .jsonl, .parquet or .csv file of triples"
    )


def read(place: Path, *, graded: bool = False) -> TrainTriples:
    """Return the triples of a run, a folder or a file; DataError names the row, what was found and what was expected.

    A row is a query with its positive or a list of them, and its negatives: one, a list, or columns `negative_1` to
    `negative_k`. Rows of one query are one query. A document that is relevant to a query is never its negative.
    `graded` reads a column of scores beside each column of documents: `pos_scores`, `negative_1_scores`.
    """
    path = locate(place)
    made = _Collected(path, graded=graded)
    for line, row in _rows(path):
        made.add(line, row)
    return made.whole()


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield line, or row from 1, and its columns; CSV files may have any delimiter and encoding."""
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty, expected triples; {REMEDY}")
    for row in File(path, format_of(path), option=None).rows():
        if isinstance(row, Problem):
            raise DataError(
                f"{path}:{row.line}: found {row.found}, expected {row.expected}; correct it, or drop the row"
            )
        yield row.line, row.values


class _Collected:
    """Rows on their way to triples."""

    def __init__(self, path: Path, *, graded: bool) -> None:
        self.path, self.graded = path, graded
        self.numbers: dict[str, int] = {}
        self.sources: dict[Pair, str] = {}
        self.grades: dict[Pair, float] = {}
        self.documents: dict[str, int] = {}
        self.positives: dict[str, dict[int, None]] = {}
        self.negatives: dict[str, dict[int, None]] = {}
        self.groups: dict[str, str] = {}
        self.columns: tuple[str, str, list[str]] | None = None
        self.bare: list[int] = []
        """Lines without a negative."""

    def add(self, line: int, row: Mapping[str, Any]) -> None:
        """Take a row over; DataError if it lacks a query or a positive."""
        query_column, positive_column, negative_columns = self.columns = self.columns or self._layout(row)
        query = _text(row.get(query_column))
        positive = list(_texts(row.get(positive_column)))
        negatives = [text for column in negative_columns for text in _texts(row.get(column))]
        for name, found in ((query_column, query), (positive_column, positive)):
            if not found:
                raise DataError(
                    f"{self.path}:{line}: found no text in {name}, expected one; fill it in or drop the row"
                )
        if not negatives:
            self.bare.append(line)
        self._number(self.positives.setdefault(query, {}), positive)
        self._number(self.negatives.setdefault(query, {}), negatives)
        self.groups.setdefault(query, _text(row.get("group")))
        number = self.numbers.setdefault(query, len(self.numbers))
        for text in positive:
            self.sources.setdefault((number, self.documents[text]), _text(row.get("source")))
        for column in (positive_column, *negative_columns) if self.graded else ():
            texts = list(_texts(row.get(column)))
            for text, score in zip(texts, grades_in_row(f"{self.path}:{line}", row, column, len(texts)), strict=True):
                pair = number, self.documents[text]
                self.grades[pair] = max(score, self.grades.get(pair, score))

    def _number(self, held: dict[int, None], texts: Iterable[str]) -> None:
        held.update(dict.fromkeys(self.documents.setdefault(text, len(self.documents)) for text in texts))

    def _layout(self, row: Mapping[str, Any]) -> tuple[str, str, list[str]]:
        """Return which columns hold query, positives and negatives."""
        names = {name.strip().lower(): name for name in row}
        query, positive = (next((names[n] for n in some if n in names), None) for some in (QUERY, POSITIVE))
        negative = [raw for name, raw in names.items() if name in NEGATIVE or name.startswith("negative_")]
        found = ", ".join(row) or "no column"
        if query is None or positive is None:
            lacking = " and ".join(n for n, c in (("queries", query), ("positives", positive)) if c is None)
            raise DataError(f"{self.path}: found the columns {found}, expected one of {lacking}; {REMEDY}")
        return query, positive, [name for name in negative if not name.endswith("_scores")]

    def whole(self) -> TrainTriples:
        """Return what was collected; DataError if there was nothing, or no side to tell apart."""
        if not self.positives:
            raise DataError(f"{self.path}: found no row, expected triples; {REMEDY}")
        spared, negatives = 0, []
        for query, held in self.positives.items():
            wrong = self.negatives[query].keys() & held.keys()
            spared += len(wrong)
            negatives.append([number for number in self.negatives[query] if number not in wrong])
        notes = [f"{spared:,} negatives are also positives of their query and were left out"] if spared else []
        if self.bare:
            notes.append(
                f"{len(self.bare):,} rows have no negative, or an empty one (the first in line {self.bare[0]}): they "
                "learn from the others of their batch alone"
            )
        return TrainTriples(
            self.path,
            sha256(self.path),
            list(self.positives),
            list(self.documents),
            [list(held) for held in self.positives.values()],
            negatives,
            list(self.groups.values()),
            notes,
            self.sources,
            self.grades,
        )


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of a cell: one, or a list of them, in JSON too as CSV files have it."""
    if isinstance(value, str) and value.lstrip().startswith('["'):
        with suppress(json.JSONDecodeError):  # then it is a text that begins so
            value = json.loads(value)
    for each in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
        if text := _text(each):
            yield text


# Hold back training queries to choose the best step: groups stay whole, so that no dev document was trained on.


@dataclass(frozen=True)
class DevQueries:
    """Numbers of queries that train, and of those that choose the step."""

    train: Sequence[int]
    dev: Sequence[int]
    documents: Sequence[int]
    """Documents that dev queries search: their positives and negatives first."""


def grouped(triples: TrainTriples) -> list[list[int]]:
    """Return the queries that share a positive or a `group`, directly or through others; in order."""
    parent = list(range(len(triples.queries)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    first: dict[object, int] = {}
    for query, positives in enumerate(triples.positives):
        named = [triples.groups[query]] if triples.groups[query] else []
        for key in (*positives, *named):
            parent[root(query)] = root(first.setdefault(key, query))
    found: dict[int, list[int]] = {}
    for query in range(len(parent)):
        found.setdefault(root(query), []).append(query)
    return list(found.values())


def held_back(triples: TrainTriples, settings: DevSplit, seed: int) -> DevQueries:
    """Return the dev queries, drawn by seed until the share is reached; DataError if groups leave nothing to train."""
    groups = grouped(triples)
    wanted = max(settings.share * len(triples.queries), 2)
    dev: list[int] = []
    for group in shuffled(groups, seed, "dev"):
        if len(dev) >= wanted:
            break
        if len(dev) + len(group) <= max(2 * wanted, wanted + 2):  # a group of most queries cannot be held back
            dev += group
    train = sorted({*range(len(triples.queries))} - {*dev})
    if not dev or len(train) < 2:
        raise DataError(
            f"{triples.place}: {len(triples.queries):,} queries are {len(groups):,} groups that share positives, too "
            "few to hold some back; give more queries, or queries with documents of their own"
        )
    return DevQueries(train, sorted(dev), _searched(triples, dev, settings.documents, seed))


def _searched(triples: TrainTriples, dev: Sequence[int], number: int, seed: int) -> list[int]:
    own = {doc for query in dev for doc in (*triples.positives[query], *triples.negatives[query])}
    others = [doc for doc in range(len(triples.documents)) if doc not in own]
    more = shuffled(others, seed, "dev documents")[: max(number - len(own), 0)]
    return sorted(own | {*more})


# Examples of a training: a row per query and positive, with negatives, as the trainer's losses take them.

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
        _text_row(triples, query, documents, negatives) | {"label": _filled(documents, negatives + 1, none)}
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
        rows.append(_text_row(triples, query, chosen, negatives) | {"label": label})
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


def _text_row(triples: TrainTriples, query: int, documents: Sequence[int], negatives: int) -> Row:
    row: Row = {"anchor": triples.queries[query], "positive": triples.documents[documents[0]]}
    filled = _filled(documents, negatives + 1, documents[0])[1:]
    return row | {f"negative_{at}": triples.documents[number] for at, number in enumerate(filled, start=1)}


def _filled(documents: Sequence[int], size: int, none: int) -> list[int]:
    return [*documents, *[none] * (size - len(documents))]
