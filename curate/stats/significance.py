"""Paired randomisation test of models on the same queries, and the number of queries needed to detect a difference.

Results are sums, one row per query, and a statistic maps their total to the score: a mean, or Pearson's correlation of
sentence pairs, so that one test serves both.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from curate.stats.bootstrap import BLOCK, divided, resamples
from curate.stats.tally import Floats

DRAWS = 10_000
LEVEL, POWER = 0.95, 0.8
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True)
class ModelPair:
    """Two models on the same queries."""

    one: str
    other: str
    difference: float
    """Score of `one` minus that of `other`."""
    p: float
    """Two-sided p of the paired randomisation test."""
    adjusted: float
    """p adjusted by Holm (1979) over all pairs of models of the task."""
    enough: int | None
    """Queries needed to detect this difference (80 % power, 5 %); None if there is no difference."""
    smallest: float
    """Minimum detectable difference with the queries at hand."""


def means(scores: Floats) -> Floats:
    """Return the input of `mean` for one score per query: rows (1, score), shape (queries, 2)."""
    return np.column_stack([np.ones(len(scores)), scores])


def mean(sums: Floats) -> Floats:
    """Return the mean score from sums as `means` makes them (count, score), shape (..., 2)."""
    return divided(sums[..., 1], sums[..., 0])


def products(similarity: Floats, label: Floats) -> Floats:
    """Return the input of `pearson` for pairs of sentences, shape (pairs, 6).

    Both sides are standardised first: the correlation is unchanged, and results of models with different scales can be
    exchanged in a test.
    A side that never varies becomes 0.
    """
    x, y = ((side - side.mean()) / (side.std() or 1.0) for side in (similarity, label))
    return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])


def pearson(sums: Floats) -> Floats:
    """Return Pearson's correlation from sums as `products` makes them, shape (..., 6); NaN if a side does not vary."""
    count, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(count * xx - x * x, 0) * np.maximum(count * yy - y * y, 0)
    tiny = spread <= 1e-18 * np.maximum(count, 1) ** 4
    return divided(count * xy - x * y, np.where(tiny, 0.0, np.sqrt(spread)))


def compare(
    names: Sequence[str], sums: Sequence[Floats], statistic: Statistic, seed: int, draws: int = DRAWS
) -> list[ModelPair]:
    """Return every pair of models, the better one first, the most significant pair first.

    In each draw, for each query, chance decides whether the two exchange their results (Fisher; Smucker, Allan &
    Carterette, CIKM 2007); p is (1 + draws at least as far apart) / (1 + draws). Detectable differences follow from
    the spread of the difference under resampled queries, at 5 % without Holm.
    """
    scores = [float(statistic(of_model.sum(axis=0))) for of_model in sums]
    if len(sums) < 2:
        return []
    chance = _chances(_all_pairs(names), sums, scores, statistic, seed, draws)
    return _compared(names, scores, chance, resampled(sums, statistic, seed), len(sums[0]))


def compare_bootstrapped(names: Sequence[str], scores: Sequence[float], drawn: Floats, items: int) -> list[ModelPair]:
    """Return every pair of models, like `compare`, for results that models cannot exchange: clusters, ranks.

    `drawn` are their scores on the same resampled items, shape (replicates, models). p is the share of replicates, with
    one added, in which the difference is as far from the one found as that is from 0 (paired bootstrap, centred).
    """
    chance = []
    for one, other in _all_pairs(names):
        difference, apart = scores[one] - scores[other], drawn[:, one] - drawn[:, other]
        apart = apart[~np.isnan(apart)]
        far = (np.abs(apart - difference) >= abs(difference) - 1e-12).sum()
        chance.append(float((1 + far) / (1 + len(apart))))
    return _compared(names, scores, chance, drawn, items)


def _all_pairs(names: Sequence[str]) -> list[tuple[int, int]]:
    return list(combinations(range(len(names)), 2))


def _compared(
    names: Sequence[str], scores: Sequence[float], chance: Sequence[float], drawn: Floats, items: int
) -> list[ModelPair]:
    pairs = []
    for (one, other), p, adjusted in zip(_all_pairs(names), chance, holm(chance), strict=True):
        high, low = (one, other) if scores[one] >= scores[other] else (other, one)
        difference = scores[high] - scores[low]
        spread = float(np.nanstd(drawn[:, high] - drawn[:, low])) * math.sqrt(items)
        enough, smallest = needed(difference, spread, items)
        pairs.append(ModelPair(names[high], names[low], difference, p, adjusted, enough, smallest))
    return sorted(pairs, key=lambda pair: (pair.p, -pair.difference, pair.one, pair.other))


def holm(chances: Sequence[float]) -> list[float]:
    """Return p adjusted by Holm's step-down (1979), in the order given.

    Equal to statsmodels' `multipletests`, which runs a full garbage collection at every call (60 ms and more).
    """
    order = np.argsort(chances, kind="stable")
    factors = np.arange(len(chances), 0, -1)
    adjusted = np.empty(len(chances))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * np.asarray(chances)[order]), 1.0)
    return [float(p) for p in adjusted]


def needed(difference: float, spread: float, queries: int) -> tuple[int | None, float]:
    """Return the queries needed for a difference with this spread per query, and the minimum detectable difference.

    Normal approximation: (z(0.975) + z(0.8))^2 s^2 / d^2, two-sided 5 %, power 80 %.
    """
    factor = (NormalDist().inv_cdf((1 + LEVEL) / 2) + NormalDist().inv_cdf(POWER)) * spread
    smallest = factor / math.sqrt(queries)
    return (max(math.ceil((factor / difference) ** 2), 2) if difference > 0 else None), smallest


def against(pairs: Sequence[ModelPair], model: str) -> list[ModelPair]:
    """Return the pairs that contain a model, with p adjusted by Holm over these pairs only."""
    pairs_of_model = [pair for pair in pairs if model in (pair.one, pair.other)]
    return [
        replace(pair, adjusted=p)
        for pair, p in zip(pairs_of_model, holm([pair.p for pair in pairs_of_model]), strict=True)
    ]


@dataclass(frozen=True)
class DetectableDifference:
    """Minimum detectable difference of two models (80 % power, 5 %), over the pairs of models."""

    low: float
    median: float
    high: float
    spread: float
    """Standard deviation of the difference per query, of the median pair."""


def detectable(pairs: Sequence[ModelPair], queries: int) -> DetectableDifference | None:
    """Return the minimum detectable differences of the most similar, the median and the least similar pair.

    None without pairs. Models that fail on the same queries differ little per query, so smaller differences of theirs
    are detectable.
    """
    if not pairs:
        return None
    low, median, high = (float(quantile) for quantile in np.quantile([pair.smallest for pair in pairs], [0, 0.5, 1]))
    return DetectableDifference(low, median, high, median / needed(0.0, 1.0, queries)[1])


def _chances(
    pairs: Sequence[tuple[int, int]],
    sums: Sequence[Floats],
    scores: Sequence[float],
    statistic: Statistic,
    seed: int,
    draws: int,
) -> list[float]:
    """Return the p-value of every pair; all pairs are tested with the same random exchanges."""
    random, queries = np.random.default_rng(seed), len(sums[0])
    far = np.zeros(len(pairs))
    size = max(BLOCK // queries, 1)
    for start in range(0, draws, size):
        swapped = random.integers(0, 2, size=(min(size, draws - start), queries)).astype(np.float64)
        for index, (one, other) in enumerate(pairs):
            moved = swapped @ (sums[other] - sums[one])
            apart = statistic(sums[one].sum(axis=0) + moved) - statistic(sums[other].sum(axis=0) - moved)
            far[index] += (np.abs(apart) >= abs(scores[one] - scores[other]) - 1e-12).sum()
    return [float(p) for p in (1 + far) / (1 + draws)]


def resampled(sums: Sequence[Floats], statistic: Statistic, seed: int, replicates: int = 1000) -> Floats:
    """Return every model's score on resampled queries, the same ones for all; shape (replicates, models)."""
    joined = np.concatenate(sums, axis=1)
    drawn = [
        side_by_side(statistic, len(sums))(weights @ joined) for weights in resamples(len(joined), replicates, seed)
    ]
    return np.concatenate(drawn)


def side_by_side(statistic: Statistic, models: int) -> Statistic:
    """Return the statistic of several models with concatenated sums, shape (..., models x columns)."""
    return lambda sums: statistic(sums.reshape(*sums.shape[:-1], models, -1))
