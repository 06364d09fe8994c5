"""Counts of an audit corrected by the answers to a sample of it."""

from collections.abc import Sequence

import polars as pl

from curate.commands.audit import correction
from curate.core.config import Json
from curate.review.agreement import checked
from curate.review.desk import Desk
from curate.stats.sample_estimates import Bounded

FIGURES = ("false_negatives", "false_positives", "positives", "precision")


def correct(desk: Desk, pairs: pl.DataFrame, queries: Sequence[str]) -> dict[str, Json]:
    """Return the corrected means as plain mappings: false_negatives, false_positives, positives, and precision.

    `precision` is the share of the claimed false negatives that people confirm. `pairs` are those of `audit.strata`
    now: if they are not those that the sample was drawn of, it is `outdated` and corrects nothing.
    """
    design = desk.sample.design
    if _outdated(desk, pairs):
        return {"sample": design.name, "outdated": True}
    read = [(row.ids[0], row.stratum, row.relevant) for row in checked(desk) if row.settled]
    columns = {"query_id": pl.String, "stratum": pl.String, "relevant": pl.Boolean}
    found = correction.correct(pairs, pl.DataFrame(read, columns, orient="row"), queries)
    return {
        "sample": design.name,
        "outdated": False,
        "answered": found.answered,
        **{name: _shown(getattr(found, name)) for name in FIGURES},
    }


def _outdated(desk: Desk, pairs: pl.DataFrame) -> bool:
    """Say whether the strata have other sizes, or a drawn pair another stratum, than when the sample was drawn."""
    drawn = desk.sample.survey.filter(pl.col("expected").is_null()).select(
        "stratum", query_id=pl.col("ids").list.get(0), doc_id=pl.col("ids").list.get(1)
    )
    sizes = dict(pairs.group_by("stratum").len().iter_rows())
    moved = drawn.join(pairs, on=["query_id", "doc_id", "stratum"], how="anti")
    return len(moved) > 0 or sizes != {stratum.name: stratum.size for stratum in desk.sample.design.strata}


def _shown(figure: Bounded | None) -> dict[str, Json] | None:
    """Return a figure and its bounds, rounded; None where a stratum that it needs has no answer."""
    if figure is None:
        return None
    return {**figure.bounds(5), "answered": figure.answered}
