"""Rank correlation of two benchmarks over the same models, with p and an interval.

Models are few and a correlation of few is worth little, so both come with p and with an interval that resamples models
and queries together, and below eight models with neither: rho = 0.354 of 14 models, for one, is compatible with -0.22
as well as with 0.74.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from curate.stats.bootstrap import DIGITS
from curate.stats.rank_correlation import kendall, spearman
from curate.stats.replicated import Replicated, replicas
from curate.stats.tally import Floats

FEWEST = 8
"""Models below which no correlation is given."""
SHUFFLES = 9_999
EXACT = 40_320
"""Orders that are all counted: those of eight models."""


@dataclass(frozen=True)
class Correlation:
    """How alike two orders are, -1 to 1, with the 95 % interval and p of no correlation."""

    value: float
    low: float | None
    high: float | None
    p: float
    p_by: str
    """The test that p is of: all orders of the models, where they are few, or a sample of them."""
    p_t: float | None = None
    """p of Spearman's rho by the t distribution, which is what papers and scipy print; None for Kendall's tau-b."""


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
    `same_queries` says that their rows are the same queries, else independently. p is that of all orders of the models,
    or of 9,999 random ones, two-sided.
    """
    models = len(new.scores)
    if models < FEWEST:
        return Compared(models, None, None)
    drawn = _drawn(new, old, seed, replicates, same_queries=same_queries)
    points = [np.array([float(each(np.ones((1, side.queries)))[0]) for each in side.scores]) for side in (new, old)]
    return Compared(models, *correlated(points, drawn, seed))


def correlated(
    points: Sequence[Floats], drawn: tuple[Floats, Floats], seed: int
) -> tuple[Correlation | None, Correlation | None]:
    """Return Spearman's rho and Kendall's tau-b of two scorings of the same models; neither below eight models.

    `drawn` are the scores of resampled models, shape (replicates, models) each.
    """
    if len(points[0]) < FEWEST:
        return None, None
    rho, tau = (_order(measure, points, drawn, seed) for measure in (spearman, kendall))
    return rho and replace(rho, p_t=by_t(rho.value, len(points[0]))), tau


def by_t(rho: float, models: int) -> float:
    """Return p of no correlation, two-sided, by Student's t with n - 2 degrees of freedom."""
    from scipy.special import stdtr

    left = 1 - rho * rho
    return round(float(2 * stdtr(models - 2, -abs(rho) * math.sqrt((models - 2) / left))), DIGITS) if left > 0 else 0.0


def _shuffled(scores: Floats, seed: int) -> tuple[Floats, str]:
    """Return other orders of the scores, all of them where that is few, and the name of the test that they make."""
    if (number := math.factorial(len(scores))) <= EXACT:
        return np.array(list(permutations(scores))), f"exact, all {number:,} orders"
    shuffled = np.random.default_rng(seed).permuted(np.tile(scores, (SHUFFLES, 1)), axis=1)
    return shuffled, f"permutation, {SHUFFLES:,} random orders"


def _order(
    measure: Callable[[Floats, Floats], Floats], points: Sequence[Floats], drawn: tuple[Floats, Floats], seed: int
) -> Correlation | None:
    value = float(measure(points[0], points[1]))
    if np.isnan(value):
        return None
    shuffled, named = _shuffled(points[1], seed)
    far = int((np.abs(measure(points[0], shuffled)) >= abs(value) - 1e-12).sum())
    p = far / len(shuffled) if named.startswith("exact") else (1 + far) / (1 + SHUFFLES)
    figures = measure(*drawn)
    defined = figures[~np.isnan(figures)]
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (None, None)
    ends = [None if end is None else round(float(end), DIGITS) for end in (low, high)]
    return Correlation(round(value, DIGITS), ends[0], ends[1], round(p, DIGITS), named)


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
