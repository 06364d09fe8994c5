"""Rank correlation of two scorings of the same systems: Kendall's tau-b, tau_AP, Spearman's rho, rank-biased overlap.

Kendall's and Spearman's take arrays with leading axes, because intervals need them for thousands of resamples at once.
"""

from collections.abc import Mapping

import numpy as np

from curate.stats.bootstrap import divided
from curate.stats.tally import Floats

_TIE = 12
"""Decimals that scores are rounded to before they are compared."""
PERSISTENCE = 0.9
"""Probability that a reader goes on to the next rank: the first ten carry 86 % of the weight."""


def tau_b(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return Kendall's tau-b of two scores by name, -1 to 1, for the names that both have; None if undefined."""
    names = sorted(first.keys() & second.keys())
    tau = float(kendall(*(np.array([scores[name] for name in names], dtype=np.float64) for scores in (first, second))))
    return None if np.isnan(tau) else tau


def tau_ap(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return tau_AP (Yilmaz, Aslam & Robertson, SIGIR 2008) of the second order against the first, -1 to 1.

    2 / (N - 1) times the sum, over the ranks i from 2 of the second order, of the share of the i - 1 systems above that
    stand above in the first one too, less 1: a swap at the top costs more than one at the bottom. Ties go by name. None
    for fewer than two systems that both have.
    """
    names = first.keys() & second.keys()
    if len(names) < 2:
        return None
    one, two = (sorted(names, key=lambda name: (-scores[name], name)) for scores in (first, second))
    index_in_first = {name: index for index, name in enumerate(one)}
    shares = [
        sum(index_in_first[above] < index_in_first[name] for above in two[:index]) / index
        for index, name in enumerate(two)
        if index
    ]
    return 2 * sum(shares) / len(shares) - 1


def kendall(one: Floats, other: Floats) -> Floats:
    """Return Kendall's tau-b (1945) of two scorings of the same systems along the last axis; leading axes are kept.

    Concordant less discordant pairs, over the root of the pairs untied in the one times those untied in the other; NaN
    where one of the two ties all systems. Scores tie if they differ by no more than rounding.
    """
    first, second = np.triu_indices(one.shape[-1], 1)
    signs_one, signs_other = (np.sign(np.round(side[..., first] - side[..., second], _TIE)) for side in (one, other))
    untied = np.abs(signs_one).sum(axis=-1) * np.abs(signs_other).sum(axis=-1)
    return divided((signs_one * signs_other).sum(axis=-1), np.sqrt(untied))


def spearman(one: Floats, other: Floats) -> Floats:
    """Return Spearman's rho along the last axis, equal scores sharing their mean rank; NaN where all are equal."""
    x, y = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (_ranks(one), _ranks(other)))
    return divided((x * y).sum(axis=-1), np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1)))


def rank_biased_overlap(
    first: Mapping[str, float], second: Mapping[str, float], persistence: float = PERSISTENCE
) -> float | None:
    """Return the extrapolated rank-biased overlap of two scores by name, 0 to 1, best first, ties by name.

    Webber, Moffat and Zobel (TOIS 2010), equation 30, for rankings of the names that both have: at depth d counts the
    share of the first d that are common, times p^(d-1) (1 - p); the last share is used for all deeper ranks. None for
    fewer than two names, which have only one order.
    """
    names = first.keys() & second.keys()
    if len(names) < 2:
        return None
    one, two = (sorted(names, key=lambda name: (-scores[name], name)) for scores in (first, second))
    common = [len(set(one[:depth]) & set(two[:depth])) / depth for depth in range(1, len(names) + 1)]
    weights = [(1 - persistence) * persistence**index for index in range(len(names))]
    return sum(w * share for w, share in zip(weights, common, strict=True)) + persistence ** len(names) * common[-1]


def _ranks(scores: Floats) -> Floats:
    above = scores[..., :, None] - scores[..., None, :]
    return np.asarray((above > 0).sum(axis=-1) + ((above == 0).sum(axis=-1) + 1) / 2)
