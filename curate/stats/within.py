"""Figures of a source from the scores of its pairs: right order of two labels, rank correlation and order of levels."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from curate.stats.rank_correlation import spearman
from curate.stats.tally import Floats, Ints


def correct(scores: Floats, labels: Floats, source: Ints) -> Floats:
    """Return per source the share of its pairs of label 1 that score above one of label 0, ties for half.

    Over all combinations of the two; NaN for a source without one.
    """

    def share(own: Floats, marks: Floats) -> float:
        apart = own[marks == 1][:, None] - own[marks == 0][None, :]
        return float(((apart > 0) + (apart == 0) / 2).mean()) if apart.size else np.nan

    return _by_source(share, scores, labels, source)


def within_rho(scores: Floats, levels: Floats, source: Ints) -> Floats:
    """Return per source Spearman's rho of scores and levels; NaN where one of them does not vary."""
    return _by_source(lambda own, marks: float(spearman(own, marks)), scores, levels, source)


def rising(scores: Floats, levels: Floats, source: Ints) -> Floats:
    """Return per source 1 if every pair scores above all of a lower level, else 0; NaN for a single level."""

    def strict(own: Floats, marks: Floats) -> float:
        steps = np.unique(marks)
        bounds = [(own[marks == step].min(), own[marks == step].max()) for step in steps]
        return float(all(low[1] < high[0] for low, high in pairwise(bounds)))

    return _by_source(lambda own, marks: strict(own, marks) if len(set(marks)) > 1 else np.nan, scores, levels, source)


def _by_source(figure: Callable[[Floats, Floats], float], scores: Floats, labels: Floats, source: Ints) -> Floats:
    order = np.argsort(source, kind="stable")
    _, starts = np.unique(source[order], return_index=True)
    parts = np.split(order, starts[1:])
    return np.array([figure(scores[part], labels[part]) for part in parts])
