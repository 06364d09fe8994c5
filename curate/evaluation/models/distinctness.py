"""Rank correlation of two benchmarks over the same models, with p and an interval.

Models are few and a correlation of few is worth little, so both come with p and with an interval that resamples models
and queries together, and below eight models with neither: rho = 0.354 of 14 models, for one, is compatible with -0.22
as well as with 0.74.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from curate.stats.bootstrap import DIGITS
from curate.stats.rank_correlation import kendall, spearman
from curate.stats.replicated import Replicated, replicas
from curate.stats.tally import Floats

FEWEST = 8
"""Models below which no correlation is given."""
SHUFFLES = 9_999


@dataclass(frozen=True)
class Correlation:
    """How alike two orders are, -1 to 1, with the 95 % interval and p of no correlation."""

    value: float
    low: float | None
    high: float | None
    p: float


@dataclass(frozen=True)
class Compared:
    """Two benchmarks, by the scores that the same models have on them."""

    models: int
    spearman: Correlation | None
    """None below eight models, or where all models have one score."""
    kendall: Correlation | None
    """Tau-b, likewise."""


@dataclass(frozen=True)
class BenchmarkScores:
    """One benchmark: what scores every model, in the order of the models, and its number of queries."""

    scores: Sequence[Replicated]
    """Every model's score on resampled queries."""
    queries: int


def compare(
    new: BenchmarkScores, old: BenchmarkScores, seed: int, *, same_queries: bool = False, replicates: int = 1000
) -> Compared:
    """Return how alike the orders are that two benchmarks put the same models in.

    An interval's replicate draws models with replacement, and queries of both sides: the same ones where
    `same_queries` says that their rows are the same queries, else independently. p is that of 9,999 random orders of
    the models, two-sided.
    """
    models = len(new.scores)
    if models < FEWEST:
        return Compared(models, None, None)
    drawn = _drawn(new, old, seed, replicates, same_queries=same_queries)
    points = [np.array([float(each(np.ones((1, side.queries)))[0]) for each in side.scores]) for side in (new, old)]
    return Compared(models, *(_order(measure, points, drawn, seed) for measure in (spearman, kendall)))


def _order(
    measure: Callable[[Floats, Floats], Floats], points: Sequence[Floats], drawn: tuple[Floats, Floats], seed: int
) -> Correlation | None:
    value = float(measure(points[0], points[1]))
    if np.isnan(value):
        return None
    random = np.random.default_rng(seed)
    shuffled = random.permuted(np.tile(points[1], (SHUFFLES, 1)), axis=1)
    far = (np.abs(measure(points[0], shuffled)) >= abs(value) - 1e-12).sum()
    figures = measure(*drawn)
    defined = figures[~np.isnan(figures)]
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (None, None)
    ends = [None if end is None else round(float(end), DIGITS) for end in (low, high)]
    return Correlation(round(value, DIGITS), ends[0], ends[1], round(float((1 + far) / (1 + SHUFFLES)), DIGITS))


def _drawn(
    new: BenchmarkScores, old: BenchmarkScores, seed: int, replicates: int, *, same_queries: bool
) -> tuple[Floats, Floats]:
    """Return the scores of resampled models on resampled queries; both of shape (replicates, models)."""
    models = len(new.scores)
    chosen = np.random.default_rng([seed, 1]).integers(0, models, size=(replicates, models))
    salts = (seed, seed if same_queries else seed + 1)
    one, other = (
        np.take_along_axis(replicas(side.scores, side.queries, salt, replicates), chosen, axis=1)
        for side, salt in zip((new, old), salts, strict=True)
    )
    return one, other
