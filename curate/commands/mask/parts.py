"""Masking by the workers of an engine, which may be on other machines: parts in, what was masked in them out.

Workers read raw texts where `ingest` wrote them, and send back masked ones; no raw text goes from one to the other. The
key that draws pseudonyms goes with the work, in memory: it is in no file, and in no name or error of a task.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from curate.core.protocols import Engine
from curate.core.records import Span
from curate.pii.masking import Masked
from curate.pii.settings import Masking
from curate.pii.workers import mask_batches
from curate.system.files import BATCH

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
