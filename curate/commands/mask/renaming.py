"""Ids that hold personal data are renamed where texts are masked, and every table of `mask` follows."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from curate.core.config import Json
from curate.core.errors import DataError
from curate.pii import pseudonyms, residual
from curate.pii.masking import Masked, Masker
from curate.pii.residual import Residue
from curate.pii.sieve import mask_all
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
