"""Reading triples, drawing dev queries, and making the training examples of the recipes."""

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
"""Minimum number of distinct scores for the recipe `soft`.

Two contain no more information than positive and negative.
"""


def grades_in_row(source: str, row: Mapping[str, Any], column: str, count: int) -> list[float]:
    """Return the scores of a column's documents; DataError unless they are `count` finite numbers of at least 0."""
    name = f"{column}_scores"
    cell = row.get(name)
    if isinstance(cell, str):
        with suppress(json.JSONDecodeError):  # the sentence below shows what was found
            cell = json.loads(cell)
    scores = cell if isinstance(cell, list) else [] if cell is None else [cell]
    right = all(isinstance(score, int | float) and math.isfinite(score) and score >= 0 for score in scores)
    if len(scores) != count or not right:
        raise DataError(
            f"{source}: found {cell!r} in {name}, expected a number of 0 or more per document of {column} ({count}); "
            "`curate train-set` writes them, or take recipe contrastive, which needs none"
        )
    return [float(score) for score in scores]


def check_grades(source: Path, queries: int, grades: Mapping[tuple[int, int], float]) -> None:
    """Raise DataError for fewer than `FEWEST` distinct scores, or if a query has no score above 0."""
    different = sorted({*grades.values()})
    if len(different) < FEWEST:
        raise DataError(
            f"{source}: the scores have {len(different)} different values ({', '.join(map(str, different))}), expected "
            f"{FEWEST} or more: fewer are no graded targets; take recipe contrastive"
        )
    if ungraded := queries - len({query for (query, _), score in grades.items() if score > 0}):
        raise DataError(
            f"{source}: {ungraded:,} of {queries:,} queries have no document with a score above 0, expected one per "
            "query; drop those queries"
        )


# Read triples that `curate train-set` wrote, or any table of queries, positives and negatives.

LISTS = "triples.jsonl"
QUERY = ("query", "anchor", "question", "sentence1")
POSITIVE = ("positive", "positives", "pos", "answer", "sentence2")
NEGATIVE = ("negative", "negatives", "neg")
Pair = tuple[int, int]
"""Number of a query and number of a document."""
READ = tuple(name for name, kind in ENDINGS.items() if kind not in ("trec", "txt"))
REMEDY = "name them query, positive and negative (also anchor, pos, neg, negative_1, negative_2, ...)"


@dataclass(frozen=True)
class TrainTriples:
    """Queries with their relevant (positive) and irrelevant (negative) documents; both are numbered from 0."""

    place: Path
    """The file that was read."""
    digest: str
    queries: Sequence[str]
    """Distinct texts of queries, in file order."""
    documents: Sequence[str]
    """Distinct texts of documents."""
    positives: Sequence[Sequence[int]]
    """Numbers of the relevant documents per query."""
    negatives: Sequence[Sequence[int]]
    groups: Sequence[str]
    """Value of the column `group` per query; empty without one."""
    notes: Sequence[str] = ()
    sources: Mapping[Pair, str] = field(default_factory=dict)
    """(query, positive) -> value of the column `source`."""
    grades: Mapping[Pair, float] = field(default_factory=dict)
    """(query, document) -> score, the highest of repeated ones; empty without columns of scores."""

    @property
    def pairs(self) -> int:
        """Return the number of (query, positive) pairs."""
        return sum(map(len, self.positives))


def locate(source: Path) -> Path:
    """Return the file of triples of a run or folder, or `source` itself if it is a file; DataError if there is none."""
    if source.is_file():
        if ending(source)[0] not in READ:
            raise DataError(f"{source}: found the ending {source.suffix!r}, expected one of {', '.join(READ)}")
        return source
    if not source.exists():
        raise DataError(
            f"{source}: no such file or folder; give the triples of `curate train-set`, or a file of triples"
        )
    for folder in (source, source / "triples", source / "train_set" / "triples"):
        if (folder / LISTS).is_file():
            return folder / LISTS
    raise DataError(
        f"{source}: found no {LISTS} there, expected a folder that `curate train-set` wrote, or its run; make one with "
        "`curate train-set`, or give a .jsonl, .parquet or .csv file of triples"
    )


def read(source: Path, *, graded: bool = False) -> TrainTriples:
    """Return the triples of a run, a folder or a file; DataError names the row of a mistake.

    A row has a query, one or a list of positives, and negatives: one, a list, or columns `negative_1` to `negative_k`.
    Rows of the same query are merged; a positive of a query is removed from its negatives. With `graded`, each column
    of documents needs a column of scores, such as `pos_scores` or `negative_1_scores`.
    """
    path = locate(source)
    collected = _TriplesBuilder(path, graded=graded)
    for line, row in _rows(path):
        collected.add(line, row)
    return collected.whole()


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield (line or row number from 1, column -> cell); DataError for an unreadable row or an empty file."""
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty, expected triples; {REMEDY}")
    for row in File(path, format_of(path), option=None).rows():
        if isinstance(row, Problem):
            raise DataError(f"{path}:{row.line}: found {row.got}, expected {row.expected}; correct it, or drop the row")
        yield row.line, row.values


class _TriplesBuilder:
    """Merges rows by query into triples."""

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
        """Add a row; DataError if it lacks a query or a positive."""
        query_column, positive_column, negative_columns = self.columns = self.columns or self._layout(row)
        query = _text(row.get(query_column))
        positive = list(_texts(row.get(positive_column)))
        negatives = [text for column in negative_columns for text in _texts(row.get(column))]
        for name, content in ((query_column, query), (positive_column, positive)):
            if not content:
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

    def _number(self, numbers: dict[int, None], texts: Iterable[str]) -> None:
        numbers.update(dict.fromkeys(self.documents.setdefault(text, len(self.documents)) for text in texts))

    def _layout(self, row: Mapping[str, Any]) -> tuple[str, str, list[str]]:
        """Return the columns of query, positives and negatives; DataError without a query or positive column."""
        names = {name.strip().lower(): name for name in row}
        query, positive = (
            next((names[alias] for alias in aliases if alias in names), None) for aliases in (QUERY, POSITIVE)
        )
        negative = [column for name, column in names.items() if name in NEGATIVE or name.startswith("negative_")]
        columns = ", ".join(row) or "no column"
        if query is None or positive is None:
            lacking = " and ".join(
                kind for kind, column in (("queries", query), ("positives", positive)) if column is None
            )
            raise DataError(f"{self.path}: found the columns {columns}, expected one of {lacking}; {REMEDY}")
        return query, positive, [name for name in negative if not name.endswith("_scores")]

    def whole(self) -> TrainTriples:
        """Return the triples, without negatives that are also positives of the query; DataError if no row was added."""
        if not self.positives:
            raise DataError(f"{self.path}: found no row, expected triples; {REMEDY}")
        dropped, negatives = 0, []
        for query, positives in self.positives.items():
            contradictory = self.negatives[query].keys() & positives.keys()
            dropped += len(contradictory)
            negatives.append([number for number in self.negatives[query] if number not in contradictory])
        notes = [f"{dropped:,} negatives are also positives of their query and were left out"] if dropped else []
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
            [list(positives) for positives in self.positives.values()],
            negatives,
            list(self.groups.values()),
            notes,
            self.sources,
            self.grades,
        )


def _text(cell: object) -> str:
    return cell.strip() if isinstance(cell, str) else ""


def _texts(cell: object) -> Iterator[str]:
    """Yield the texts of a cell: a string, a list, or a JSON list, as in CSV files."""
    if isinstance(cell, str) and cell.lstrip().startswith('["'):
        with suppress(json.JSONDecodeError):  # then it is a text that begins so
            cell = json.loads(cell)
    for entry in cell if isinstance(cell, Sequence) and not isinstance(cell, str) else [cell]:
        if text := _text(entry):
            yield text


# Hold back dev queries to choose the best step; whole groups, so that no dev positive is trained on.


@dataclass(frozen=True)
class DevQueries:
    """Numbers of the training queries, of the dev queries, and of the documents that dev queries search."""

    train: Sequence[int]
    dev: Sequence[int]
    documents: Sequence[int]
    """Corpus of the dev queries: their positives and negatives, then randomly drawn documents."""


def grouped(triples: TrainTriples) -> list[list[int]]:
    """Return the connected components of queries that share a positive or a `group` (union-find)."""
    parent = list(range(len(triples.queries)))

    def root(query: int) -> int:
        while parent[query] != query:
            parent[query] = parent[parent[query]]
            query = parent[query]
        return query

    first: dict[object, int] = {}
    for query, positives in enumerate(triples.positives):
        group_key = [triples.groups[query]] if triples.groups[query] else []
        for key in (*positives, *group_key):
            parent[root(query)] = root(first.setdefault(key, query))
    members: dict[int, list[int]] = {}
    for query in range(len(parent)):
        members.setdefault(root(query), []).append(query)
    return list(members.values())


def held_back(triples: TrainTriples, settings: DevSplit, seed: int) -> DevQueries:
    """Return a split by seed that moves groups of queries to dev until its share is reached.

    DataError if too few queries remain for training.
    """
    groups = grouped(triples)
    target = max(settings.share * len(triples.queries), 2)
    dev: list[int] = []
    for group in shuffled(groups, seed, "dev"):
        if len(dev) >= target:
            break
        if len(dev) + len(group) <= max(2 * target, target + 2):  # a group of most queries cannot be held back
            dev += group
    train = sorted({*range(len(triples.queries))} - {*dev})
    if not dev or len(train) < 2:
        raise DataError(
            f"{triples.place}: {len(triples.queries):,} queries are {len(groups):,} groups that share positives, too "
            "few to hold some back; give more queries, or queries with documents of their own"
        )
    judged = {doc for query in dev for doc in (*triples.positives[query], *triples.negatives[query])}
    others = [doc for doc in range(len(triples.documents)) if doc not in judged]
    drawn = shuffled(others, seed, "dev documents")[: max(settings.documents - len(judged), 0)]
    return DevQueries(train, sorted(dev), sorted(judged | {*drawn}))


# Training examples: a row per query and positive, with negatives, in the form that the losses need.

Row = dict[str, Any]


def numbers(triples: TrainTriples, queries: Sequence[int], negatives: int) -> list[tuple[int, list[int]]]:
    """Return (query, [positive, negatives...]) for each query and positive.

    The positives of a query take successive slices of its negatives, so that more negatives are used.
    """
    examples = []
    for query in queries:
        irrelevant = list(triples.negatives[query])
        for turn, positive in enumerate(triples.positives[query]):
            start = turn * negatives % len(irrelevant) if irrelevant else 0
            examples.append((query, [positive, *(irrelevant[start:] + irrelevant[:start])[:negatives]]))
    return examples


def spared(triples: TrainTriples) -> dict[int, list[int]]:
    """Return positive -> other documents relevant to its queries, which must not serve as negatives."""
    relevant: dict[int, set[int]] = {}
    for positives in triples.positives:
        for positive in positives:
            relevant.setdefault(positive, set()).update(positives)
    return {positive: sorted(others - {positive}) for positive, others in relevant.items() if len(others) > 1}


def kept_rows(triples: TrainTriples, queries: Sequence[int], negatives: int, none: int) -> list[Row]:
    """Return rows of a query and its documents' numbers, for losses with fixed document vectors."""
    return [
        {"anchor": triples.queries[query], "label": _padded(documents, negatives + 1, none)}
        for query, documents in numbers(triples, queries, negatives)
    ]


def text_rows(triples: TrainTriples, queries: Sequence[int], negatives: int, none: int) -> list[Row]:
    """Return rows of a query and its documents' texts; missing negatives are padded with the positive.

    Padding has the number `none` in `label`, so that losses ignore it.
    """
    return [
        _text_row(triples, query, documents, negatives) | {"label": _padded(documents, negatives + 1, none)}
        for query, documents in numbers(triples, queries, negatives)
    ]


def graded_rows(triples: TrainTriples, queries: Sequence[int], negatives: int, none: int) -> list[Row]:
    """Return one row per query with its documents by descending score, evenly sampled if there are too many.

    `label` starts with the query's number.
    """
    rows = []
    for query in queries:
        documents = [*triples.positives[query], *triples.negatives[query]]
        documents.sort(key=lambda document, query=query: -triples.grades[query, document])  # type: ignore[misc]
        size = min(negatives + 1, len(documents))
        chosen = [documents[step * (len(documents) - 1) // max(size - 1, 1)] for step in range(size)]
        label = [query, *_padded(chosen, negatives + 1, none)]
        rows.append(_text_row(triples, query, chosen, negatives) | {"label": label})
    return rows


def sources(triples: TrainTriples, queries: Sequence[int]) -> list[str]:
    """Return the source of every pair, in row order; DataError unless at least two sources have two or more pairs."""
    pair_sources = [triples.sources[query, documents[0]] for query, documents in numbers(triples, queries, 0)]
    counts = Counter(pair_sources)
    remedy = "give a column `source`, or take recipe contrastive"
    if bare := counts[""]:
        raise DataError(f"{triples.place}: {bare:,} pairs have no source, expected one per pair; {remedy}")
    if len(counts) < 2:
        raise DataError(
            f"{triples.place}: all pairs are of source {pair_sources[0]!r}, expected two sources or more; {remedy}"
        )
    if single := [name for name, count in counts.items() if count < 2]:
        raise DataError(
            f"{triples.place}: source {single[0]!r} has a single pair to train on, expected two or more, which are "
            "negatives of each other; drop it, or give it the name of a source that is alike"
        )
    return pair_sources


def own_rows(triples: TrainTriples, queries: Sequence[int]) -> list[Row]:
    """Return one row per query and document of the training split; queries are numbered after all documents."""
    used = sorted(
        {document for query in queries for document in (*triples.positives[query], *triples.negatives[query])}
    )
    query_rows = [{"anchor": triples.queries[query], "label": len(triples.documents) + query} for query in queries]
    return [*query_rows, *({"anchor": triples.documents[document], "label": document} for document in used)]


def _text_row(triples: TrainTriples, query: int, documents: Sequence[int], negatives: int) -> Row:
    row: Row = {"anchor": triples.queries[query], "positive": triples.documents[documents[0]]}
    padded = _padded(documents, negatives + 1, documents[0])[1:]
    return row | {f"negative_{position}": triples.documents[number] for position, number in enumerate(padded, start=1)}


def _padded(documents: Sequence[int], size: int, none: int) -> list[int]:
    return [*documents, *[none] * (size - len(documents))]
