"""Leniency of a judge compared with reference grades, and the share of relevant pairs corrected for its errors."""

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.figures import Record, figure
from curate.core.scale import Scale
from curate.panel.position_bias import sides_of, steps_of
from curate.stats.ratios import Ratio, mean, numbered
from curate.stats.sample_estimates import LEVEL, Estimate, wilson
from curate.stats.tally import Floats

Marks = npt.NDArray[np.bool_]


class Leniency(Record, schema_name="against"):
    """A judge's grades compared with reference grades; shares are from 0 to 1, None without a pair."""

    pairs: int = figure("pairs with both grades")
    steps: Ratio | None = figure("mean difference of the grades, in steps of the scale; positive means lenient")
    cut: Ratio | None = figure("difference of the shares of relevant pairs; positive means lenient")
    confusion: tuple[tuple[int, ...], ...] = figure(
        "pairs by the judge's grade (rows, best first) and the reference's (columns, best first)"
    )
    precision: Mapping[str, Estimate | None] = figure(
        "grade of the judge -> share of its pairs that the reference finds relevant"
    )
    sensitivity: Estimate | None = figure("share of the reference's relevant pairs that the judge finds relevant too")
    specificity: Estimate | None = figure(
        "share of the reference's pairs that are not relevant which the judge finds not relevant"
    )


class Prevalence(Record):
    """Share of pairs that are relevant, corrected for the judge's errors."""

    apparent: float = figure("share that the judge finds relevant", nullable=True)
    value: float = figure("share corrected for the judge's errors", nullable=True)
    low: float = figure("lower bound of its interval", nullable=True)
    high: float = figure("upper bound", nullable=True)
    source: str = figure("data on which the errors were measured: people or controls", default="")


def against(pairs: pl.DataFrame, seed: int, scale: Scale) -> Leniency:
    """Return the comparison of a judge's grades with reference grades.

    `pairs` has query_id, grade, reference, and optionally weight: one over the sampling probability of the row. Only
    the shares are weighted; their intervals are Wilson's with Kish's effective size, (sum w)^2 / sum w^2.
    """
    rows = pairs.drop_nulls(["grade", "reference"])
    weight = rows["weight"].to_numpy().astype(np.float64) if "weight" in rows.columns else np.ones(len(rows))
    judged_relevant, relevant = (sides_of(rows[name], scale) == 1 for name in ("grade", "reference"))
    queries, grades = numbered(rows["query_id"]), rows["grade"].to_numpy()
    pair_counts = {
        (grade, reference): n for grade, reference, n in rows.group_by("grade", "reference").len().iter_rows()
    }
    return Leniency(
        pairs=len(rows),
        steps=mean(steps_of(rows["grade"], scale) - steps_of(rows["reference"], scale), queries, seed),
        cut=mean(judged_relevant.astype(np.float64) - relevant, queries, seed),
        confusion=tuple(tuple(pair_counts.get((row, column), 0) for column in scale.labels) for row in scale.labels),
        precision={grade: share(weight, relevant, grades == grade) for grade in scale.labels},
        sensitivity=share(weight, judged_relevant, relevant),
        specificity=share(weight, ~judged_relevant, ~relevant),
    )


def prevalence(
    relevant: int, pairs: int, sensitivity: Estimate | None, specificity: Estimate | None, level: float = LEVEL
) -> Prevalence | None:
    """Return the share of relevant pairs corrected for a judge's errors (Rogan & Gladen 1978), with an interval.

    (apparent + specificity - 1) / (sensitivity + specificity - 1), clipped to [0, 1]; the interval is that of Lang &
    Reiczigel (2014), which includes the sampling error of the two rates. The rates must come from pairs like these:
    rates from easy controls correct too little. None without pairs or a rate, or if the judge is no better than chance.
    """
    if not pairs or sensitivity is None or specificity is None:
        return None
    youden = sensitivity.value + specificity.value - 1
    z = NormalDist().inv_cdf((1 + level) / 2)
    adjusted_sensitivity, adjusted_specificity = (
        (rate.value * rate.effective + 1) / (rate.effective + 2) if math.isfinite(rate.effective) else rate.value
        for rate in (sensitivity, specificity)
    )
    gain = adjusted_sensitivity + adjusted_specificity - 1
    if youden <= 0 or gain <= 0:
        return None
    apparent = relevant / pairs
    adjusted_share = (relevant + z * z / 2) / (pairs + z * z)
    center = (adjusted_share + adjusted_specificity - 1) / gain
    var_hit, var_right = (
        adjusted_sensitivity * (1 - adjusted_sensitivity) / (sensitivity.effective + 2),
        adjusted_specificity * (1 - adjusted_specificity) / (specificity.effective + 2),
    )
    shift = 2 * z * z * (center * var_hit - (1 - center) * var_right)
    spread = (
        adjusted_share * (1 - adjusted_share) / (pairs + z * z) + center**2 * var_hit + (1 - center) ** 2 * var_right
    )
    half = z * math.sqrt(spread) / gain
    corrected = _clipped((apparent + specificity.value - 1) / youden)
    low, high = _clipped(center + shift - half), _clipped(center + shift + half)
    return Prevalence(apparent, corrected, min(low, corrected), max(high, corrected))


def share(weight: Floats, hit: Marks, among: Marks) -> Estimate | None:
    """Return the weighted share of rows with `hit` among those with `among`, and its Wilson interval; None without any.

    The interval has Kish's effective size.
    """
    weights = weight[among]
    total = float(weights.sum())
    if not total:
        return None
    size = max(round(total**2 / float((weights**2).sum())), 1)
    return wilson(size * float(weights[hit[among]].sum()) / total, size)


def _clipped(share: float) -> float:
    return min(max(share, 0.0), 1.0)
