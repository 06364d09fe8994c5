"""Points of the checklist on exported texts: none empty or there twice, no split in another, and how long they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint
from curate.tables.kinds.benchmark_kind import COLUMNS

RETRIEVED = {"corpus": ("title", "text"), "queries": ("text",)}
"""Configurations of a task that retrieves -> columns of which no two rows are to be equal."""
TITLE = "title"
"""Column that may be empty."""


@dataclass(frozen=True)
class TextTable:
    """The texts of one configuration of a task, by split."""

    place: str
    """Task and configuration, in words."""
    parts: Sequence[pl.DataFrame]

    @property
    def empty(self) -> int:
        """Return how many rows have a text that is missing or blank."""
        blank = pl.any_horizontal((_bare(name) == "").fill_null(True) for name in self._columns)
        return sum(part.filter(blank).height for part in self.parts)

    @property
    def lengths(self) -> pl.Series:
        """Return the characters of every text, blanks around it apart."""
        counted = [
            part.select(_bare(name).str.len_chars()).to_series() for part in self.parts for name in self._columns
        ]
        return pl.concat([each.rename("characters") for each in counted]).drop_nulls()

    @property
    def _columns(self) -> list[str]:
        return [name for name in self.parts[0].columns if name != TITLE]


def _bare(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.strip_chars()


def texts(known: ReadyEvidence) -> ReadyPoint:
    """Return whether no text is empty or there twice, and no text of one split is in another."""
    problems = [problem for table in tables(known) for problem in _problems(table)]
    if problems:
        return ReadyPoint("texts", "not ok", "; ".join(problems), known.command("texts"))
    return ReadyPoint("texts", "ok", "no text is empty or there twice, and no split holds a text of another")


def lengths(known: ReadyEvidence) -> ReadyPoint:
    """Return how long texts are, and whether any is too short to mean anything."""
    least, short, shown = known.limits["shortest"], list[str](), list[str]()
    for table in tables(known):
        found: list[int] = table.lengths.to_list()
        if few := sum(length < least for length in found):
            short.append(f"{table.place}: {few:,} of {len(found):,} texts have fewer than {least} characters")
        elif found:
            shown.append(f"{table.place} {min(found):,} to {max(found):,} (mean {fmean(found):.0f})")
    if short:
        said = f"{'; '.join(short)}; take them out of the source"
        return ReadyPoint("lengths", "not ok", said, known.command("short"))
    return ReadyPoint("lengths", "ok", f"characters: {', '.join(shown)}")


def tables(known: ReadyEvidence) -> Iterator[TextTable]:
    """Yield the tables of texts of every exported task."""
    for folder, front in known.fronts.items():
        own = COLUMNS.get(front["mteb"]["type"])
        for config in front["configs"]:
            name = config["config_name"]
            columns = RETRIEVED.get(name, ()) if own is None else own[0] if config.get("default") else ()
            if columns:
                yield TextTable(f"{folder} {name}", _parts(known, folder, config, columns))


def _parts(
    known: ReadyEvidence, folder: str, config: Mapping[str, Sequence[Mapping[str, str]]], columns: Sequence[str]
) -> list[pl.DataFrame]:
    place = known.run.folder / "export" / "mteb" / folder
    read = [pl.read_parquet(place / file["path"]) for file in config["data_files"]]
    return [table.select([name for name in columns if name in table.columns]) for table in read]


def _problems(table: TextTable) -> Iterator[str]:
    parts = table.parts
    if table.empty:
        yield f"{table.place}: {table.empty:,} empty"
    if double := sum(part.height - part.n_unique() for part in parts):
        yield f"{table.place}: {double:,} there twice"
    if (shared := sum(part.unique().height for part in parts) - pl.concat(parts).n_unique()) > 0:
        yield f"{table.place}: {shared:,} in several splits"
