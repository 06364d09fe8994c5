"""Comparison of two versions of a benchmark: changed labels, their reasons, and effects on systems.

Nothing is sent, and neither version is modified.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curate.commands.diff import changes
from curate.commands.diff.changes import KindTable, LabelEffects
from curate.commands.diff.versions import LabelVersion, load_both
from curate.core.errors import ConfigError, UserError
from curate.core.figures import Record, figure
from curate.core.records import TABLES
from curate.panel.voting import PAIR
from curate.runs import rankings
from curate.system.files import replacing


class JudgedPairs(Record, schema_name="pairs"):
    """Numbers of judged pairs."""

    both: int = figure("pairs that both versions judged")
    before_only: int = figure("pairs that the first version alone judged")
    after_only: int = figure("pairs that the second version alone judged")
    verdicts_before: Mapping[str, Any] = figure("verdict -> pairs")
    verdicts_after: Mapping[str, Any] = figure("verdict -> pairs")


class LabelMove(Record, schema_name="move"):
    """Pairs that went from one verdict to another."""

    before: str | None = figure("verdict of the first version; null for a pair that was not judged")
    after: str | None = figure("verdict of the second version; null for a pair that was not judged")
    pairs: int = figure("pairs of this change")
    relevant_won: int = figure("pairs that became relevant")
    relevant_lost: int = figure("pairs that are no longer relevant")


class ChangeReason(Record, schema_name="reason"):
    """Pairs whose verdict changed for one reason."""

    reason: str = figure("why the verdict differs")
    pairs: int = figure("pairs of this reason")
    relevant_won: int = figure("pairs that became relevant")
    relevant_lost: int = figure("pairs that are no longer relevant")


class GainMove(Record):
    """Pairs that went from one gain to another."""

    gain_before: int | None = figure("gain in the first version; null for a pair that was not judged")
    gain_after: int | None = figure("gain in the second version; null for a pair that was not judged")
    pairs: int = figure("pairs of this change")


class GainReason(Record):
    """Pairs whose gain changed for one reason."""

    reason: str = figure("why the gain differs")
    pairs: int = figure("pairs of this reason")


class GainChanges(Record, schema_name="gains"):
    """Changes of graded labels."""

    changed: int = figure("pairs whose gain differs, or that one version alone judged")
    moves: tuple[GainMove, ...] = figure("pairs by old and new gain")
    reasons: tuple[GainReason, ...] = figure("pairs by reason of the change")


class DiffFigures(Record, schema_name="diff"):
    """Labels that differ between two versions of a benchmark, why, and what that does to systems."""

    before: str = figure("the first folder")
    after: str = figure("the second folder")
    pairs: JudgedPairs = figure("judged pairs of the versions")
    texts: Mapping[str, Any] = figure("queries and documents -> before_only, after_only, text_differs: ids")
    changed: int = figure("pairs whose verdict differs, or that one version alone judged")
    moves: tuple[LabelMove, ...] = figure("pairs by old and new verdict")
    reasons: tuple[ChangeReason, ...] = figure("pairs by reason of the change")
    gains: GainChanges | None = figure("changes of graded labels; null unless both versions have them")
    kinds: tuple[KindTable, ...] = figure("exported tables of kinds with labels of their own that differ")
    other_votes: int = figure("pairs whose verdict is equal and whose grades differ")
    effects: LabelEffects | None = figure("effects on systems; null without rankings")
    file: str | None = figure("the table of changed labels", default=None)


def diff(
    before: Path, after: Path, run_files: Sequence[Path] = (), subset: str | None = None, split: str | None = None
) -> tuple[DiffFigures, pl.DataFrame]:
    """Return figures on the difference of two versions, and the table of changed labels (`changes.COLUMNS`).

    `run_files` are rankings of further systems; `subset` and `split` select a part of predictions of mteb.
    Intervals resample queries with the seed of the first version that has one. UserError for a folder that is not a
    version of a benchmark, and for a run file without a query of it. ConfigError for run files if neither version is a
    run.
    """
    old, new = load_both(before, after)
    table = changes.changes(old, new)
    changed = table.filter(pl.col("before").ne_missing(pl.col("after")))
    graded = old.graded is not None and new.graded is not None
    seed = next(version.seed for version in (new, old) if version.seed is not None)
    won = (pl.col("after") == "relevant") & pl.col("before").ne_missing("relevant")
    lost = (pl.col("before") == "relevant") & pl.col("after").ne_missing("relevant")
    relevance = {"relevant_won": won.fill_null(value=False).sum(), "relevant_lost": lost.fill_null(value=False).sum()}
    figures = DiffFigures(
        before=str(before),
        after=str(after),
        pairs=_pairs(old, new),
        texts=changes.altered(old, new),
        changed=len(changed),
        moves=tuple(LabelMove(*row) for row in _counted(changed, "before", "after", **relevance)),
        reasons=tuple(ChangeReason(*row) for row in _counted(changed, "reason", **relevance)),
        gains=_gains(table) if graded else None,
        kinds=tuple(changes.compared(before, after)),
        other_votes=changes.other_votes(old, new),
        effects=changes.effects(old, new, _rankings(old, new, run_files, subset, split), seed),
    )
    return figures, table


def _pairs(old: LabelVersion, new: LabelVersion) -> JudgedPairs:
    """Return the numbers of pairs judged in both versions and in one only, and of pairs by verdict."""
    sides = [version.verdicts.select(PAIR) for version in (old, new)]
    return JudgedPairs(
        both=len(sides[0].join(sides[1], on=PAIR, how="semi")),
        before_only=len(sides[0].join(sides[1], on=PAIR, how="anti")),
        after_only=len(sides[1].join(sides[0], on=PAIR, how="anti")),
        verdicts_before=dict(sorted(Counter(old.verdicts["verdict"]).items())),
        verdicts_after=dict(sorted(Counter(new.verdicts["verdict"]).items())),
    )


def _counted(table: pl.DataFrame, *by: str, **sums: pl.Expr) -> Iterator[tuple[Any, ...]]:
    """Yield one row per value of the columns `by`: these values, the number of pairs, and `sums`; largest first."""
    rows = table.group_by(by).agg(pairs=pl.len(), **sums)
    yield from rows.sort("pairs", *by, descending=[True, *[False] * len(by)], nulls_last=True).iter_rows()


def _gains(table: pl.DataFrame) -> GainChanges:
    """Return the numbers of pairs with a changed gain, by old and new gain and by reason; no gain counts as 0."""
    rows = table.filter(pl.col("gain_before").ne_missing(pl.col("gain_after")))
    return GainChanges(
        changed=len(rows),
        moves=tuple(GainMove(*row) for row in _counted(rows, "gain_before", "gain_after")),
        reasons=tuple(GainReason(*row) for row in _counted(rows, "reason")),
    )


def _rankings(
    old: LabelVersion, new: LabelVersion, run_files: Sequence[Path], subset: str | None, split: str | None
) -> pl.DataFrame:
    """Return the rankings of run files, read with the later version that is a run, and with its ids."""
    context = new.context or old.context
    if not run_files:
        return pl.DataFrame(schema=TABLES["rankings"])
    if context is None:
        raise ConfigError("--run-file: neither side is a run, whose ids a run file needs; give a run folder for one")
    table = rankings.rankings(context, run_files, subset, split)
    systems = {*table["retriever"]}
    if unranked := [str(path) for path in run_files if rankings.system_name(path) not in systems]:
        raise UserError(
            f"--run-file: found no query of the run in {', '.join(unranked)}; give rankings by its query ids"
        )
    return table


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
