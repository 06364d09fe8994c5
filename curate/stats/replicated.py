"""Scores that are not sums over items, on resampled items: average precision, Spearman's rho, V-measure.

Every score is a function of weights of shape (replicates, items), which count the items in each resample; it returns
one score per replicate. Weights of 1 give the plain measure. Ranks and thresholds are those of the resample.
"""

from collections.abc import Callable, Sequence

import numpy as np

from curate.stats.bootstrap import Figure, divided, from_replicates, resamples
from curate.stats.tally import Floats, Ints

ROWS = 100
"""Replicates per block: weights of sources are expanded to their pairs, which takes memory."""
Replicated = Callable[[Floats], Floats]
"""Weights of items, shape (replicates, items) -> one score per replicate, NaN where it is not defined."""


def average_precision(scores: Floats, labels: Floats) -> Replicated:
    """Return the average precision of pairs with label 1, as scikit-learn defines it: ties share one threshold."""
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
    """Return the maximum of several scores per replicate."""
    return lambda weights: np.max([score(weights) for score in several], axis=0)


def spearman(one: Floats, other: Floats) -> Replicated:
    """Return Spearman's rho of two columns, equal values sharing their mean rank."""
    first, second = _ranking(one), _ranking(other)

    def score(weights: Floats) -> Floats:
        total = weights.sum(axis=1)[:, None]
        x, y = (ranks(weights) for ranks in (first, second))
        x, y = (side - divided((side * weights).sum(axis=1)[:, None], total) for side in (x, y))
        spread = (weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)
        return divided((weights * x * y).sum(axis=1), np.sqrt(spread))

    return score


def _ranking(values: Floats) -> Replicated:
    """Return a function that ranks the items of a resample; copies of an item and ties get their mean rank."""
    levels, level = np.unique(values, return_inverse=True)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(len(levels)))

    def ranks(weights: Floats) -> Floats:
        counts = np.add.reduceat(weights[:, order], starts, axis=1)
        return (np.cumsum(counts, axis=1) - counts / 2)[:, level]

    return ranks


def v_measure(labels: Ints, clusters: Ints, times: Ints) -> Replicated:
    """Return the V-measure of a clustering; `times` is the count of every item in it.

    The harmonic mean of homogeneity and completeness (Rosenberg and Hirschberg, 2007).
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
    """Return the mean of several scores per replicate."""
    return lambda weights: np.mean([score(weights) for score in several], axis=0)


def of_sums(sums: Floats, statistic: Callable[[Floats], Floats]) -> Replicated:
    """Return a score that is a statistic of the weighted sums of the items; `sums` has one row per item."""
    return lambda weights: statistic(weights @ sums)


def mean_value(values: Floats) -> Replicated:
    """Return the mean of a value per item; items whose value is NaN are left out."""
    defined = ~np.isnan(values)
    return lambda weights: divided(weights[:, defined] @ values[defined], weights[:, defined].sum(axis=1))


def grouped(score: Replicated, group: Ints) -> Replicated:
    """Return the score as a function of the weights of groups; `group` is the group of every item, from 0."""
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
