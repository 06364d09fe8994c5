"""Comparison of two versions of a benchmark: changed labels, their reasons, and effects on systems.

Nothing is sent, and neither version is modified.
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
from curate.runs import rankings as run_files
from curate.system.files import replacing


@dataclass(frozen=True)
class DiffOptions:
    """Rankings of further systems: TREC runs or predictions of mteb, of which `subset` and `split` select a part."""

    runs: Sequence[Path] = ()
    subset: str | None = None
    split: str | None = None


def diff(before: Path, after: Path, asked: DiffOptions | None = None) -> tuple[dict[str, Json], pl.DataFrame]:
    """Return figures on the difference of two versions, and the table of changed labels (`changes.COLUMNS`).

    Intervals resample queries with the seed of the first version that has one. UserError for a folder that is not a
    version of a benchmark, and for a run file without a query of it. ConfigError for run files if neither version is a
    run.
    """
    old, new = load_both(before, after)
    table = differing.changes(old, new)
    changed = table.filter(pl.col("before").ne_missing(pl.col("after")))
    graded = old.graded is not None and new.graded is not None
    seed = next(version.seed for version in (new, old) if version.seed is not None)
    figures: dict[str, Json] = {
        "before": str(before),
        "after": str(after),
        "pairs": _pairs(old, new),
        "texts": {
            name: {change: [*ids] for change, ids in ids_by_change.items()}
            for name, ids_by_change in differing.altered(old, new).items()
        },
        "changed": len(changed),
        "moves": _counted(changed, ["before", "after"]),
        "reasons": _counted(changed, ["reason"]),
        "gains": _gains(table) if graded else None,
        "kinds": [*changes.compared(before, after)],
        "other_votes": differing.other_votes(old, new),
        "effects": changes.effects(old, new, _files(old, new, asked or DiffOptions()), seed),
    }
    return figures, table


def _pairs(old: LabelVersion, new: LabelVersion) -> dict[str, Json]:
    """Return the numbers of pairs judged in both versions and in one only, and of pairs by verdict."""
    sides = [version.verdicts.select(PAIR) for version in (old, new)]
    return {
        "both": len(sides[0].join(sides[1], on=PAIR, how="semi")),
        "before_only": len(sides[0].join(sides[1], on=PAIR, how="anti")),
        "after_only": len(sides[1].join(sides[0], on=PAIR, how="anti")),
        "verdicts_before": dict(sorted(Counter(old.verdicts["verdict"]).items())),
        "verdicts_after": dict(sorted(Counter(new.verdicts["verdict"]).items())),
    }


def _counted(table: pl.DataFrame, by: list[str]) -> list[Json]:
    """Return one row per value of `by`: changed pairs, and how many became or ceased to be relevant; largest first."""
    won = (pl.col("after") == "relevant") & pl.col("before").ne_missing("relevant")
    lost = (pl.col("before") == "relevant") & pl.col("after").ne_missing("relevant")
    rows = table.group_by(by).agg(
        pairs=pl.len(), relevant_won=won.fill_null(value=False).sum(), relevant_lost=lost.fill_null(value=False).sum()
    )
    return [*rows.sort(pl.col("pairs"), *by, descending=[True, *[False] * len(by)], nulls_last=True).to_dicts()]


def _gains(table: pl.DataFrame) -> dict[str, Json]:
    """Return the numbers of pairs with a changed gain, by old and new gain and by reason; no gain counts as 0."""
    rows = table.filter(pl.col("gain_before").ne_missing(pl.col("gain_after")))
    rows_by_name: dict[str, list[Json]] = {}
    for name, by in (("moves", ["gain_before", "gain_after"]), ("reasons", ["reason"])):
        counts = rows.group_by(by).agg(pairs=pl.len())
        rows_by_name[name] = [
            *counts.sort("pairs", *by, descending=[True, *[False] * len(by)], nulls_last=True).to_dicts()
        ]
    return {"changed": len(rows), "moves": rows_by_name["moves"], "reasons": rows_by_name["reasons"]}


def _files(old: LabelVersion, new: LabelVersion, options: DiffOptions) -> pl.DataFrame:
    """Return the rankings of run files, read with the later version that is a run, and with its ids."""
    context = new.context or old.context
    if not options.runs:
        return pl.DataFrame(schema=TABLES["rankings"])
    if context is None:
        raise ConfigError("--run-file: neither side is a run, whose ids a run file needs; give a run folder for one")
    rankings = run_files.rankings(context, options.runs, options.subset, options.split)
    systems = {*rankings["retriever"]}
    if unranked := [str(path) for path in options.runs if run_files.system_name(path) not in systems]:
        raise UserError(
            f"--run-file: found no query of the run in {', '.join(unranked)}; give rankings by its query ids"
        )
    return rankings


# Table of changed labels as a file.

FORMS = (".csv", ".parquet")


def need_form(path: Path) -> Path:
    """Return `path`; ConfigError unless it has one of the endings `FORMS`."""
    if path.suffix not in FORMS:
        raise ConfigError(f"--out: found {path.name}; expected a name that ends with {' or '.join(FORMS)}")
    return path


def write(table: pl.DataFrame, path: Path) -> None:
    """Write the table of changed labels atomically, as CSV or Parquet by the ending of `path`.

    As in qrels, ids that a spreadsheet may take for formulas are not escaped.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            table.write_csv(temporary, include_bom=True)
        else:
            table.write_parquet(temporary)
