"""Figures of a measure on gradients: groups of items with levels of correctness.

Pooled is Spearman's rho over all items, as in Soffer et al.; within is the mean rho of groups, where defined; strict is
the share of groups in which every item scores above all of lower levels. Groups are resampled.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curate.stats.bootstrap import Figure
from curate.stats.replicated import figures, grouped, mean_value, spearman
from curate.stats.tally import Floats, Ints
from curate.stats.within import correct, rising, within_rho


@dataclass(frozen=True)
class GradientFigures:
    """Agreement of scores with levels."""

    pooled: Figure
    within: Figure
    strict: Figure
    undefined: int
    """Groups without a rho: their scores, or their levels, are all equal."""


def gradient_figures(scores: Floats, levels: Floats, group: Ints, seed: int, replicates: int = 1000) -> GradientFigures:
    """Return the figures of items; `group` is the number of each item's group, from 0."""
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
    """Return Spearman's rho over all items, ties sharing their mean rank; None where one side does not vary."""
    rho = float(spearman(scores, levels)(np.ones((1, len(scores))))[0])
    return None if math.isnan(rho) else rho


def paired_accuracy(
    scores: Floats, levels: Floats, group: Ints, kinds: Sequence[str], seed: int, replicates: int = 1000
) -> Mapping[str, Figure]:
    """Return kind -> share of its groups whose item of level 1 scores above that of level 0, ties for half.

    `kinds` names the kind of each group; `""` is the mean over all groups. Chance is one half.
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

    For k equally frequent levels of many items it is sqrt(1 - 1/k^2): .980 for five.
    """
    count = len(levels)
    if len(set(levels)) < 2:
        return None
    tied = sum(times**3 - times for times in Counter(levels).values())
    return math.sqrt(1 - tied / (count**3 - count))
