"""Rename ids that contain personal data, consistently in every table of `mask`."""

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
from curate.pii.texts import mask_batches
from curate.system.files import BATCH, Gathered
from curate.view.run_figures import counted_texts

LIKE_NUMBERS = "digits"
"""Reason of the residual scan that is ignored in ids: most document numbers have seven digits or more."""


@dataclass
class RenamedIds:
    """The ids of one table."""

    key: bytes = field(repr=False)
    renamed: dict[str, str] = field(default_factory=dict)
    """Source id -> new id, of the renamed ones; never written to disk."""

    def called(self, raw: str, masked: Masked | None) -> str:
        """Return the id of a row, renamed if its masked id differs; `masked` is None if ids are not masked."""
        if masked is None or not masked.spans:
            return raw
        self.renamed[raw] = pseudonyms.name(self.key, raw)
        return self.renamed[raw]

    def of(self, column: str) -> pl.Expr:
        """Return a column with the new ids in place of the old ones."""
        return pl.col(column).replace(self.renamed) if self.renamed else pl.col(column)

    def refuse(self, ids: Iterable[str]) -> None:
        """Raise DataError if a new id is also a source id, as when a masked set is joined with its raw one."""
        if self.renamed and (both := set(self.renamed.values()).intersection(ids)):
            raise DataError(
                f"found {min(both)!r} beside the id that it stands for, expected one of them; "
                "leave the masked set out, or keep ids as they are: mask.ids: keep"
            )


def left(ids: list[str], closed: re.Pattern[str]) -> list[tuple[int, Residue]]:
    """Return (row, residue) of ids that still look like personal data; a long number alone does not count."""
    return [(row, residue) for row, residue in residual.scan(ids, closed) if residue.reason != LIKE_NUMBERS]


def aliases(frame: pl.DataFrame, ids: Mapping[str, RenamedIds], masker: Masker | None) -> pl.DataFrame:
    """Return the aliases under the new ids; ids that were merged away occur in no other table."""
    renamed_rows = []
    for table, table_ids in ids.items():
        rows = frame.filter(pl.col("table") == table)
        _rename_found(rows["old_id"], table_ids, masker)
        renamed_rows.append(rows.with_columns(table_ids.of("old_id"), table_ids.of("kept_id")))
    return pl.concat(renamed_rows)


def dropped(frame: pl.DataFrame, ids: Mapping[str, RenamedIds], masker: Masker | None) -> pl.DataFrame:
    """Return the dropped rows with masked ids (two, separated by a space, for a qrel) and masked reasons."""
    if masker is None or frame.is_empty():
        return frame
    ids_alone = [name for row_id in frame["id"] for name in row_id.split(" ")]
    every = RenamedIds(
        next(iter(ids.values())).key,
        {raw: name for table_ids in ids.values() for raw, name in table_ids.renamed.items()},
    )
    _rename_found(pl.Series(ids_alone, dtype=pl.String), every, masker)
    called = [" ".join(every.renamed.get(name, name) for name in row_id.split(" ")) for row_id in frame["id"]]
    spaced = RenamedIds(every.key)
    _rename_found(pl.Series(called, dtype=pl.String), spaced, masker)  # an id may itself contain spaces
    reasons = frame["reason"].unique().to_list()
    masked_reasons = dict(zip(reasons, (masked.text for masked in mask_all(masker, reasons)), strict=True))
    ids_now = pl.Series("id", [spaced.renamed.get(row_id, row_id) for row_id in called], dtype=pl.String)
    return frame.with_columns(ids_now, pl.col("reason").replace(masked_reasons))


def _rename_found(raw: pl.Series, ids: RenamedIds, masker: Masker | None) -> None:
    """Rename the ids that contain personal data and are not renamed yet."""
    unknown = raw.unique().filter(~raw.unique().is_in(list(ids.renamed))).to_list() if masker else []
    for name, masked in zip(unknown, mask_all(masker, unknown) if masker else (), strict=True):
        ids.called(name, masked)


def facts(ids: Mapping[str, RenamedIds]) -> dict[str, Json]:
    """Return the number of renamed ids per table and the mark of the key; empty if none was renamed."""
    counts: dict[str, Json] = {f"renamed_{table}": len(table_ids.renamed) for table, table_ids in ids.items()}
    if not any(counts.values()):
        return {}
    return {**counts, pseudonyms.MARK: pseudonyms.mark(next(iter(ids.values())).key)}


def notes(counted: Mapping[str, Json]) -> list[str]:
    """Return one sentence on renamed ids; empty if none was renamed."""
    renamed = counted_texts(counted, "renamed")
    sentence = f"the ids of {renamed} look like personal data and are called {pseudonyms.PREFIX}... from here on"
    return [f"{sentence}; if they are numbers that identify nobody: mask.ids: keep"] if renamed else []


# Masking by the workers of an engine, possibly on other machines: one part in, its masked texts out.

Known = Mapping[int, Sequence[Span]]
"""Row of a batch -> spans known before masking."""
Texts = Callable[[pl.DataFrame], list[str]]


@dataclass(frozen=True)
class Part:
    """Some batches of a table, by number, and the known spans of their texts."""

    numbers: range
    known: Mapping[int, Known] = field(default_factory=dict)


@dataclass(frozen=True)
class PartMasker:
    """Task of a worker: read a part of a table, mask it, and return the masked texts by row of each batch."""

    folder: Path
    """Where `ingest` wrote the table."""
    table: str
    texts: Texts
    """Function that returns the texts of a batch to mask, in order."""
    masking: Masking
    language: str
    key: bytes = field(repr=False)

    def batch(self, number: int) -> pl.DataFrame:
        """Return a batch of raw rows."""
        return pl.scan_parquet(self.folder / f"{self.table}.parquet").slice(number * BATCH, BATCH).collect()

    def __call__(self, part: Part) -> list[dict[int, Masked]]:
        """Return row -> masked text for each batch, only of texts that changed."""
        batches = (
            (texts, (texts, part.known.get(number, {})))
            for number in part.numbers
            for texts in [self.texts(self.batch(number))]
        )
        masked = mask_batches(self.masking, self.language, self.key, batches, 1)
        return [
            {row: result for row, (raw, result) in enumerate(zip(texts, results, strict=True)) if result != Masked(raw)}
            for texts, results in masked
        ]


def mask_in_parts(
    engine: Engine, work: PartMasker, rows: int, known: Callable[[pl.DataFrame], Known] | None
) -> Iterator[tuple[pl.DataFrame, list[Masked]]]:
    """Yield every batch of a table with its masked texts, in order; `known` is called for all of them first."""
    count = -(-rows // BATCH)
    cut = min(engine.shards, count)
    ranges = [range(count * index // cut, count * (index + 1) // cut) for index in range(cut)]
    parts = [
        Part(numbers, {number: known(work.batch(number)) for number in numbers} if known else {}) for numbers in ranges
    ]
    for part, results in zip(parts, engine.map(work, parts), strict=True):
        for number, masked in zip(part.numbers, results, strict=True):
            batch = work.batch(number)
            yield batch, [masked.get(row) or Masked(raw) for row, raw in enumerate(work.texts(batch))]


# Masking of one table: its rows under their new ids, and the records made on the way.

KEYS = {"queries": "query_id", "corpus": "doc_id"}
MOST = 1 / 3
"""Share of masked characters above which a text may have lost its meaning."""


class MaskedRow(NamedTuple):
    """A raw row and its masked texts by column."""

    raw: dict[str, Any]
    """The row, under its new id."""
    masked: dict[str, Masked]
    id: str
    looked: bool
    """Whether its id was scanned and kept."""

    @property
    def written(self) -> dict[str, Any]:
        """Return the row with its texts masked."""
        return {**self.raw, **{name: masked.text for name, masked in self.masked.items()}}

    def shown(self, *, decided: bool) -> str:
        """Return title and text of the masked row; without `decided`, as they were before users' decisions."""
        texts = {
            name: masked.text if decided else masked.restored(self.raw[name], residual_decisions.PERSON)
            for name, masked in self.masked.items()
        }
        return records.shown(texts.get("title", ""), texts["text"])


@dataclass
class MaskedTable:
    """Result of masking one table."""

    table: str
    key: bytes = field(repr=False)
    classes: pl.DataFrame
    """id and class of every row of `ingest`."""
    spans: Gathered = field(default_factory=partial(Gathered, "spans"))
    """Rows of the table `spans`; offsets in the raw text."""
    residual: Gathered = field(default_factory=partial(Gathered, "residual"))
    """Rows of the table `residual`; offsets in the masked text."""
    merged: dict[str, str] = field(default_factory=dict)
    firsts: Firsts = field(default_factory=Firsts)
    masked: "array[int]" = field(default_factory=partial(array, "q"))
    """Class of every row's masked text, in row order."""
    lost: dict[str, float] = field(default_factory=dict)
    """Id -> share of its characters that were masked, of texts with any."""
    kept: int = 0
    ids: RenamedIds = field(init=False)

    def __post_init__(self) -> None:
        self.ids = RenamedIds(self.key)

    def rows(self, batch: pl.DataFrame, masked: Sequence[Masked]) -> Iterator[MaskedRow]:
        """Yield the rows of a batch with their masked texts, and record the spans."""
        columns, key, size = FIELDS[self.table], KEYS[self.table], len(batch)
        masked_ids = masked[len(columns) * size :]
        for number, row in enumerate(batch.iter_rows(named=True)):
            texts = {name: masked[index * size + number] for index, name in enumerate(columns)}
            called = self.ids.called(str(row[key]), masked_ids[number] if masked_ids else None)
            for name, text in texts.items():
                self._note(called, name, row[name], text)
            if hidden := sum(span.end - span.start for text in texts.values() for span in text.spans):
                self.lost[called] = hidden / sum(len(row[name]) for name in columns)
            yield MaskedRow({**row, key: called}, texts, called, bool(masked_ids) and called == row[key])

    def take(self, batch: pl.DataFrame, masked: Sequence[Masked], *, keep_all: bool) -> Iterator[MaskedRow]:
        """Yield the retained rows of a batch, and record the rows into which the others are merged."""
        for row in self.rows(batch, masked):
            name, first = row.id, self.first(row)
            first = self.merged.get(first, first)
            if keep_all or first == name:
                self.kept += 1
                yield row
            else:
                self.merged[name] = first

    def first(self, row: MaskedRow) -> str:
        """Return the id of the first row with a masked text; rows that were equal before decisions stay merged."""
        name = row.id
        number = self.firsts.number(name, row.shown(decided=False))
        if self.firsts.names[number] == name:
            number = self.firsts.number(name, row.shown(decided=True))
        self.masked.append(number)
        return self.firsts.names[number]

    def altered(self) -> pl.DataFrame:
        """Return the rows of the table `altered`: texts that masking made equal to another, or masked beyond `MOST`."""
        equal = made_equal(self.classes.with_columns(masked=pl.Series(np.array(self.masked), dtype=pl.Int64)))
        lost = pl.DataFrame(list(self.lost.items()), {"id": pl.String, "lost": pl.Float64}, orient="row")
        every = lost.join(equal, on="id", how="full", coalesce=True).with_columns(table=pl.lit(self.table))
        return every.filter((pl.col("lost") > MOST) | pl.col("equal_to").is_not_null()).sort("id")

    def look_over(self, rows: Sequence[MaskedRow], closed: re.Pattern[str]) -> None:
        """List residual PII in masked rows and their ids."""
        for name in FIELDS[self.table]:
            for number, residue in residual.scan([row.masked[name].text for row in rows], closed):
                row = rows[number]
                self._list(row.id, name, residue, row.masked[name].raw(residue.start, residue.end), row.raw[name])
        kept_ids = [row.id for row in rows if row.looked]
        for number, residue in left(kept_ids, closed):
            self._list(kept_ids[number], FIELD, residue, (residue.start, residue.end), kept_ids[number])

    def _list(self, name: str, column: str, residue: Residue, raw_extent: tuple[int, int], raw: str) -> None:
        location: dict[str, str | int] = {"table": self.table, "id": name, "field": column}
        finding: dict[str, str | int] = {"start": residue.start, "end": residue.end, "reason": residue.reason}
        link = residual_decisions.text_link(self.key, raw)
        self.residual.append(
            {**location, **finding, "raw_start": raw_extent[0], "raw_end": raw_extent[1], "link": link}
        )

    def _note(self, name: str, key: str, raw: str, masked: Masked) -> None:
        for span in masked.spans:
            extent: dict[str, str | int] = {"table": self.table, "id": name, "field": key}
            kind: dict[str, str | int] = {"kind": span.kind, "recogniser": span.recogniser}
            text_link = link(self.key, span.kind, raw[span.start : span.end])
            self.spans.append({**extent, "start": span.start, "end": span.end, **kind, "link": text_link})
