"""Leniency of a judge against another's grades, and the share of relevant documents that its grades imply."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.scale import Scale
from curate.panel.position_bias import sides_of, steps_of
from curate.stats.ratios import Ratio, mean, numbered
from curate.stats.sample_estimates import LEVEL, Estimate, wilson
from curate.stats.tally import Floats

Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Leniency:
    """A judge's grades against a reference's; shares are 0 to 1, None where nothing was seen."""

    pairs: int
    steps: Ratio | None
    """Mean of the steps by which the judge is above the reference: positive is lenient."""
    cut: Ratio | None
    """Share that the judge finds relevant, less the reference's share."""
    confusion: list[list[int]]
    """Pairs by the judge's grade (rows, best first) and the reference's (columns)."""
    precision: Mapping[str, Estimate | None]
    """Grade of the judge -> share of its pairs that the reference finds relevant."""
    sensitivity: Estimate | None
    """Share of what the reference finds relevant that the judge finds relevant too."""
    specificity: Estimate | None


@dataclass(frozen=True)
class Prevalence:
    """The share of relevant pairs: as a judge has it, and corrected for its errors."""

    apparent: float
    value: float
    low: float
    high: float


def against(pairs: pl.DataFrame, seed: int, scale: Scale) -> Leniency:
    """Return how a judge grades against a reference: rows of query_id, grade, reference, and if need be weight.

    A weight is how many pairs a row stands for (one over its probability in a sample); it goes into the shares, whose
    intervals are Wilson's with Kish's effective size, (sum w)^2 / sum w^2.
    """
    rows = pairs.drop_nulls(["grade", "reference"])
    weight = rows["weight"].to_numpy().astype(np.float64) if "weight" in rows.columns else np.ones(len(rows))
    said, true = (sides_of(rows[name], scale) == 1 for name in ("grade", "reference"))
    queries, grades = numbered(rows["query_id"]), rows["grade"].to_numpy()
    counted = dict(zip(*_counts(rows), strict=True))
    return Leniency(
        pairs=len(rows),
        steps=mean(steps_of(rows["grade"], scale) - steps_of(rows["reference"], scale), queries, seed),
        cut=mean(said.astype(np.float64) - true, queries, seed),
        confusion=[[counted.get((one, two), 0) for two in scale.labels] for one in scale.labels],
        precision={grade: share(weight, true, grades == grade) for grade in scale.labels},
        sensitivity=share(weight, said, true),
        specificity=share(weight, ~said, ~true),
    )


def prevalence(
    relevant: int, pairs: int, sensitivity: Estimate | None, specificity: Estimate | None, level: float = LEVEL
) -> Prevalence | None:
    """Return the share of relevant pairs corrected for a judge's errors (Rogan & Gladen 1978), with an interval.

    (apparent + specificity - 1) / (sensitivity + specificity - 1), within 0 and 1; the interval is that of Lang &
    Reiczigel (2014), which counts that the two rates are estimates themselves. The rates must have been
    measured on pairs like these: those from easy controls correct too little. None if something was not measured, or if
    the judge does no better than chance.
    """
    if not pairs or sensitivity is None or specificity is None:
        return None
    youden = sensitivity.value + specificity.value - 1
    z = NormalDist().inv_cdf((1 + level) / 2)
    hit, right = (
        (each.value * each.effective + 1) / (each.effective + 2) if math.isfinite(each.effective) else each.value
        for each in (sensitivity, specificity)
    )
    gain = hit + right - 1
    if youden <= 0 or gain <= 0:
        return None
    apparent = relevant / pairs
    seen = (relevant + z * z / 2) / (pairs + z * z)
    middle = (seen + right - 1) / gain
    var_hit, var_right = (
        hit * (1 - hit) / (sensitivity.effective + 2),
        right * (1 - right) / (specificity.effective + 2),
    )
    shift = 2 * z * z * (middle * var_hit - (1 - middle) * var_right)
    spread = seen * (1 - seen) / (pairs + z * z) + middle**2 * var_hit + (1 - middle) ** 2 * var_right
    half = z * math.sqrt(spread) / gain
    value = _within((apparent + specificity.value - 1) / youden)
    low, high = _within(middle + shift - half), _within(middle + shift + half)
    return Prevalence(apparent, value, min(low, value), max(high, value))


def _counts(rows: pl.DataFrame) -> tuple[list[tuple[str, str]], list[int]]:
    counted = rows.group_by("grade", "reference").len()
    return list(counted.select("grade", "reference").iter_rows()), counted["len"].to_list()


def share(weight: Floats, hit: Marks, among: Marks) -> Estimate | None:
    """Return the weighted share of hits among some rows, with Kish's effective size; None without any."""
    mine = weight[among]
    total = float(mine.sum())
    if not total:
        return None
    size = max(round(total**2 / float((mine**2).sum())), 1)
    return wilson(size * float(mine[hit[among]].sum()) / total, size)


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)
