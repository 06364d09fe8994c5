"""Compare two versions of a benchmark: which labels differ, why, and what that does to systems.

Nothing is sent, and neither version is written to.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curate.commands.diff import changes
from curate.commands.diff import changes as differing
from curate.commands.diff.versions import LabelVersion, load_both
from curate.core.config import Json
from curate.core.errors import ConfigError, UserError
from curate.core.records import TABLES
from curate.panel.voting import PAIR
from curate.runs import run_files
from curate.system.files import replacing


@dataclass(frozen=True)
class DiffOptions:
    """Rankings of systems beside those that the runs hold: TREC runs, or mteb's predictions."""

    runs: Sequence[Path] = ()
    subset: str | None = None
    split: str | None = None


def diff(before: Path, after: Path, asked: DiffOptions | None = None) -> tuple[dict[str, Json], pl.DataFrame]:
    """Return the figures of two versions' difference, and the table of changed labels (`changes.COLUMNS`).

    Intervals resample queries by the seed of the first version that has one. UserError for a folder that is no version
    of a benchmark and for a run file without a query of it, ConfigError for run files where neither is a run.
    """
    one, other = load_both(before, after)
    table = differing.changes(one, other)
    changed = table.filter(pl.col("before").ne_missing(pl.col("after")))
    graded = one.graded is not None and other.graded is not None
    seed = next(each.seed for each in (other, one) if each.seed is not None)
    figures: dict[str, Json] = {
        "before": str(before),
        "after": str(after),
        "pairs": _pairs(one, other),
        "texts": {what: {**each} for what, each in _plain(differing.altered(one, other)).items()},
        "changed": len(changed),
        "moves": _counted(changed, ["before", "after"]),
        "reasons": _counted(changed, ["reason"]),
        "gains": _gains(table) if graded else None,
        "kinds": [*changes.compared(before, after)],
        "other_votes": differing.other_votes(one, other),
        "effects": changes.effects(one, other, _files(one, other, asked or DiffOptions()), seed),
    }
    return figures, table


def _plain(found: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, Json]]:
    return {what: {name: [*ids] for name, ids in each.items()} for what, each in found.items()}


def _pairs(one: LabelVersion, other: LabelVersion) -> dict[str, Json]:
    """Return how many pairs both versions judged, and each alone, and their verdicts."""
    sides = [each.verdicts.select(PAIR) for each in (one, other)]
    return {
        "both": len(sides[0].join(sides[1], on=PAIR, how="semi")),
        "before_only": len(sides[0].join(sides[1], on=PAIR, how="anti")),
        "after_only": len(sides[1].join(sides[0], on=PAIR, how="anti")),
        "verdicts_before": dict(sorted(Counter(one.verdicts["verdict"]).items())),
        "verdicts_after": dict(sorted(Counter(other.verdicts["verdict"]).items())),
    }


def _counted(table: pl.DataFrame, by: list[str]) -> list[Json]:
    """Return a row per value: pairs, and how many of them became or ceased to be relevant; most first."""
    won = (pl.col("after") == "relevant") & pl.col("before").ne_missing("relevant")
    lost = (pl.col("before") == "relevant") & pl.col("after").ne_missing("relevant")
    rows = table.group_by(by).agg(
        pairs=pl.len(), relevant_won=won.fill_null(value=False).sum(), relevant_lost=lost.fill_null(value=False).sum()
    )
    return [*rows.sort(pl.col("pairs"), *by, descending=[True, *[False] * len(by)], nulls_last=True).to_dicts()]


def _gains(table: pl.DataFrame) -> dict[str, Json]:
    """Return how many graded labels differ, by gain and by reason; 0 for a judged pair without a gain."""
    rows = table.filter(pl.col("gain_before").ne_missing(pl.col("gain_after")))
    count: dict[str, list[Json]] = {}
    for name, by in (("moves", ["gain_before", "gain_after"]), ("reasons", ["reason"])):
        found = rows.group_by(by).agg(pairs=pl.len())
        count[name] = [*found.sort("pairs", *by, descending=[True, *[False] * len(by)], nulls_last=True).to_dicts()]
    return {"changed": len(rows), "moves": count["moves"], "reasons": count["reasons"]}


def _files(one: LabelVersion, other: LabelVersion, asked: DiffOptions) -> pl.DataFrame:
    """Return the rankings of run files, by the ids of the later version that is a run."""
    context = other.context or one.context
    if not asked.runs:
        return pl.DataFrame(schema=TABLES["rankings"])
    if context is None:
        raise ConfigError("--run-file: neither side is a run, whose ids a run file needs; give a run folder for one")
    found = run_files.rankings(context, asked.runs, asked.subset, asked.split)
    known = {*found["retriever"]}
    if bare := [str(path) for path in asked.runs if run_files.system_name(path) not in known]:
        raise UserError(f"--run-file: found no query of the run in {', '.join(bare)}; give rankings by its query ids")
    return found


# Table of changed labels as a file.

FORMS = (".csv", ".parquet")


def need_form(path: Path) -> Path:
    """Return a path; ConfigError unless the file's name ends as one of `FORMS`."""
    if path.suffix not in FORMS:
        raise ConfigError(f"--out: found {path.name}; expected a name that ends with {' or '.join(FORMS)}")
    return path


def write(table: pl.DataFrame, path: Path) -> None:
    """Write the table at once; ids that a spreadsheet would take for formulas are left as they are, as in qrels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as place:
        if path.suffix == ".csv":
            table.write_csv(place, include_bom=True)
        else:
            table.write_parquet(place)
