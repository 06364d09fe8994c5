"""Sums of a panel's grades: the frame of pairs for which a threshold can be tested, and the labels by a threshold.

A grade counts with its gain on the scale. The frame holds the pairs that the whole panel graded with a mean gain of at
least 1. A review draws from every sum of the frame (`stats/acceptance.py`), so a threshold holds only within it.
"""

import polars as pl

from curate.core.errors import DataError
from curate.core.kind_tables import Columns
from curate.core.scale import Scale
from curate.panel.voting import ACCEPTED, PAIR

FRAME: Columns = {"query_id": pl.String, "doc_id": pl.String, "sum": pl.Int64}
"""Columns of a frame."""
MEAN = 1
"""Mean gain of a judge's grade at the lower end of the frame."""


def with_sums(verdicts: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return a `verdicts` table with `sum`, the sum of the gains; None where a judge gave no grade."""
    worth = dict(zip(scale.labels, scale.gains, strict=True))
    gains = pl.col("votes").list.eval(
        pl.element().struct.field("grade").replace_strict(worth, default=None, return_dtype=pl.Int64)
    )
    complete = gains.list.eval(pl.element().is_null()).list.any().not_() & (gains.list.len() > 0)
    return verdicts.with_columns(sum=pl.when(complete).then(gains.list.sum()))


def lowest(verdicts: pl.DataFrame) -> int:
    """Return the lowest sum of the frame: a mean gain of 1 per judge of the panel; DataError without votes."""
    judges = verdicts["votes"].list.len().max() if len(verdicts) else None
    if not isinstance(judges, int) or not judges:
        raise DataError("verdicts: found no votes, expected those of a panel; run `curate consensus` again")
    return MEAN * judges


def frame(verdicts: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return query_id, doc_id and sum of all pairs of the frame, sorted by key."""
    return with_sums(verdicts, scale).filter(pl.col("sum") >= lowest(verdicts)).select(*FRAME).sort(PAIR)


def publish(verdicts: pl.DataFrame, scale: Scale, least: int) -> pl.DataFrame:
    """Return the verdicts by a threshold: relevant are exactly the pairs whose grades add up to `least` or more.

    A pair below it that the policy finds relevant becomes contested, or incomplete if a grade is missing: the tested
    error rate is that of the pairs above. All other verdicts stay. DataError for a threshold below the frame, where no
    pair was reviewed.
    """
    if least < lowest(verdicts):
        raise DataError(
            f"accept: found the threshold {least}, below the lowest sum {lowest(verdicts)} of the frame that a review "
            "samples; expected one that a review has proved"
        )
    summed = with_sums(verdicts, scale)
    relevant = (pl.col("sum") >= least).fill_null(value=False)
    fallen = (pl.col("verdict") == "relevant") & ~relevant
    verdict = (
        pl.when(relevant)
        .then(pl.lit("relevant"))
        .when(fallen & pl.col("sum").is_null())
        .then(pl.lit("incomplete"))
        .when(fallen)
        .then(pl.lit("contested"))
        .otherwise("verdict")
    )
    policy = pl.when(relevant | fallen).then(pl.lit(ACCEPTED)).otherwise("policy")
    return summed.with_columns(verdict=verdict, policy=policy).select(verdicts.columns)


def settle(verdicts: pl.DataFrame, grades: pl.DataFrame, scale: Scale, policy: str) -> pl.DataFrame:
    """Return the verdicts with contested pairs decided by one judge's grades (query_id, doc_id, grade).

    Their column `policy` becomes `policy`. A pair without a grade stays contested.
    """
    sides = grades.drop_nulls("grade").select(*PAIR, settling=pl.col("grade").is_in(list(scale.relevant)))
    both = verdicts.join(sides, on=PAIR, how="left", maintain_order="left")
    open_ = (pl.col("verdict") == "contested") & pl.col("settling").is_not_null()
    side = pl.when("settling").then(pl.lit("relevant")).otherwise(pl.lit("not relevant"))
    return both.with_columns(
        verdict=pl.when(open_).then(side).otherwise("verdict"),
        policy=pl.when(open_).then(pl.lit(policy)).otherwise("policy"),
    ).select(verdicts.columns)


def spared(verdicts: pl.DataFrame) -> int:
    """Return the number of pairs skipped by a `positives` cascade, whose sums are unknown."""
    return int((verdicts["verdict"] == "not positive").sum())


def open_sums(verdicts: pl.DataFrame, stopped: pl.DataFrame, scale: Scale) -> int:
    """Return the number of pairs that may belong to the frame although a cascade skipped a judge (`stopped`: keys)."""
    if stopped.is_empty():
        return 0
    worth = dict(zip(scale.labels, scale.gains, strict=True))
    top = scale.gains[0]
    gains = pl.col("votes").list.eval(
        pl.element().struct.field("grade").replace_strict(worth, default=top, return_dtype=pl.Int64)
    )
    could = verdicts.join(stopped.select(PAIR).unique(), on=PAIR, how="semi").select(most=gains.list.sum())["most"]
    return int((could >= lowest(verdicts)).sum())
