"""Ratios of sums over pairs (share, mean, slope, correlation), with intervals that resample queries."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.figures import Figure, figure
from curate.stats import bootstrap
from curate.stats.bootstrap import DIGITS, divided, measured
from curate.stats.sample_estimates import wilson
from curate.stats.tally import Floats, Ints, Stacked

_NOTHING = 1e-12
"""Variances up to this value count as 0, because they are due to rounding."""


class Ratio(Figure, schema_name="slope"):
    """A ratio with its 95 % interval (none for fewer than two clusters)."""

    pairs: int = figure("compared pairs", default=0)
    clusters: int = figure("queries, which the interval resamples", default=0)

    def beyond(self, bound: float) -> bool:
        """Return whether the interval is entirely above `bound`, or entirely below -`bound`."""
        return self.low is not None and self.high is not None and (self.low > bound or self.high < -bound)


@dataclass(frozen=True)
class _Sums(Stacked):
    top: Floats
    bottom: Floats

    def ratio(self) -> Floats:
        return divided(self.top, self.bottom)


def ratio(top: npt.ArrayLike, bottom: npt.ArrayLike, clusters: npt.ArrayLike, seed: int) -> Ratio | None:
    """Return sum(top) / sum(bottom) of arrays with one value per pair; None if the divisor is 0.

    The interval is a percentile interval over 1,000 resamples of the clusters (queries).
    """
    above, below = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    labels, row = np.unique(np.asarray(clusters), return_inverse=True)
    cluster_top, cluster_bottom = (
        np.bincount(row, numbers, len(labels)).astype(np.float64) for numbers in (above, below)
    )
    sums = _Sums(cluster_top, cluster_bottom)
    if not below.sum():
        return None
    bounds = bootstrap.interval(sums, _Sums.ratio, seed=seed)
    low, high = (bounds.low, bounds.high) if bounds else (None, None)
    return Ratio(float(above.sum() / below.sum()), low, high, pairs=len(above), clusters=len(labels))


def rate(sums: Floats, seed: int) -> Figure:
    """Return the sum of the first of two columns over the sum of the second, with its interval by `measured`.

    A rate of 0 or 1 gets Wilson's interval over queries instead of pairs, because the pairs of a query may be equal.
    """
    figure = measured(sums, lambda totals: divided(totals[..., :1], totals[..., 1:]), seed)[0]
    estimate = wilson(figure.value * len(sums), len(sums)) if figure.value in (0, 1) and len(sums) > 1 else None
    return replace(figure, **estimate.bounds(DIGITS)) if estimate else figure


def numbered(queries: pl.Series) -> Ints:
    """Return the number of each pair's query, in the order of the ids; numbers are compared faster than strings."""
    return queries.rank("dense").cast(pl.Int64).to_numpy()


def mean(values: npt.ArrayLike, clusters: npt.ArrayLike, seed: int) -> Ratio | None:
    """Return the mean of one value per pair; None without pairs."""
    numbers = np.asarray(values, dtype=np.float64)
    return ratio(numbers, np.ones(len(numbers)), clusters, seed)


@dataclass(frozen=True)
class Moments(Stacked):
    """Weighted sums over pairs, stacked by cluster: weights, values of each judge, and products for two judges."""

    pairs: Floats
    sums: Floats
    products: Floats


def moments(matrix: Floats, clusters: npt.ArrayLike, weights: Floats) -> Moments:
    """Return the weighted sums of a matrix of values, pairs x judges, stacked by cluster."""
    labels, row = np.unique(np.asarray(clusters), return_inverse=True)
    return Moments(
        np.bincount(row, weights, len(labels)).astype(np.float64),
        _added(matrix * weights[:, None], row.astype(np.int64), len(labels)),
        _added(matrix[:, :, None] * matrix[:, None, :] * weights[:, None, None], row.astype(np.int64), len(labels)),
    )


def _added(values: Floats, row: Ints, labels: int) -> Floats:
    # column by column, for bincount takes one dimension
    columns = values.reshape(len(values), int(np.prod(values.shape[1:]))).T
    sums = [np.bincount(row, column, labels) for column in columns]
    return np.stack(sums, axis=1).reshape(labels, *values.shape[1:]).astype(np.float64)


def correlation(sums: Moments) -> Floats:
    """Return the mean correlation over the pairs of judges; NaN if a judge's values do not vary.

    Leading axes of the sums are retained.
    """
    count = sums.pairs[..., None, None]
    covariance = sums.products * count - sums.sums[..., :, None] * sums.sums[..., None, :]
    square = np.diagonal(covariance, axis1=-2, axis2=-1)
    spread = np.where(square > _NOTHING * sums.pairs[..., None] ** 2, np.sqrt(np.maximum(square, 0)), 0)
    divisor = spread[..., :, None] * spread[..., None, :]
    correlations = divided(covariance, divisor)
    upper = np.triu_indices(correlations.shape[-1], 1)
    return np.asarray(correlations[..., upper[0], upper[1]].mean(axis=-1))
