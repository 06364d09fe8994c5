"""Macro-F1 of several classifiers as a statistic of sums over texts, so that texts can be resampled or exchanged."""

from collections.abc import Sequence

import numpy as np

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
    """Return macro-F1, averaged over classifiers, of summed `confusions`, shape (..., columns); NaN of no text.

    As scikit-learn has it: a class that is neither a label nor predicted does not count, one never predicted has 0.
    """
    classes = round(float(np.max(sums[..., 0])))
    columns = sums[..., 1:].reshape(*sums.shape[:-1], -1, classes)
    true, prediction, right = columns[..., :1, :], columns[..., 1::2, :], columns[..., 2::2, :]
    occurs = (true + prediction) > 0
    f1 = np.where(occurs, divided(2 * right, true + prediction), 0.0).sum(axis=-1)
    return np.asarray(divided(f1, occurs.sum(axis=-1)).mean(axis=-1))
