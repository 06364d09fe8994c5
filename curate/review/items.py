"""Draw a sample of the items of a task type, such as pairs of sentences, for assessors to check.

A row shows an item's texts and the question of the task type, but neither its published label nor its stratum. The
sample is frozen with texts and labels, so that figures refer to the texts that assessors read.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from curate.core.config import Json, digest
from curate.core.errors import ConfigError, DataError, suggestion
from curate.core.sampling import shuffled
from curate.core.scale import Scale
from curate.panel import sampling_design
from curate.review.desk import Desk, desks
from curate.review.drawing import SampleOptions, SampleQuestion, freeze
from curate.review.planning import Planned, SamplePlan
from curate.review.sample import ITEM_FORMS, Sample, Stratum
from curate.stats.sample_estimates import LEVEL, StratumCounts, share
from curate.system.files import read_table
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import BenchmarkKind, ReviewItems

GUESS = 0.1
"""Anticipated share of items whose published label assessors do not confirm."""
PRECISION = "published labels that people confirm (precision)"


def checkable() -> dict[str, BenchmarkKind]:
    """Return name -> task type, of those whose items assessors can review."""
    return {kind.name: kind for kind in kinds() if kind.checkable}


def chosen(name: str) -> BenchmarkKind:
    """Return the `checkable` task type with this name, else the one with a table of this name; ConfigError if none."""
    by_name = checkable()
    by_any_name = by_name | {member.table: member for member in reversed(by_name.values())}
    if name not in by_any_name:
        raise ConfigError(
            f"--of: found {name!r}, expected labels, audit, or a kind of benchmark; {suggestion(name, by_name)}"
        )
    return by_any_name[name]


def of_run(run: Path, kind: BenchmarkKind) -> ReviewItems:
    """Return a run's items of a task type; DataError if its stage has not run or made none."""
    folder = run / str(kind.stage)
    if not (folder / f"{kind.table}.parquet").is_file():
        raise DataError(
            f"{run}: the stage {kind.stage!r} has not run, so there is no item of the kind {kind.name!r} to check; "
            f"run `curate {kind.stage}` first"
        )
    items = kind.to_review(read_table(folder, kind.table, kind.columns))
    if items is None or items.rows.is_empty():
        raise DataError(f"{folder}: {kind.table} has no row, so there is nothing to check; see `curate show dropped`")
    return items


def plan(run: Path, order: SampleOptions) -> SamplePlan:
    """Return the design of a sample of items, with the half width to expect; nothing is written."""
    return _planned(of_run(run, chosen(order.of)), order)


def draw(run: Path, order: SampleOptions) -> Sample:
    """Draw a sample of items and freeze it in `reviews/NAME`; the same options and run give the same rows."""
    folder, kind = run / "reviews" / order.name, chosen(order.of)
    Sample.refuse(folder)
    items = of_run(run, kind)
    planned = _planned(items, order)
    keyed = items.rows.with_columns(query_id="item_id", doc_id=pl.lit(""))  # the key columns that `draw` sorts by
    rows = sampling_design.draw(keyed, {entry.stratum: entry.drawn for entry in planned.strata}, order.seed)
    facts: dict[str, Json] = {
        "of": kind.name,
        "table": kind.table,
        "items": state(items),
        "question": dict(items.question),
    }
    question = SampleQuestion(ITEM_FORMS[_text_count(items) - 1], _scale(kind, items), items.meanings)
    strata = [Stratum(entry.stratum, entry.size, entry.drawn) for entry in planned.strata]
    return freeze(folder, question, order, strata, _placed(rows, _text_count(items), order), facts)


def state(items: ReviewItems) -> str:
    """Return a digest of the published items, texts and labels."""
    return digest([list(row) for row in items.rows.select("item_id", "text1", "text2", "label").sort("item_id").rows()])


def item_desks(run: Path, table: str | None = None) -> list[Desk]:
    """Return the samples of a run's items, sorted by name, for the task types of one table or of all tables."""
    reviews = [review for review in desks(run) if review.sample.of_items]
    return [review for review in reviews if table in (None, review.sample.design.facts["table"])]


def _planned(items: ReviewItems, order: SampleOptions) -> SamplePlan:
    sizes = sampling_design.counts(items.rows)
    margin = order.aims.get("precision")
    size = order.size or _needed(sizes, margin or 0)
    drawn = _allocated(sizes, size)
    strata = [Planned(name, n, drawn[name], drawn[name] / n, GUESS) for name, n in sorted(sizes.items())]
    return SamplePlan(tuple(strata), LEVEL, {}, {}, {PRECISION: _half_width(sizes, drawn)})


def _allocated(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    return sampling_design.allocate(sizes, dict.fromkeys(sizes, GUESS), size)


def _half_width(sizes: Mapping[str, int], drawn: Mapping[str, int]) -> float | None:
    estimate = share([StratumCounts(size, drawn[name], drawn[name] * (1 - GUESS)) for name, size in sizes.items()])
    return None if estimate is None else (estimate.high - estimate.low) / 2


def _needed(sizes: Mapping[str, int], margin: float) -> int:
    """Return the smallest sample size with an anticipated half width of at most `margin`, by bisection."""
    least = sum(min(sampling_design.LEAST, n) for n in sizes.values())

    def fits(size: int) -> bool:
        width = _half_width(sizes, _allocated(sizes, size))
        return width is not None and width <= margin

    return sampling_design.smallest(least, sum(sizes.values()), fits)


def _scale(kind: BenchmarkKind, items: ReviewItems) -> Scale:
    """Return the task type's answers as a nominal scale; DataError if they are invalid or lack a published label."""
    strange = sorted(set(items.rows["label"].to_list()) - set(items.answers))
    if strange:
        raise DataError(f"{kind.table}: found the label {strange[0]!r}, expected one of {', '.join(items.answers)}")
    try:
        return Scale(tuple(items.answers), order="nominal")
    except ValueError as error:
        raise DataError(f"{kind.table}: its labels cannot be the answers of a sheet: {error}") from error


def _text_count(items: ReviewItems) -> int:
    return 1 if items.rows["text2"].null_count() == items.rows.height else 2


def _placed(rows: pl.DataFrame, texts: int, order: SampleOptions) -> pl.DataFrame:
    """Return items with ids and texts in reading order, which is random."""
    mixed = rows[shuffled(range(len(rows)), order.seed, "review", "items")]
    text_columns = [pl.col(f"text{number}").fill_null("") for number in range(1, texts + 1)]
    return mixed.with_columns(ids=pl.concat_list("item_id"), texts=pl.concat_list(text_columns), verdict="label")
