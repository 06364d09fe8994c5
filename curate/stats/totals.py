"""Figures made of sums over queries, several at a time, each with a bootstrap interval that resamples queries."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from curate.core.config import Json
from curate.stats.bootstrap import resamples
from curate.stats.tally import Floats

DIGITS = 6
"""Figures are rounded to this many digits, so that a last bit cannot make two runs differ."""


@dataclass(frozen=True)
class Figure:
    """A figure with its 95 % percentile interval; None where it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def shown(self) -> dict[str, Json]:
        """Return value, low and high for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


def measured(
    sums: Floats,
    statistic: Callable[[Floats], Floats],
    seed: int,
    *,
    replicates: int = 1000,
    level: float = 0.95,
) -> list[Figure]:
    """Return the figures that a statistic makes of sums over queries, each with its interval.

    `sums` has a row a query. `statistic` maps sums, shape (..., columns), to figures, shape (..., figures), NaN where
    one is not defined. Replicates in which a figure is not defined are left out of its percentiles; there is no
    interval for fewer than two queries. The same seed gives the same samples.
    """
    values = np.asarray(statistic(sums.sum(axis=0)), dtype=np.float64)
    if len(sums) < 2:
        return [Figure(_plain(value)) for value in values]
    drawn = np.concatenate([statistic(weights @ sums) for weights in resamples(len(sums), replicates, seed)])
    found = []
    for value, column in zip(values, drawn.T, strict=True):
        defined = column[~np.isnan(column)]
        if np.isnan(value) or not len(defined):
            found.append(Figure(_plain(value)))
            continue
        low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
        found.append(Figure(_plain(value), _plain(low), _plain(high)))
    return found


def divided(above: Floats, below: Floats) -> Floats:
    """Return quotients, NaN where nothing stands below."""
    return np.asarray(np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=below != 0))


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), DIGITS)
