"""Cluster bootstrap: percentile intervals from resampled queries, since pairs of one query are not independent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np

from curate.core.errors import ConfigError
from curate.core.figures import Figure
from curate.stats.tally import Floats, Ints

FEW = 50
"""Minimum number of clusters for a reliable percentile interval; with fewer it is too narrow and gets a warning."""
DIGITS = 6
"""Number of decimals of rounded figures, so that floating-point error does not make two runs differ."""
BLOCK = 1 << 22
"""Number of resampling weights drawn at once (8 bytes each); limits memory and changes no result."""


class Additive(Protocol):
    """Sums stacked by cluster along the first axis, such as `Sums` and `Crosstab`."""

    def __len__(self) -> int:
        """Return the number of clusters."""
        ...

    def weighted(self, weights: Floats) -> Self:
        """Return the sums over clusters with cluster i counted weights[..., i] times."""
        ...


Clusters = TypeVar("Clusters", bound=Additive)


@dataclass(frozen=True)
class Interval:
    """A percentile interval of a cluster bootstrap."""

    low: float
    high: float
    level: float
    clusters: int
    replicates: int
    undefined: int
    """Number of replicates in which the statistic is not defined; the percentiles omit them."""


def interval(
    clusters: Clusters,
    statistic: Callable[[Clusters], Floats],
    *,
    seed: int,
    replicates: int = 1000,
    level: float = 0.95,
) -> Interval | None:
    """Return the percentile interval of a statistic over resampled clusters; the same seed gives the same samples.

    `clusters` are sums stacked by cluster, `statistic` maps stacked sums to one figure each. None if there are fewer
    than two clusters or the statistic is defined in no replicate.
    """
    return intervals(clusters, {"": statistic}, seed=seed, replicates=replicates, level=level)[""]


def intervals(
    clusters: Clusters,
    statistics: Mapping[str, Callable[[Clusters], Floats]],
    *,
    seed: int,
    replicates: int = 1000,
    level: float = 0.95,
    alike: Ints | None = None,
    drawn: Callable[[int], None] = lambda _replicates: None,
) -> dict[str, Interval | None]:
    """Return the interval of every statistic as `interval` does, all from the same resamples.

    `alike` is the number of equal clusters that each entry of `clusters` represents; 1 if None. `drawn` is called with
    the number of replicates completed so far.
    """
    if replicates < 1 or not 0 < level < 1:
        raise ConfigError(
            f"interval: found {replicates} replicates at level {level}, expected at least one replicate and a level "
            "between 0 and 1; use 1000 and 0.95"
        )
    count = len(clusters) if alike is None else int(alike.sum())
    if count < 2:
        return dict.fromkeys(statistics)
    replicate_figures: dict[str, list[Floats]] = {name: [] for name in statistics}
    completed = 0
    drawn(completed)
    for weights in resamples(len(clusters) if alike is None else alike, replicates, seed):
        sums = clusters.weighted(weights)
        for position, (name, statistic) in enumerate(statistics.items(), start=1):
            replicate_figures[name].append(np.asarray(statistic(sums)))
            drawn(completed + len(weights) * position // len(statistics))
        completed += len(weights)
    return {name: _percentiles(np.concatenate(figures), level, count) for name, figures in replicate_figures.items()}


def measured(
    sums: Floats,
    statistic: Callable[[Floats], Floats],
    seed: int,
    *,
    replicates: int = 1000,
    level: float = 0.95,
) -> list[Figure]:
    """Return the figures that a statistic computes from sums over queries, each with its interval.

    `sums` has one row per query. `statistic` maps sums of shape (..., columns) to figures of shape (..., figures), NaN
    where not defined. The percentiles of a figure omit replicates in which it is not defined. No interval for fewer
    than two queries. The same seed gives the same resamples.
    """
    figures = np.asarray(statistic(sums.sum(axis=0)), dtype=np.float64)
    if len(sums) < 2:
        return [Figure(_rounded(figure)) for figure in figures]
    replicate_figures = np.concatenate(
        [statistic(weights @ sums) for weights in resamples(len(sums), replicates, seed)]
    )
    return [
        from_replicates(figure, column, len(sums), level)
        for figure, column in zip(figures, replicate_figures.T, strict=True)
    ]


def from_replicates(value: float, drawn: Floats, clusters: int, level: float = 0.95) -> Figure:
    """Return a figure with percentiles of its bootstrap replicates, excluding those that are NaN.

    No interval if all replicates are equal, because equal queries give no information on others.
    """
    bounds = None if np.isnan(value) or clusters < 2 else _percentiles(drawn, level, clusters)
    if bounds and bounds.high - bounds.low < 10**-DIGITS:
        return Figure(_rounded(value))
    return Figure(_rounded(value), _rounded(bounds.low), _rounded(bounds.high)) if bounds else Figure(_rounded(value))


def averages(columns: Sequence[Floats], seed: int) -> list[Figure]:
    """Return the mean of every column (one number per query), with its interval by `measured`."""
    sums = np.column_stack([np.ones(len(columns[0])), *columns])
    return measured(sums, lambda totals: divided(totals[..., 1:], totals[..., :1]), seed)


def divided(above: Floats, below: Floats) -> Floats:
    """Return quotients, NaN where the divisor is 0."""
    return np.asarray(np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=below != 0))


def _rounded(number: float) -> float | None:
    return None if np.isnan(number) else round(float(number), DIGITS)


def _percentiles(figures: Floats, level: float, clusters: int) -> Interval | None:
    defined = figures[~np.isnan(figures)]
    if not len(defined):
        return None
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, clusters, len(figures), len(figures) - len(defined))


def resamples(clusters: int | Ints, replicates: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of resampling counts: how often each replicate draws each cluster; shape (replicates, clusters).

    Every replicate draws as many clusters as there are, with replacement. `clusters` is their number, or an array with
    the number of equal clusters that each entry represents; each row adds up to the total number of clusters.
    """
    random = np.random.default_rng(seed)
    alike = np.ones(clusters, dtype=np.int64) if isinstance(clusters, int) else clusters
    count = int(alike.sum())
    size = max(BLOCK // len(alike), 1)
    for start in range(0, replicates, size):
        block = min(size, replicates - start)
        yield random.multinomial(count, alike / count, size=block).astype(np.float64)
