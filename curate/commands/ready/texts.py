"""Points on exported texts: none empty or duplicated, none in two splits, and their lengths."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint
from curate.tables.kinds.benchmark_kind import COLUMNS

RETRIEVED = {"corpus": ("title", "text"), "queries": ("text",)}
"""Configuration of a retrieval task -> columns in which rows must differ."""
TITLE = "title"
"""Column that may be empty."""


@dataclass(frozen=True)
class TextTable:
    """The texts of one configuration of a task, by split."""

    place: str
    """Task and configuration, for messages."""
    parts: Sequence[pl.DataFrame]

    @property
    def empty(self) -> int:
        """Return the number of rows with a missing or blank text."""
        blank = pl.any_horizontal((_bare(name) == "").fill_null(True) for name in self._columns)
        return sum(split.filter(blank).height for split in self.parts)

    @property
    def lengths(self) -> pl.Series:
        """Return the characters of every text, without surrounding blanks."""
        counted = [
            split.select(_bare(name).str.len_chars()).to_series() for split in self.parts for name in self._columns
        ]
        return pl.concat([lengths.rename("characters") for lengths in counted]).drop_nulls()

    @property
    def _columns(self) -> list[str]:
        return [name for name in self.parts[0].columns if name != TITLE]


def _bare(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.strip_chars()


def texts(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on texts: ok if none is empty or duplicated, within or between splits."""
    problems = [problem for table in tables(evidence) for problem in _problems(table)]
    if problems:
        return ReadyPoint("texts", "not ok", "; ".join(problems), evidence.command("texts"))
    return ReadyPoint("texts", "ok", "no text is empty or there twice, and no split holds a text of another")


def lengths(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on lengths: ok if no text is shorter than `limits.shortest` characters."""
    least, short, ranges = evidence.limits["shortest"], list[str](), list[str]()
    for table in tables(evidence):
        characters: list[int] = table.lengths.to_list()
        if n_short := sum(length < least for length in characters):
            short.append(f"{table.place}: {n_short:,} of {len(characters):,} texts have fewer than {least} characters")
        elif characters:
            ranges.append(f"{table.place} {min(characters):,} to {max(characters):,} (mean {fmean(characters):.0f})")
    if short:
        finding = f"{'; '.join(short)}; take them out of the source"
        return ReadyPoint("lengths", "not ok", finding, evidence.command("short"))
    return ReadyPoint("lengths", "ok", f"characters: {', '.join(ranges)}")


def tables(evidence: ReadyEvidence) -> Iterator[TextTable]:
    """Yield the tables of texts of every exported task."""
    for folder, front in evidence.fronts.items():
        type_columns = COLUMNS.get(front["mteb"]["type"])
        for config in front["configs"]:
            name = config["config_name"]
            columns = (
                RETRIEVED.get(name, ()) if type_columns is None else type_columns[0] if config.get("default") else ()
            )
            if columns:
                yield TextTable(f"{folder} {name}", _splits(evidence, folder, config, columns))


def _splits(
    evidence: ReadyEvidence, folder: str, config: Mapping[str, Sequence[Mapping[str, str]]], columns: Sequence[str]
) -> list[pl.DataFrame]:
    task_folder = evidence.run.folder / "export" / "mteb" / folder
    read = [pl.read_parquet(task_folder / file["path"]) for file in config["data_files"]]
    return [table.select([name for name in columns if name in table.columns]) for table in read]


def _problems(table: TextTable) -> Iterator[str]:
    splits = table.parts
    if table.empty:
        yield f"{table.place}: {table.empty:,} empty"
    if double := sum(split.height - split.n_unique() for split in splits):
        yield f"{table.place}: {double:,} there twice"
    if (shared := sum(split.unique().height for split in splits) - pl.concat(splits).n_unique()) > 0:
        yield f"{table.place}: {shared:,} in several splits"
