"""Statistics of classifiers on resampled texts: macro-F1, and the area under the ROC curve."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from curate.stats.bootstrap import divided
from curate.stats.tally import Floats, Ints


def confusions(labels: Ints, predicted: Sequence[Ints], classes: int) -> Floats:
    """Return sums for `macro_f1`, one row per text: label, and per classifier its prediction and whether it is right.

    Shape (texts, 1 + classes x (1 + 2 x classifiers)); the first column is the number of classes over that of texts.
    Labels and predictions are whole numbers from 0, below `classes`.
    """
    truth = np.eye(classes)[labels]
    blocks = [truth]
    for of_classifier in predicted:
        prediction = np.eye(classes)[of_classifier]
        blocks += [prediction, prediction * truth]
    head = np.full((len(labels), 1), classes / max(len(labels), 1))
    return np.concatenate([head, *blocks], axis=1)


def macro_f1(sums: Floats) -> Floats:
    """Return macro-F1, averaged over classifiers, of summed `confusions`, shape (..., columns); NaN without a text.

    As in scikit-learn, a class that is neither a label nor predicted does not count, one never predicted has 0.
    """
    classes = round(float(np.max(sums[..., 0])))
    columns = sums[..., 1:].reshape(*sums.shape[:-1], -1, classes)
    true, prediction, right = columns[..., :1, :], columns[..., 1::2, :], columns[..., 2::2, :]
    occurs = (true + prediction) > 0
    f1 = np.where(occurs, divided(2 * right, true + prediction), 0.0).sum(axis=-1)
    return np.asarray(divided(f1, occurs.sum(axis=-1)).mean(axis=-1))


# Area under the ROC curve of weighted texts: the macro mean over labels, one against the rest.

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
