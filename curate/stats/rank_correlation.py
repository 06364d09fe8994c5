"""Rank correlation of two scorings of the same systems: Kendall's tau-b, tau_AP, Spearman's rho, rank-biased overlap.

`kendall` and `spearman_of_scores` take arrays with leading axes, because intervals need thousands of resamples at once.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from curate.core.figures import Figure
from curate.stats.bootstrap import divided
from curate.stats.significance import figures, grouped, mean_value, spearman
from curate.stats.tally import Floats, Ints

_TIE = 12
"""Number of decimals to which scores are rounded before comparison."""
PERSISTENCE = 0.9
"""Probability that a user continues to the next rank (p of RBO); at 0.9 the first ten ranks have 86 % of the weight."""


def tau_b(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return Kendall's tau-b of two scorings (name -> score), -1 to 1, over their common names; None if undefined."""
    names = sorted(first.keys() & second.keys())
    tau = float(kendall(*(np.array([scores[name] for name in names], dtype=np.float64) for scores in (first, second))))
    return None if np.isnan(tau) else tau


def tau_ap(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return tau_AP (Yilmaz, Aslam & Robertson, SIGIR 2008) of the second ranking against the first, -1 to 1.

    For each rank i from 2 of the second ranking, C(i) is the number of systems that are above the one at rank i in both
    rankings. tau_AP is 2 / (N - 1) times the sum of C(i) / (i - 1), minus 1. A swap at the top costs more than one at
    the bottom. Ties are ordered by name. None for fewer than two common systems.
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

    Concordant minus discordant pairs, divided by the root of (pairs untied in `one`) x (pairs untied in `other`); NaN
    where either ties all systems. Scores tie if they differ by no more than rounding.
    """
    first, second = np.triu_indices(one.shape[-1], 1)
    signs_one, signs_other = (np.sign(np.round(side[..., first] - side[..., second], _TIE)) for side in (one, other))
    untied = np.abs(signs_one).sum(axis=-1) * np.abs(signs_other).sum(axis=-1)
    return divided((signs_one * signs_other).sum(axis=-1), np.sqrt(untied))


def spearman_of_scores(one: Floats, other: Floats) -> Floats:
    """Return Spearman's rho along the last axis with mean ranks of ties; NaN if all scores of one side are equal."""
    x, y = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (_ranks(one), _ranks(other)))
    return divided((x * y).sum(axis=-1), np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1)))


def rank_biased_overlap(
    first: Mapping[str, float], second: Mapping[str, float], persistence: float = PERSISTENCE
) -> float | None:
    """Return the extrapolated rank-biased overlap of two scorings (name -> score), 0 to 1; ties are ordered by name.

    Webber, Moffat and Zobel (TOIS 2010), equation 30, for the rankings of the common names, best score first. The share
    of common names among the first d ranks has the weight p^(d-1) (1 - p); the last share is used for all deeper ranks.
    None for fewer than two common names.
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


# Figures per source from the scores of its pairs: order of two labels, rank correlation, order of levels.


def correct(scores: Floats, labels: Floats, source: Ints) -> Floats:
    """Return per source the AUC: the probability that an item of label 1 outscores one of label 0, with ties as 1/2.

    NaN for a source without both labels.
    """

    def share(own_scores: Floats, marks: Floats) -> float:
        apart = own_scores[marks == 1][:, None] - own_scores[marks == 0][None, :]
        return float(((apart > 0) + (apart == 0) / 2).mean()) if apart.size else np.nan

    return _by_source(share, scores, labels, source)


def within_rho(scores: Floats, levels: Floats, source: Ints) -> Floats:
    """Return per source Spearman's rho of scores and levels; NaN where one of them does not vary."""
    return _by_source(lambda own_scores, marks: float(spearman_of_scores(own_scores, marks)), scores, levels, source)


def rising(scores: Floats, levels: Floats, source: Ints) -> Floats:
    """Return per source 1 if scores strictly separate the levels in ascending order, else 0.

    A source with a single level has NaN.
    """

    def strict(own_scores: Floats, marks: Floats) -> float:
        steps = np.unique(marks)
        bounds = [(own_scores[marks == step].min(), own_scores[marks == step].max()) for step in steps]
        return float(all(low[1] < high[0] for low, high in pairwise(bounds)))

    return _by_source(
        lambda own_scores, marks: strict(own_scores, marks) if len(set(marks)) > 1 else np.nan, scores, levels, source
    )


def _by_source(figure: Callable[[Floats, Floats], float], scores: Floats, labels: Floats, source: Ints) -> Floats:
    order = np.argsort(source, kind="stable")
    _, starts = np.unique(source[order], return_index=True)
    groups = np.split(order, starts[1:])
    return np.array([figure(scores[rows], labels[rows]) for rows in groups])


# Figures of a measure on gradients: groups of items with levels of correctness.


@dataclass(frozen=True)
class GradientFigures:
    """Agreement of scores with levels of a gradient: rho pooled and within groups, share of strictly ordered groups."""

    pooled: Figure
    within: Figure
    strict: Figure
    undefined: int
    """Number of groups without a rho, because their scores or their levels are all equal."""


def gradient_figures(scores: Floats, levels: Floats, group: Ints, seed: int, replicates: int = 1000) -> GradientFigures:
    """Return the agreement of scores with levels; `group` is the number of each item's group, from 0."""
    groups = int(group.max(initial=-1)) + 1
    if not groups:
        return GradientFigures(Figure(None), Figure(None), Figure(None), 0)
    rho = within_rho(scores, levels, group)
    measures = (
        grouped(spearman(scores, levels), group),
        mean_value(rho),
        mean_value(rising(scores, levels, group)),
    )
    pooled, within, strict = figures(measures, groups, seed, replicates)
    return GradientFigures(pooled, within, strict, int(np.isnan(rho).sum()))


def pooled(scores: Floats, levels: Floats) -> float | None:
    """Return Spearman's rho over all items, with mean ranks of ties; None if scores or levels do not vary."""
    rho = float(spearman(scores, levels)(np.ones((1, len(scores))))[0])
    return None if math.isnan(rho) else rho


def paired_accuracy(
    scores: Floats, levels: Floats, group: Ints, kinds: Sequence[str], seed: int, replicates: int = 1000
) -> Mapping[str, Figure]:
    """Return kind -> share of its groups in which the level-1 item outscores the level-0 item, with ties as 1/2.

    `kinds` is the kind of each group; the key `""` is the mean over all groups. Chance is 1/2.
    """
    if not kinds:
        return {"": Figure(None)}
    right = correct(scores, levels, group)
    names = np.array(kinds)
    columns = {"": right, **{kind: np.where(names == kind, right, np.nan) for kind in sorted(set(kinds))}}
    accuracies = figures([mean_value(column) for column in columns.values()], len(kinds), seed, replicates)
    return dict(zip(columns, accuracies, strict=True))


def ceiling(levels: Sequence[float]) -> float | None:
    """Return the highest rho that scores without ties can have against levels with ties; None without two levels.

    For k equally frequent levels of many items it is sqrt(1 - 1/k^2): 0.980 for five.
    """
    count = len(levels)
    if len(set(levels)) < 2:
        return None
    tied = sum(times**3 - times for times in Counter(levels).values())
    return math.sqrt(1 - tied / (count**3 - count))
