"""Read triples to train on: what `curate train-set` wrote, or any table of queries, positives and negatives."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curate.commands.train import grades
from curate.core.errors import DataError
from curate.system.files import sha256
from curate.tables.readers import Problem
from curate.tables.readers.file import ENDINGS, File, format_of
from curate.tables.readers.packed import ending

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
            for text, score in zip(texts, grades.in_row(f"{self.path}:{line}", row, column, len(texts)), strict=True):
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
