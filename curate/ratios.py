"""A ratio of sums over pairs with an interval that resamples queries: a share, a mean, or a slope."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from curate import intervals
from curate.tally import Floats, Ints


@dataclass(frozen=True)
class Figure:
    """A figure with its 95 % interval; the ends are None for fewer than two queries."""

    value: float
    low: float | None
    high: float | None
    pairs: int
    clusters: int

    def beyond(self, bound: float) -> bool:
        """Say whether the interval lies farther from 0 than a bound, on one side of it."""
        return self.low is not None and self.high is not None and (self.low > bound or self.high < -bound)


@dataclass(frozen=True)
class _Sums:
    top: Floats
    bottom: Floats

    def __len__(self) -> int:
        return len(self.top)

    def weighted(self, weights: Floats) -> Self:
        return type(self)(np.asarray(weights @ self.top), np.asarray(weights @ self.bottom))

    def ratio(self) -> Floats:
        empty = np.full(np.shape(self.bottom), np.nan)
        return np.asarray(np.divide(self.top, self.bottom, out=empty, where=self.bottom != 0))


def ratio(top: npt.ArrayLike, bottom: npt.ArrayLike, clusters: npt.ArrayLike, seed: int) -> Figure | None:
    """Return sum(top) / sum(bottom) over pairs, one of each a pair; None if the divisor is 0.

    The interval is of percentiles over 1,000 samples of the clusters (queries).
    """
    above, below = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    labels, row = np.unique(np.asarray(clusters), return_inverse=True)
    top_, bottom_ = (np.bincount(row, each, len(labels)).astype(np.float64) for each in (above, below))
    sums = _Sums(top_, bottom_)
    if not below.sum():
        return None
    found = intervals.interval(sums, _Sums.ratio, seed=seed)
    low, high = (found.low, found.high) if found else (None, None)
    return Figure(float(above.sum() / below.sum()), low, high, len(above), len(labels))


def numbered(queries: pl.Series) -> Ints:
    """Return the queries of pairs as numbers in their order: clusters that are compared far faster than texts."""
    return queries.rank("dense").cast(pl.Int64).to_numpy()


def mean(values: npt.ArrayLike, clusters: npt.ArrayLike, seed: int) -> Figure | None:
    """Return the mean of a value a pair; None without a pair."""
    numbers = np.asarray(values, dtype=np.float64)
    return ratio(numbers, np.ones(len(numbers)), clusters, seed)
