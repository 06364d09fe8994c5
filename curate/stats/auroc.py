"""Area under the ROC curve of weighted texts: the macro mean over labels, one against the rest."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from curate.stats.bootstrap import divided
from curate.stats.tally import Floats, Ints

CELLS = 1 << 22
"""Weights per block: bounds memory."""


def macro_auroc(scores: Floats, labels: Ints, weights: Floats) -> Floats:
    """Return the macro AUROC for every row of weights, over labels with positives and negatives; NaN without any.

    `scores` has the shape (texts, labels); `weights` are the counts of the texts, shape (replicates, texts). Of two
    labels only the first is measured, since their scores mirror each other.
    """
    columns = range(scores.shape[1] if scores.shape[1] > 2 else 1)
    return mean_of_defined(np.stack([auroc(scores[:, column], labels == column, weights) for column in columns]))


def mean_of_defined(figures: Floats) -> Floats:
    """Return the means over the first axis, ignoring NaN; NaN if all are."""
    return divided(np.nansum(figures, axis=0), (~np.isnan(figures)).sum(axis=0).astype(np.float64))


def auroc(scores: Floats, positive: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """Return for every row of weights the share of pairs in which the positive scores higher; ties count a half.

    The statistic of Mann and Whitney: a positive's share of the negatives below it, from sums over the sorted scores.
    """
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
    right = positive[order]
    return np.concatenate([_areas(block[:, order], right, starts) for block in _blocks(weights)])


def _areas(weights: Floats, right: npt.NDArray[np.bool_], starts: Ints) -> Floats:
    positives = np.add.reduceat(weights * right, starts, axis=1)
    negatives = np.add.reduceat(weights * ~right, starts, axis=1)
    below = np.cumsum(negatives, axis=1) - negatives / 2
    return divided((positives * below).sum(axis=1), positives.sum(axis=1) * negatives.sum(axis=1))


def _blocks(weights: Floats) -> Iterator[Floats]:
    size = max(CELLS // weights.shape[1], 1)
    return (weights[start : start + size] for start in range(0, len(weights), size))
