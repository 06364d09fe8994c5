"""Inter-rater agreement: Cohen's and Fleiss' kappa, Krippendorff's alpha, Gwet's AC1, from integer codes or counts.

A matrix of codes is items x raters: whole numbers from 0 to categories - 1 in the order of the scale, and -1 or None
for a missing rating. `curate.stats.tally` turns ratings into a tally and a tally into sums; every statistic is a
function of sums. Sums of several clusters or bootstrap samples may be stacked in leading axes. A statistic keeps these
axes and is NaN where it is not defined; `scalar` turns NaN into None.

Kappa and alpha are not defined if the items with two or more ratings use one category only; percent agreement and AC1
are 1 then. Without such items, only the prevalence is defined.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from curate.stats.bootstrap import divided
from curate.stats.tally import Codes, Crosstab, Floats, Sums, Tally, tally

Missing = Literal["gwet", "drop"]
Estimator = Literal["complete", "gwet", "drop"]
Scheme = Literal["nominal", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]
Steps = Sequence[float]
"""Positions of the categories on an interval scale."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of a panel; None means not defined, never 0."""

    items: int
    under_two: int
    """Items with fewer than two ratings; only the prevalence includes them."""
    unanimous: int
    """Items with two or more ratings, all of them equal."""
    estimator: Estimator
    """How kappa treats missing ratings; `complete` if all rated items have the same number of them, two or more."""
    one_category: bool
    """Whether items with two or more ratings use one category only; all defined figures are then 1."""
    percent: float | None
    fleiss: float | None
    chance: float | None
    """Chance agreement of Fleiss' kappa."""
    z: float | None
    """Fleiss' kappa over its standard error under random ratings; None if ratings are missing."""
    randolph: float | None
    alpha_nominal: float | None
    alpha_ordinal: float | None
    alpha_interval: float | None
    ac1: float | None
    ac2_linear: float | None
    ac2_quadratic: float | None
    prevalence: tuple[float | None, ...]
    """Share of each category: the mean, over rated items, of the category's share of the item's ratings."""
    specific: tuple[float | None, ...]
    """Probability that a second rating is in a category given that a first is.

    None for a category without rating pairs.
    """


def measure(codes: Codes, categories: int, missing: Missing = "gwet") -> Agreement:
    """Return the agreement in a matrix of codes, items x raters; `missing` is kappa's estimator if some are missing."""
    return summary(tally(codes, categories), missing)


def summary(ratings: Tally, missing: Missing = "gwet", steps: Steps | None = None) -> Agreement:
    """Return the agreement in a tally; Fleiss' kappa of complete ratings comes from statsmodels.

    `steps` are the positions of the categories on the scale (default 0, 1, 2 ...), used by weights and the interval
    alpha.
    """
    sums, rows, times = ratings.sums(), ratings.patterns, ratings.times()
    totals = rows.sum(axis=1)
    paired = totals >= 2
    complete = bool(paired.any()) and len(np.unique(totals[totals > 0])) == 1
    return Agreement(
        items=int(times.sum()),
        under_two=int(times[~paired].sum()),
        unanimous=int(times[paired & (rows.max(axis=1, initial=0) == totals)].sum()),
        estimator="complete" if complete else missing,
        one_category=int((sums.counts > 0).sum()) == 1,
        percent=scalar(percent(sums)),
        fleiss=_fleiss_complete(ratings) if complete else scalar(fleiss(sums, missing)),
        chance=scalar(chance(sums, missing)),
        z=scalar(fleiss_z(sums)) if complete else None,
        randolph=scalar(randolph(sums)),
        alpha_nominal=scalar(alpha(sums)),
        alpha_ordinal=scalar(alpha(sums, "ordinal")),
        alpha_interval=scalar(alpha(sums, "interval", steps)),
        ac1=scalar(ac(sums)),
        ac2_linear=scalar(ac(sums, "linear", steps)),
        ac2_quadratic=scalar(ac(sums, "quadratic", steps)),
        prevalence=tuple(scalar(share) for share in prevalence(sums)),
        specific=tuple(scalar(figure) for figure in specific(sums)),
    )


def scalar(figure: npt.ArrayLike) -> float | None:
    """Return a single figure as a float; None if it is NaN (not defined)."""
    number = float(np.asarray(figure))
    return None if np.isnan(number) else number


def percent(sums: Sums) -> Floats:
    """Return percent agreement (P-bar), 0 to 1: the mean share of agreeing rater pairs over items with two or more."""
    return divided(np.trace(sums.pairs, axis1=-2, axis2=-1), sums.paired)


def prevalence(sums: Sums) -> Floats:
    """Return the mean share of each category in an item's ratings, over rated items; shape (..., categories)."""
    return divided(sums.share, sums.rated[..., None])


def chance(sums: Sums, missing: Missing = "gwet") -> Floats:
    """Return the chance agreement in Fleiss' kappa, 0 to 1, by one of the two estimators of `fleiss`."""
    pooled = divided(sums.counts, sums.counts.sum(axis=-1, keepdims=True))
    shares = prevalence(sums) if missing == "gwet" else pooled
    return np.asarray((shares**2).sum(axis=-1))


def fleiss(sums: Sums, missing: Missing = "gwet") -> Floats:
    """Return Fleiss' kappa (1971), with one of two estimators of chance agreement if ratings are missing.

    `gwet` (Gwet 2014) computes it from the prevalence over all rated items, including those with one rating. `drop`
    pools the ratings of items with two or more. Both equal Fleiss' kappa if no ratings are missing.
    """
    return _unless_one_category(sums, _beyond_chance(percent(sums), chance(sums, missing)))


def fleiss_z(sums: Sums) -> Floats:
    """Return z: Fleiss' kappa over its standard error under random ratings (Fleiss, Nee and Landis 1979).

    The ratings must be complete.
    """
    shares, ratings = prevalence(sums), sums.counts.sum(axis=-1)
    ratings_per_item = divided(ratings, sums.paired)
    complement = 1 - shares
    spread = (shares * complement).sum(axis=-1)
    skew = (shares * complement * (complement - shares)).sum(axis=-1)
    return divided(fleiss(sums) * spread, np.sqrt(divided(2 * (spread**2 - skew), ratings * (ratings_per_item - 1))))


def randolph(sums: Sums) -> Floats:
    """Return Randolph's kappa (2005), with chance agreement 1 / categories."""
    return _beyond_chance(percent(sums), np.full(sums.paired.shape, 1 / sums.share.shape[-1]))


def ac(sums: Sums, scheme: Scheme = "nominal", steps: Steps | None = None) -> Floats:
    """Return Gwet's AC1 (2008), or AC2 with linear or quadratic weights; chance agreement comes from the prevalence."""
    weights = 1 - _cost(scheme, sums.share.shape[-1], steps)
    shares = prevalence(sums)
    spread = weights.sum() / max(len(weights) * (len(weights) - 1), 1)
    observed = divided((sums.pairs * weights).sum(axis=(-2, -1)), sums.paired)
    return _beyond_chance(observed, spread * (shares * (1 - shares)).sum(axis=-1))


def alpha(sums: Sums, level: Level = "nominal", steps: Steps | None = None) -> Floats:
    """Return Krippendorff's alpha (2011): 1 is perfect, 0 is chance, below 0 is worse; single ratings are excluded.

    Disagreement is a squared distance: of `ordinal` in ranks of the pooled ratings, of `interval` in `steps`.
    """
    cost = _squared_distance(sums.counts, level, steps)
    observed = (sums.coincidence * cost).sum(axis=(-2, -1))
    expected = (sums.counts[..., :, None] * sums.counts[..., None, :] * cost).sum(axis=(-2, -1))
    return _unless_one_category(sums, 1 - divided((sums.counts.sum(axis=-1) - 1) * observed, expected))


def cohen(ratings: Crosstab, scheme: Scheme = "nominal", steps: Steps | None = None) -> Floats:
    """Return Cohen's kappa of two raters (1960), or weighted kappa (1968); NaN if both use the same single category."""
    table, cost = ratings.table, _cost(scheme, ratings.table.shape[-1], steps)
    by_chance = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
    observed = (table * cost).sum(axis=(-2, -1)) * table.sum(axis=(-2, -1))
    return 1 - divided(observed, (by_chance * cost).sum(axis=(-2, -1)))


def cohen_error(ratings: Crosstab, scheme: Scheme = "nominal", steps: Steps | None = None) -> Floats:
    """Return the standard error of Cohen's kappa by the delta method; it assumes independent items."""
    total = ratings.table.sum(axis=(-2, -1))
    slope = cohen_slope(ratings, scheme, steps)
    mean = divided((ratings.table * slope).sum(axis=(-2, -1)), total)
    return np.asarray(np.sqrt((ratings.table * (slope - mean[..., None, None]) ** 2).sum(axis=(-2, -1))))


def cohen_slope(ratings: Crosstab, scheme: Scheme = "nominal", steps: Steps | None = None) -> Floats:
    """Return the derivative of Cohen's kappa with respect to each cell's count; shape (..., categories, categories)."""
    table, cost = ratings.table, _cost(scheme, ratings.table.shape[-1], steps)
    rows, columns = table.sum(axis=-1) @ cost, table.sum(axis=-2) @ cost
    total = table.sum(axis=(-2, -1))[..., None, None]
    observed = (table * cost).sum(axis=(-2, -1))[..., None, None]
    expected = (table.sum(axis=-1) * columns).sum(axis=-1)[..., None, None]
    by_chance = columns[..., :, None] + rows[..., None, :]
    return divided(observed * total * by_chance, expected**2) - divided(cost * total + observed, expected)


def specific(sums: Sums) -> Floats:
    """Return the specific agreement of each category, shape (..., categories).

    It is the probability that a second rating of an item is in the category given that a first one is. Every item with
    two or more ratings has the same weight. NaN for a category without rating pairs.
    """
    return divided(np.diagonal(sums.pairs, axis1=-2, axis2=-1), sums.pairs.sum(axis=-1))


def _squared_distance(counts: Floats, level: Level, steps: Steps | None) -> Floats:
    """Return the squared distance of each two categories (Krippendorff); a common factor does not change alpha."""
    if level == "ordinal":
        middle = np.cumsum(counts, axis=-1) - counts / 2
        return (middle[..., :, None] - middle[..., None, :]) ** 2
    return _cost("nominal" if level == "nominal" else "quadratic", counts.shape[-1], steps)


def _cost(scheme: Scheme, categories: int, steps: Steps | None) -> Floats:
    """Return the cost of confusing two categories, at most 1: 0 or 1, or the distance on the scale, or its square."""
    if scheme == "nominal":
        return 1 - np.eye(categories)
    step = np.arange(categories, dtype=np.float64) if steps is None else np.asarray(steps, dtype=np.float64)
    # 1e-300: one category, or equal steps, have the distance 0, not 0 / 0
    distance = np.abs(step[:, None] - step[None, :]) / max(np.ptp(step), 1e-300)
    return np.asarray(distance ** (1 if scheme == "linear" else 2))


def _fleiss_complete(ratings: Tally) -> float | None:
    """Return Fleiss' kappa by statsmodels; all rated items must have the same number of ratings, two or more."""
    from statsmodels.stats.inter_rater import fleiss_kappa

    if np.isnan(_unless_one_category(ratings.sums(), np.zeros(()))):
        return None
    table, empty = ratings.table(), (ratings.patterns.sum(axis=1) == 0).any()
    return float(fleiss_kappa(table[table.sum(axis=1) > 0] if empty else table))


def _unless_one_category(sums: Sums, figure: Floats) -> Floats:
    return np.where((sums.counts > 0).sum(axis=-1) > 1, figure, np.nan)


def _beyond_chance(observed: Floats, chance: Floats) -> Floats:
    return divided(observed - chance, 1 - chance)
