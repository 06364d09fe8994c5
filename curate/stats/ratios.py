"""Ratios of sums over pairs (a share, a mean, a slope, a correlation), with intervals that resample queries."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.stats import bootstrap
from curate.stats.bootstrap import DIGITS, Figure, divided, measured
from curate.stats.sample_estimates import wilson
from curate.stats.tally import Floats, Ints, Stacked

_NOTHING = 1e-12
"""A variance that is no more than what rounding leaves of 0."""


@dataclass(frozen=True)
class Ratio(Figure):
    """A ratio with its 95 % interval, and what it was computed from; the ends are None for fewer than two queries."""

    value: float
    pairs: int = field(kw_only=True)
    clusters: int = field(kw_only=True)

    def beyond(self, bound: float) -> bool:
        """Say whether the interval lies farther from 0 than a bound, on one side of it."""
        return self.low is not None and self.high is not None and (self.low > bound or self.high < -bound)


@dataclass(frozen=True)
class _Sums(Stacked):
    top: Floats
    bottom: Floats

    def ratio(self) -> Floats:
        return divided(self.top, self.bottom)


def ratio(top: npt.ArrayLike, bottom: npt.ArrayLike, clusters: npt.ArrayLike, seed: int) -> Ratio | None:
    """Return sum(top) / sum(bottom) over pairs, one of each a pair; None if the divisor is 0.

    The interval is of percentiles over 1,000 samples of the clusters (queries).
    """
    above, below = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    labels, row = np.unique(np.asarray(clusters), return_inverse=True)
    top_, bottom_ = (np.bincount(row, each, len(labels)).astype(np.float64) for each in (above, below))
    sums = _Sums(top_, bottom_)
    if not below.sum():
        return None
    found = bootstrap.interval(sums, _Sums.ratio, seed=seed)
    low, high = (found.low, found.high) if found else (None, None)
    return Ratio(float(above.sum() / below.sum()), low, high, pairs=len(above), clusters=len(labels))


def rate(sums: Floats, seed: int) -> Figure:
    """Return the total of the first of two columns over that of the second, with its interval as `measured` has it.

    Of none and of all the interval is Wilson's, in which a query counts once, for its pairs may all be alike.
    """
    found = measured(sums, lambda each: divided(each[..., :1], each[..., 1:]), seed)[0]
    bounds = wilson(found.value * len(sums), len(sums)) if found.value in (0, 1) and len(sums) > 1 else None
    return replace(found, **bounds.bounds(DIGITS)) if bounds else found


def numbered(queries: pl.Series) -> Ints:
    """Return the queries of pairs as numbers in their order: clusters that are compared far faster than texts."""
    return queries.rank("dense").cast(pl.Int64).to_numpy()


def mean(values: npt.ArrayLike, clusters: npt.ArrayLike, seed: int) -> Ratio | None:
    """Return the mean of a value per pair; None without a pair."""
    numbers = np.asarray(values, dtype=np.float64)
    return ratio(numbers, np.ones(len(numbers)), clusters, seed)


@dataclass(frozen=True)
class Moments(Stacked):
    """Sums over weighted pairs: how many, of each judge, and of products of two; leading axes hold clusters."""

    pairs: Floats
    sums: Floats
    products: Floats


def moments(matrix: Floats, clusters: npt.ArrayLike, weights: Floats) -> Moments:
    """Return the sums of a matrix, pairs x judges, stacked by cluster; each pair counts as often as its weight."""
    labels, row = np.unique(np.asarray(clusters), return_inverse=True)
    return Moments(
        np.bincount(row, weights, len(labels)).astype(np.float64),
        _added(matrix * weights[:, None], row.astype(np.int64), len(labels)),
        _added(matrix[:, :, None] * matrix[:, None, :] * weights[:, None, None], row.astype(np.int64), len(labels)),
    )


def _added(values: Floats, row: Ints, labels: int) -> Floats:
    columns = values.reshape(len(values), int(np.prod(values.shape[1:]))).T
    sums = [np.bincount(row, each, labels) for each in columns]
    return np.stack(sums, axis=1).reshape(labels, *values.shape[1:]).astype(np.float64)


def correlation(sums: Moments) -> Floats:
    """Return the mean correlation of two judges; NaN where one never varies. Leading axes are kept."""
    count = sums.pairs[..., None, None]
    covariance = sums.products * count - sums.sums[..., :, None] * sums.sums[..., None, :]
    square = np.diagonal(covariance, axis1=-2, axis2=-1)
    spread = np.where(square > _NOTHING * sums.pairs[..., None] ** 2, np.sqrt(np.maximum(square, 0)), 0)
    divisor = spread[..., :, None] * spread[..., None, :]
    found = divided(covariance, divisor)
    above = np.triu_indices(found.shape[-1], 1)
    return np.asarray(found[..., above[0], above[1]].mean(axis=-1))
