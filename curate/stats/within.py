"""Figures per source from the scores of its pairs: order of two labels, rank correlation, order of levels."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from curate.stats.rank_correlation import spearman
from curate.stats.tally import Floats, Ints


def correct(scores: Floats, labels: Floats, source: Ints) -> Floats:
    """Return per source the share of its pairs of label 1 that score above one of label 0, ties for half.

    Over all combinations of the two; NaN for a source without one.
    """

    def share(own_scores: Floats, marks: Floats) -> float:
        apart = own_scores[marks == 1][:, None] - own_scores[marks == 0][None, :]
        return float(((apart > 0) + (apart == 0) / 2).mean()) if apart.size else np.nan

    return _by_source(share, scores, labels, source)


def within_rho(scores: Floats, levels: Floats, source: Ints) -> Floats:
    """Return per source Spearman's rho of scores and levels; NaN where one of them does not vary."""
    return _by_source(lambda own_scores, marks: float(spearman(own_scores, marks)), scores, levels, source)


def rising(scores: Floats, levels: Floats, source: Ints) -> Floats:
    """Return per source 1 if every pair scores above all of a lower level, else 0; NaN for a single level."""

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
