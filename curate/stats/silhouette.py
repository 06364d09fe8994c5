"""Silhouettes of labelled vectors by cosine distance, without a matrix of all pairs.

The mean cosine distance of x to the texts of a cluster C is 1 - x . S / |C|, S the sum of their unit vectors, so
Rousseeuw's silhouette (1987) needs one product per cluster and text.
"""

import numpy as np
import numpy.typing as npt

from curate.stats.tally import Floats, Ints

ROWS = 4096
"""Vectors per block in double precision: bounds memory."""


def silhouettes(vectors: npt.NDArray[np.float32], labels: Ints) -> Floats:
    """Return (b - a) / max(a, b) per text: a is its mean distance to others of its label, b to the nearest other label.

    `vectors` are of unit length, `labels` numbers from 0 without gaps, two at least. A label of one text gives 0.
    """
    sizes = np.bincount(labels).astype(np.float64)
    sums = np.zeros((len(sizes), vectors.shape[1]))
    for start in range(0, len(vectors), ROWS):
        np.add.at(sums, labels[start : start + ROWS], vectors[start : start + ROWS].astype(np.float64))
    figures = np.zeros(len(vectors))
    for start in range(0, len(vectors), ROWS):
        block, label = vectors[start : start + ROWS].astype(np.float64), labels[start : start + ROWS]
        rows = np.arange(len(block))
        distance = 1 - block @ sums.T / sizes
        itself, others = 1 - (block * block).sum(axis=1), sizes[label] - 1
        inner = (distance[rows, label] * sizes[label] - itself) / np.maximum(others, 1)
        distance[rows, label] = np.inf
        nearest = distance.min(axis=1)
        widest = np.maximum(np.maximum(inner, nearest), 1e-12)
        figures[start : start + ROWS] = np.where(others > 0, (nearest - inner) / widest, 0.0)
    return figures
