"""Audit counts corrected by people's answers to a sample."""

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

    `precision` is the share of the claimed false negatives that people confirm. `pairs` are the current ones of
    `audit.strata`; a sample drawn from others is `outdated` and corrects nothing.
    """
    design = desk.sample.design
    if _outdated(desk, pairs):
        return {"sample": design.name, "outdated": True}
    answers = [(row.ids[0], row.stratum, row.relevant) for row in checked(desk) if row.settled]
    columns = {"query_id": pl.String, "stratum": pl.String, "relevant": pl.Boolean}
    corrected = correction.correct(pairs, pl.DataFrame(answers, columns, orient="row"), queries)
    return {
        "sample": design.name,
        "outdated": False,
        "answered": corrected.answered,
        **{name: _shown(getattr(corrected, name)) for name in FIGURES},
    }


def _outdated(sample_answers: Desk, pairs: pl.DataFrame) -> bool:
    """Whether sizes of strata, or the stratum of a sampled pair, have changed since the sample was drawn."""
    drawn = sample_answers.sample.survey.filter(pl.col("expected").is_null()).select(
        "stratum", query_id=pl.col("ids").list.get(0), doc_id=pl.col("ids").list.get(1)
    )
    sizes = dict(pairs.group_by("stratum").len().iter_rows())
    moved = drawn.join(pairs, on=["query_id", "doc_id", "stratum"], how="anti")
    return len(moved) > 0 or sizes != {stratum.name: stratum.size for stratum in sample_answers.sample.design.strata}


def _shown(figure: Bounded | None) -> dict[str, Json] | None:
    """Return a figure and its bounds, rounded; None if a stratum that it needs has no answer."""
    if figure is None:
        return None
    return {**figure.bounds(5), "answered": figure.answered}
