"""Statistics of classifiers on resampled texts: macro-F1, and the area under the ROC curve (AUROC)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from curate.stats.bootstrap import divided
from curate.stats.tally import Floats, Ints


def confusions(labels: Ints, predicted: Sequence[Ints], classes: int) -> Floats:
    """Return the input of `macro_f1`, a row per text: one-hot labels; per classifier, all and correct predictions."""
    truth = np.eye(classes)[labels]
    blocks = [truth]
    for of_classifier in predicted:
        prediction = np.eye(classes)[of_classifier]
        blocks += [prediction, prediction * truth]
    head = np.full((len(labels), 1), classes / max(len(labels), 1))
    return np.concatenate([head, *blocks], axis=1)


def macro_f1(sums: Floats) -> Floats:
    """Return the macro-F1, averaged over classifiers, from sums of `confusions`, shape (..., columns).

    NaN without texts. As in scikit-learn, a class that is neither a label nor predicted does not count, and one never
    predicted has F1 0.
    """
    classes = round(float(np.max(sums[..., 0])))
    columns = sums[..., 1:].reshape(*sums.shape[:-1], -1, classes)
    true, prediction, right = columns[..., :1, :], columns[..., 1::2, :], columns[..., 2::2, :]
    occurs = (true + prediction) > 0
    f1 = np.where(occurs, divided(2 * right, true + prediction), 0.0).sum(axis=-1)
    return np.asarray(divided(f1, occurs.sum(axis=-1)).mean(axis=-1))


# Area under the ROC curve of weighted texts: the macro mean over labels, one against the rest.

CELLS = 1 << 22
"""Number of weights per block; limits memory."""


def macro_auroc(scores: Floats, labels: Ints, weights: Floats) -> Floats:
    """Return the macro AUROC per row of weights, over labels with positives and negatives; NaN if there is none.

    `scores` has the shape (texts, labels). `weights` are the counts of the texts, shape (replicates, texts). With two
    labels only the first is measured, because the scores of the second mirror it.
    """
    columns = range(scores.shape[1] if scores.shape[1] > 2 else 1)
    return mean_of_defined(np.stack([auroc(scores[:, column], labels == column, weights) for column in columns]))


def mean_of_defined(figures: Floats) -> Floats:
    """Return the means over the first axis, ignoring NaN; NaN if all are."""
    return divided(np.nansum(figures, axis=0), (~np.isnan(figures)).sum(axis=0).astype(np.float64))


def auroc(scores: Floats, positive: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """Return the AUROC per row of weights.

    It is the share of (positive, negative) pairs in which the positive scores higher, with ties as 1/2 (Mann-Whitney
    statistic), computed from sums over the sorted scores.
    """
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
    right = positive[order]
    size = max(CELLS // weights.shape[1], 1)
    blocks = (weights[first : first + size] for first in range(0, len(weights), size))
    return np.concatenate([_areas(block[:, order], right, starts) for block in blocks])


def _areas(weights: Floats, right: npt.NDArray[np.bool_], starts: Ints) -> Floats:
    positives = np.add.reduceat(weights * right, starts, axis=1)
    negatives = np.add.reduceat(weights * ~right, starts, axis=1)
    below = np.cumsum(negatives, axis=1) - negatives / 2
    return divided((positives * below).sum(axis=1), positives.sum(axis=1) * negatives.sum(axis=1))
