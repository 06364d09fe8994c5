"""Ids that hold personal data are renamed where texts are masked, and every table of `mask` follows."""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from curate.ask import residual_decisions
from curate.core import records
from curate.core.config import Json
from curate.core.duplicates import Firsts, made_equal
from curate.core.errors import DataError
from curate.core.protocols import Engine
from curate.core.records import FIELDS, Span
from curate.pii import pseudonyms, residual
from curate.pii.masking import Masked, Masker, link
from curate.pii.pseudonyms import FIELD
from curate.pii.residual import Residue
from curate.pii.settings import Masking
from curate.pii.sieve import mask_all
from curate.pii.workers import mask_batches
from curate.system.files import BATCH, Gathered
from curate.view.run_figures import counted_texts

LIKE_NUMBERS = "digits"
"""Reason of the residual scan that says nothing of an id: most numbered documents have seven digits or more."""


@dataclass
class RenamedIds:
    """The ids of one table."""

    key: bytes = field(repr=False)
    renamed: dict[str, str] = field(default_factory=dict)
    """Id of the source -> its name, of those that are renamed; only ever in memory."""

    def called(self, raw: str, masked: Masked | None) -> str:
        """Return what a row is called, by what was found in its id; `masked` is None if nobody looked."""
        if masked is None or not masked.spans:
            return raw
        self.renamed[raw] = pseudonyms.name(self.key, raw)
        return self.renamed[raw]

    def of(self, column: str) -> pl.Expr:
        """Return a column with the names in place of the ids."""
        return pl.col(column).replace(self.renamed) if self.renamed else pl.col(column)

    def refuse(self, ids: Iterable[str]) -> None:
        """Raise DataError if a name is also an id of the source, as where a masked set was put beside its raw one."""
        if self.renamed and (both := set(self.renamed.values()).intersection(ids)):
            raise DataError(
                f"found {min(both)!r} beside the id that it stands for, expected one of them; "
                "leave the masked set out, or keep ids as they are: mask.ids: keep"
            )


def left(ids: list[str], closed: re.Pattern[str]) -> list[tuple[int, Residue]]:
    """Return what still looks like personal data in ids, by row; being a long number is not enough."""
    return [(row, found) for row, found in residual.scan(ids, closed) if found.reason != LIKE_NUMBERS]


def aliases(frame: pl.DataFrame, ids: Mapping[str, RenamedIds], masker: Masker | None) -> pl.DataFrame:
    """Return the aliases under the ids of now; an id that was merged away stands in no other table."""
    parts = []
    for table, own in ids.items():
        rows = frame.filter(pl.col("table") == table)
        _look(rows["old_id"], own, masker)
        parts.append(rows.with_columns(own.of("old_id"), own.of("kept_id")))
    return pl.concat(parts)


def dropped(frame: pl.DataFrame, ids: Mapping[str, RenamedIds], masker: Masker | None) -> pl.DataFrame:
    """Return what was dropped, without personal data in ids, which are two for a qrel, or in reasons that quote one."""
    if masker is None or frame.is_empty():
        return frame
    parts = [part for each in frame["id"] for part in each.split(" ")]
    every = RenamedIds(
        next(iter(ids.values())).key, {raw: name for own in ids.values() for raw, name in own.renamed.items()}
    )
    _look(pl.Series(parts, dtype=pl.String), every, masker)
    called = [" ".join(every.renamed.get(part, part) for part in each.split(" ")) for each in frame["id"]]
    again = RenamedIds(every.key)
    _look(pl.Series(called, dtype=pl.String), again, masker)  # an id may hold spaces
    reasons = frame["reason"].unique().to_list()
    said = dict(zip(reasons, (found.text for found in mask_all(masker, reasons)), strict=True))
    ids_now = pl.Series("id", [again.renamed.get(each, each) for each in called], dtype=pl.String)
    return frame.with_columns(ids_now, pl.col("reason").replace(said))


def _look(raw: pl.Series, own: RenamedIds, masker: Masker | None) -> None:
    """Rename those of some ids in which something is found."""
    unknown = raw.unique().filter(~raw.unique().is_in(list(own.renamed))).to_list() if masker else []
    for each, found in zip(unknown, mask_all(masker, unknown) if masker else (), strict=True):
        own.called(each, found)


def facts(ids: Mapping[str, RenamedIds]) -> dict[str, Json]:
    """Return how many ids of each table were renamed, and by which key; nothing if none was."""
    counts: dict[str, Json] = {f"renamed_{table}": len(own.renamed) for table, own in ids.items()}
    if not any(counts.values()):
        return {}
    return {**counts, pseudonyms.MARK: pseudonyms.mark(next(iter(ids.values())).key)}


def notes(counted: Mapping[str, Json]) -> list[str]:
    """Return what a user should know of it, in a sentence; nothing if none was renamed."""
    of = counted_texts(counted, "renamed")
    said = f"the ids of {of} look like personal data and are called {pseudonyms.PREFIX}... from here on"
    return [f"{said}; if they are numbers that identify nobody: mask.ids: keep"] if of else []


# Masking by the workers of an engine, which may be on other machines: parts in, what was masked in them out.

Known = Mapping[int, Sequence[Span]]
"""Spans that are known of some texts of a batch, by row."""
Texts = Callable[[pl.DataFrame], list[str]]


@dataclass(frozen=True)
class Part:
    """Some batches of a table, by number, and what is known of their texts."""

    numbers: range
    known: Mapping[int, Known] = field(default_factory=dict)


@dataclass(frozen=True)
class PartMasker:
    """What a worker does with a part of a table: it reads, masks, and returns what it masked, by row of each batch."""

    folder: Path
    """Where `ingest` wrote the table."""
    table: str
    texts: Texts
    """The texts of a batch that are looked at, in order."""
    masking: Masking
    language: str
    key: bytes = field(repr=False)

    def batch(self, number: int) -> pl.DataFrame:
        """Return a batch of raw rows."""
        return pl.scan_parquet(self.folder / f"{self.table}.parquet").slice(number * BATCH, BATCH).collect()

    def __call__(self, part: Part) -> list[dict[int, Masked]]:
        """Return the texts in which something was found, for each batch by row."""
        batches = (
            (texts, (texts, part.known.get(number, {})))
            for number in part.numbers
            for texts in [self.texts(self.batch(number))]
        )
        masked = mask_batches(self.masking, self.language, self.key, batches, 1)
        return [
            {row: each for row, (raw, each) in enumerate(zip(texts, found, strict=True)) if each != Masked(raw)}
            for texts, found in masked
        ]


def mask_in_parts(
    engine: Engine, work: PartMasker, rows: int, known: Callable[[pl.DataFrame], Known] | None
) -> Iterator[tuple[pl.DataFrame, list[Masked]]]:
    """Yield every batch of a table and its masked texts, in order; `known` is asked of all before any is masked."""
    count = -(-rows // BATCH)
    cut = min(engine.shards, count)
    ranges = [range(count * each // cut, count * (each + 1) // cut) for each in range(cut)]
    parts = [Part(each, {number: known(work.batch(number)) for number in each} if known else {}) for each in ranges]
    for part, found in zip(parts, engine.map(work, parts), strict=True):
        for number, masked in zip(part.numbers, found, strict=True):
            batch = work.batch(number)
            yield batch, [masked.get(row) or Masked(raw) for row, raw in enumerate(work.texts(batch))]


# What masking did to one table: its rows under their ids of now, and what it notes of them on the way.

KEYS = {"queries": "query_id", "corpus": "doc_id"}
MOST = 1 / 3
"""Share of a text's characters above which the masked ones may have taken its sense."""


class MaskedRow(NamedTuple):
    """A row as it was, and its masked texts by column."""

    raw: dict[str, Any]
    """Under its id of now."""
    masked: dict[str, Masked]
    id: str
    looked: bool
    """Whether its id was looked at, and stays."""

    @property
    def written(self) -> dict[str, Any]:
        """Return the row with its texts masked."""
        return {**self.raw, **{name: found.text for name, found in self.masked.items()}}

    def shown(self, *, decided: bool) -> str:
        """Return what is shown of the masked row; without what people decided, as it was when they did."""
        texts = {
            name: found.text if decided else found.restored(self.raw[name], residual_decisions.PERSON)
            for name, found in self.masked.items()
        }
        return records.shown(texts.get("title", ""), texts["text"])


@dataclass
class MaskedTable:
    """What masking did to one table."""

    table: str
    key: bytes = field(repr=False)
    classes: pl.DataFrame
    """id and class of every row that `ingest` wrote."""
    spans: Gathered = field(default_factory=partial(Gathered, "spans"))
    """Rows of the table `spans`; offsets in the raw text."""
    residual: Gathered = field(default_factory=partial(Gathered, "residual"))
    """Rows of the table `residual`; offsets in the masked text."""
    merged: dict[str, str] = field(default_factory=dict)
    firsts: Firsts = field(default_factory=Firsts)
    masked: "array[int]" = field(default_factory=partial(array, "q"))
    """The class of every row's masked text."""
    lost: dict[str, float] = field(default_factory=dict)
    """Id -> share of its characters that were masked, of those in which something was."""
    kept: int = 0
    ids: RenamedIds = field(init=False)

    def __post_init__(self) -> None:
        self.ids = RenamedIds(self.key)

    def rows(self, batch: pl.DataFrame, masked: Sequence[Masked]) -> Iterator[MaskedRow]:
        """Yield the rows of a batch with their masked texts, and note the spans."""
        columns, key, size = FIELDS[self.table], KEYS[self.table], len(batch)
        own = masked[len(columns) * size :]
        for number, row in enumerate(batch.iter_rows(named=True)):
            texts = {name: masked[place * size + number] for place, name in enumerate(columns)}
            called = self.ids.called(str(row[key]), own[number] if own else None)
            for name, text in texts.items():
                self._note(called, name, row[name], text)
            self._count(called, sum(len(row[name]) for name in columns), texts.values())
            yield MaskedRow({**row, key: called}, texts, called, bool(own) and called == row[key])

    def take(self, batch: pl.DataFrame, masked: Sequence[Masked], *, keep_all: bool) -> Iterator[MaskedRow]:
        """Yield the rows of a batch that are kept, and note what the others are merged into."""
        for row in self.rows(batch, masked):
            name, first = row.id, self.first(row)
            first = self.merged.get(first, first)
            if keep_all or first == name:
                self.kept += 1
                yield row
            else:
                self.merged[name] = first

    def first(self, row: MaskedRow) -> str:
        """Return the id of the first row of a masked text; one that people had masked stands for what it had merged."""
        name = row.id
        number = self.firsts.number(name, row.shown(decided=False))
        if self.firsts.names[number] == name:
            number = self.firsts.number(name, row.shown(decided=True))
        self.masked.append(number)
        return self.firsts.names[number]

    def altered(self) -> pl.DataFrame:
        """Return the rows of the table `altered`: texts made equal to another one, and those that lost too much."""
        equal = made_equal(self.classes.with_columns(masked=pl.Series(np.array(self.masked), dtype=pl.Int64)))
        lost = pl.DataFrame(list(self.lost.items()), {"id": pl.String, "lost": pl.Float64}, orient="row")
        every = lost.join(equal, on="id", how="full", coalesce=True).with_columns(table=pl.lit(self.table))
        return every.filter((pl.col("lost") > MOST) | pl.col("equal_to").is_not_null()).sort("id")

    def _count(self, name: str, length: int, texts: Iterable[Masked]) -> None:
        if hidden := sum(span.end - span.start for text in texts for span in text.spans):
            self.lost[name] = hidden / length

    def look_over(self, rows: Sequence[MaskedRow], closed: re.Pattern[str]) -> None:
        """Note what still looks like personal data in masked rows and their ids."""
        for name in FIELDS[self.table]:
            for number, found in residual.scan([row.masked[name].text for row in rows], closed):
                row = rows[number]
                self._list(row.id, name, found, row.masked[name].raw(found.start, found.end), row.raw[name])
        kept = [row.id for row in rows if row.looked]
        for number, found in left(kept, closed):
            self._list(kept[number], FIELD, found, (found.start, found.end), kept[number])

    def _list(self, name: str, column: str, found: Residue, place: tuple[int, int], raw: str) -> None:
        where: dict[str, str | int] = {"table": self.table, "id": name, "field": column}
        seen: dict[str, str | int] = {"start": found.start, "end": found.end, "reason": found.reason}
        link = residual_decisions.text_link(self.key, raw)
        self.residual.append({**where, **seen, "raw_start": place[0], "raw_end": place[1], "link": link})

    def _note(self, name: str, key: str, raw: str, masked: Masked) -> None:
        for span in masked.spans:
            place: dict[str, str | int] = {"table": self.table, "id": name, "field": key}
            kind: dict[str, str | int] = {"kind": span.kind, "recogniser": span.recogniser}
            value = link(self.key, span.kind, raw[span.start : span.end])
            self.spans.append({**place, "start": span.start, "end": span.end, **kind, "link": value})
