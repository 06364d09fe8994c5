"""Significance of score differences between models: paired randomisation tests, bootstrap, and detectable differences.

A `Replicated` score is a function of weights, shape (replicates, items), that count the items in each resample; it
returns one score per replicate. With weights of 1 it gives the plain measure. Ranks and thresholds are those of the
resample.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from curate.core.figures import Figure, Record, figure
from curate.stats.bootstrap import BLOCK, DIGITS, divided, from_replicates, resamples
from curate.stats.tally import Floats, Ints

ROWS = 100
"""Number of replicates per block; limits memory, because weights of sources are expanded to their pairs."""
Replicated = Callable[[Floats], Floats]
"""Function from item weights, shape (replicates, items), to one score per replicate, NaN where not defined."""


def average_precision(scores: Floats, labels: Floats) -> Replicated:
    """Return the score function of average precision (positive: label 1); ties share a threshold (scikit-learn)."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)
    relevant = labels[order] == 1

    def score(weights: Floats) -> Floats:
        beneath = weights[:, order]
        hits, seen = (np.cumsum(counts, axis=1)[:, last] for counts in (beneath * relevant, beneath))
        gained = np.diff(hits, axis=1, prepend=0)
        return divided((gained * divided_or_0(hits, seen)).sum(axis=1), hits[:, -1])

    return score


def divided_or_0(above: Floats, below: Floats) -> Floats:
    """Return quotients, 0 where the divisor is 0."""
    return np.nan_to_num(divided(above, below))


def best(several: Sequence[Replicated]) -> Replicated:
    """Return the score function of the maximum of several scores."""
    return lambda weights: np.max([score(weights) for score in several], axis=0)


def spearman(one: Floats, other: Floats) -> Replicated:
    """Return the score function of Spearman's rho of two columns, with mean ranks of ties."""
    first, second = _ranking(one), _ranking(other)

    def score(weights: Floats) -> Floats:
        total = weights.sum(axis=1)[:, None]
        x, y = (ranks(weights) for ranks in (first, second))
        x, y = (side - divided((side * weights).sum(axis=1)[:, None], total) for side in (x, y))
        spread = (weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)
        return divided((weights * x * y).sum(axis=1), np.sqrt(spread))

    return score


def _ranking(values: Floats) -> Replicated:
    """Return a function that ranks the items of each resample; copies of an item and ties get their mean rank."""
    levels, level = np.unique(values, return_inverse=True)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(len(levels)))

    def ranks(weights: Floats) -> Floats:
        counts = np.add.reduceat(weights[:, order], starts, axis=1)
        return (np.cumsum(counts, axis=1) - counts / 2)[:, level]

    return ranks


def v_measure(labels: Ints, clusters: Ints, times: Ints) -> Replicated:
    """Return the score function of the V-measure of a clustering; `times` is how often each item is in it.

    The V-measure is the harmonic mean of homogeneity and completeness (Rosenberg and Hirschberg, 2007).
    """
    from scipy.sparse import csr_array

    _, row = np.unique(labels, return_inverse=True)
    names, column = np.unique(clusters, return_inverse=True)
    shape = (int(row.max()) + 1, len(names))
    present = np.flatnonzero(times)
    cells = (times[present].astype(np.float64), (present, row[present] * shape[1] + column[present]))
    table = csr_array(cells, shape=(len(labels), shape[0] * shape[1]))

    def score(weights: Floats) -> Floats:
        tables = np.asarray((table.T @ weights.T).T, dtype=np.float64).reshape(-1, *shape)
        return _v(tables)

    return score


def _v(table: Floats) -> Floats:
    total = table.sum(axis=(1, 2))
    of_label, of_cluster, of_both = (
        _entropy(counts, total) for counts in (table.sum(axis=2), table.sum(axis=1), table.reshape(len(table), -1))
    )
    shared = np.maximum(of_label + of_cluster - of_both, 0)
    homogeneity, completeness = (
        np.where(entropy > 1e-12, divided_or_0(shared, entropy), 1.0) for entropy in (of_label, of_cluster)
    )
    return np.where(total > 0, divided_or_0(2 * homogeneity * completeness, homogeneity + completeness), np.nan)


def _entropy(counts: Floats, total: Floats) -> Floats:
    shares = divided_or_0(counts, total[:, None])
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1))


def mean_of(several: Sequence[Replicated]) -> Replicated:
    """Return the score function of the mean of several scores."""
    return lambda weights: np.mean([score(weights) for score in several], axis=0)


def of_sums(sums: Floats, statistic: Callable[[Floats], Floats]) -> Replicated:
    """Return the score function of a statistic of weighted sums; `sums` has one row per item."""
    return lambda weights: statistic(weights @ sums)


def mean_value(values: Floats) -> Replicated:
    """Return the score function of the mean of one value per item; items with NaN are omitted."""
    defined = ~np.isnan(values)
    return lambda weights: divided(weights[:, defined] @ values[defined], weights[:, defined].sum(axis=1))


def grouped(score: Replicated, group: Ints) -> Replicated:
    """Return the score function with weights of groups instead of items.

    `group` is the number of each item's group, from 0.
    """
    return lambda weights: score(weights[:, group])


def figures(several: Sequence[Replicated], items: int, seed: int, replicates: int = 1000) -> list[Figure]:
    """Return every score with its 95 % percentile interval; all are computed on the same resamples."""
    values = [float(score(np.ones((1, items)))[0]) for score in several]
    drawn = replicas(several, items, seed, replicates)
    return [from_replicates(score_of_all, column, items) for score_of_all, column in zip(values, drawn.T, strict=True)]


def replicas(several: Sequence[Replicated], items: int, seed: int, replicates: int = 1000) -> Floats:
    """Return every score on resampled items, the same ones for all; shape (replicates, scores)."""
    drawn = [
        np.column_stack([score(block) for score in several])
        for weights in resamples(items, replicates, seed)
        for block in np.array_split(weights, max(len(weights) // ROWS, 1))
    ]
    return np.concatenate(drawn)


# Paired randomisation test of models on the same queries, and the number of queries needed to detect a difference.

DRAWS = 10_000
LEVEL, POWER = 0.95, 0.8
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True)
class ModelPair:
    """Comparison of two models on the same queries; `one` has the higher score."""

    one: str
    other: str
    difference: float
    """Score of `one` minus that of `other`."""
    p: float
    """Two-sided p-value of the paired randomisation test, or of the paired bootstrap."""
    adjusted: float
    """p-value adjusted by Holm (1979) over all pairs of models of the task."""
    enough: int | None
    """Number of queries needed to detect this difference (80 % power, two-sided 5 %); None if the difference is 0."""
    smallest: float
    """Minimum detectable difference with the given queries."""

    def rounded(self) -> "ModelPair":
        """Return the comparison with `DIGITS` decimals."""
        return replace(
            self,
            difference=round(self.difference, DIGITS),
            p=round(self.p, DIGITS),
            adjusted=round(self.adjusted, DIGITS),
            smallest=round(self.smallest, DIGITS),
        )


def means(scores: Floats) -> Floats:
    """Return the input of `mean` for one score per query: rows (1, score), shape (queries, 2)."""
    return np.column_stack([np.ones(len(scores)), scores])


def mean(sums: Floats) -> Floats:
    """Return the mean score from sums over rows of `means` (count, score), shape (..., 2)."""
    return divided(sums[..., 1], sums[..., 0])


def products(similarity: Floats, label: Floats) -> Floats:
    """Return the input of `pearson` for pairs of sentences, shape (pairs, 6).

    Similarities and labels are standardised first: the correlation is unchanged, and a test can exchange results of
    models with different scales. A constant column becomes 0.
    """
    x, y = ((side - side.mean()) / (side.std() or 1.0) for side in (similarity, label))
    return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])


def pearson(sums: Floats) -> Floats:
    """Return Pearson's correlation from sums over rows of `products`, shape (..., 6); NaN if one side is constant."""
    count, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(count * xx - x * x, 0) * np.maximum(count * yy - y * y, 0)
    tiny = spread <= 1e-18 * np.maximum(count, 1) ** 4
    return divided(count * xy - x * y, np.where(tiny, 0.0, np.sqrt(spread)))


def compare(
    names: Sequence[str], sums: Sequence[Floats], statistic: Statistic, seed: int, draws: int = DRAWS
) -> list[ModelPair]:
    """Return the comparison of every pair of models, the better model first, sorted by p.

    Paired randomisation test (Fisher; Smucker, Allan & Carterette, CIKM 2007): in each draw, for each query, chance
    decides whether the two models exchange their results; p is (1 + draws with at least this difference) / (1 + draws).
    Detectable differences follow from the standard deviation of the difference under resampled queries, at 5 % without
    Holm's adjustment.
    """
    scores = [float(statistic(of_model.sum(axis=0))) for of_model in sums]
    if len(sums) < 2:
        return []
    chance = _chances(_all_pairs(names), sums, scores, statistic, seed, draws)
    return _compared(names, scores, chance, resampled(sums, statistic, seed), len(sums[0]))


def compare_bootstrapped(names: Sequence[str], scores: Sequence[float], drawn: Floats, items: int) -> list[ModelPair]:
    """Return the comparison of every pair, like `compare`, for results that models cannot exchange (clusters, ranks).

    `drawn` are the models' scores on the same resampled items, shape (replicates, models). The test is a centred paired
    bootstrap: p is the share of replicates, with one added, whose difference is at least as far from the measured
    difference as the measured difference is from 0.
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
    """Return p-values adjusted by Holm's step-down procedure (1979), in the given order.

    Equal to statsmodels' `multipletests`, which runs a full garbage collection at every call (60 ms or more).
    """
    order = np.argsort(chances, kind="stable")
    factors = np.arange(len(chances), 0, -1)
    adjusted = np.empty(len(chances))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * np.asarray(chances)[order]), 1.0)
    return [float(p) for p in adjusted]


def needed(difference: float, spread: float, queries: int) -> tuple[int | None, float]:
    """Return the number of queries needed to detect a difference, and the minimum detectable difference with `queries`.

    `spread` is the standard deviation of the difference per query. Normal approximation, two-sided 5 %, power 80 %: n =
    (z(0.975) + z(0.8))^2 s^2 / d^2. The number is None if the difference is 0.
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


class DetectableDifference(Record, schema_name="detectable"):
    """Minimum detectable difference (80 % power, two-sided 5 %): lowest, median and highest over pairs of models."""

    low: float = figure("minimum over pairs of models", digits=2, percent=True)
    median: float = figure("median over pairs of models", digits=2, percent=True)
    high: float = figure("maximum over pairs of models", digits=2, percent=True)
    spread: float | None = figure(
        "standard deviation of the difference per query, for the median pair", digits=2, optional=True
    )


def detectable(pairs: Sequence[ModelPair], queries: int) -> DetectableDifference | None:
    """Return the minimum detectable differences: the smallest, median and largest over pairs of models.

    None without pairs. Models that fail on the same queries differ little per query, so smaller differences between
    them are detectable.
    """
    if not pairs:
        return None
    low, median, high = (float(quantile) for quantile in np.quantile([pair.smallest for pair in pairs], [0, 0.5, 1]))
    spread = round(median / needed(0.0, 1.0, queries)[1], DIGITS)
    return DetectableDifference(round(low, DIGITS), round(median, DIGITS), round(high, DIGITS), spread=spread)


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
    """Return every model's score on resampled queries, the same for all models; shape (replicates, models)."""
    joined = np.concatenate(sums, axis=1)
    drawn = [
        side_by_side(statistic, len(sums))(weights @ joined) for weights in resamples(len(joined), replicates, seed)
    ]
    return np.concatenate(drawn)


def side_by_side(statistic: Statistic, models: int) -> Statistic:
    """Return a statistic of the concatenated sums of several models, shape (..., models x columns).

    Its results have the shape (..., models).
    """
    return lambda sums: statistic(sums.reshape(*sums.shape[:-1], models, -1))
