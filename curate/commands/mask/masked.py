"""What masking did to one table: its rows under their ids of now, and what it notes of them on the way."""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from curate.ask import residual_decisions
from curate.commands.mask import renaming
from curate.commands.mask.renaming import RenamedIds
from curate.core import records
from curate.core.duplicates import Firsts, made_equal
from curate.core.records import FIELDS
from curate.pii import residual
from curate.pii.masking import Masked, link
from curate.pii.pseudonyms import FIELD
from curate.pii.residual import Residue
from curate.system.files import Gathered

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
            for name, found in texts.items():
                self._note(called, name, row[name], found)
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
        if hidden := sum(span.end - span.start for found in texts for span in found.spans):
            self.lost[name] = hidden / length

    def look_over(self, rows: Sequence[MaskedRow], closed: re.Pattern[str]) -> None:
        """Note what still looks like personal data in masked rows and their ids."""
        for name in FIELDS[self.table]:
            for number, found in residual.scan([row.masked[name].text for row in rows], closed):
                row = rows[number]
                self._list(row.id, name, found, row.masked[name].raw(found.start, found.end), row.raw[name])
        kept = [row.id for row in rows if row.looked]
        for number, found in renaming.left(kept, closed):
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
