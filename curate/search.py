"""Exact nearest neighbours by inner product, in an order that no block size, thread or machine can change."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from curate.errors import DataError
from curate.protocols import Vectors

BLOCK = 64
"""Queries a block: bounds the matrix of scores to BLOCK x documents x 4 bytes."""
RESCORED = 4096
"""Documents whose float64 rows are held at once."""

Rows = npt.NDArray[np.int64]


def top_k(queries: Vectors, documents: Vectors, ids: Sequence[str], k: int) -> Iterator[list[tuple[int, float]]]:
    """Yield, for each query, the min(k, documents) best (row of the document, inner product), best first.

    The order is by the float64 product of the stored vectors, then by document id. A float32 product screens:
    whatever lies within twice its error of the k-th best is rescored.
    Raises DataError if a vector holds NaN or infinity, or if the shapes do not fit.
    """
    check(queries, documents, ids)
    place = _places(ids)
    error = product_error(queries, documents)
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        for query, screen in zip(block, block @ documents.T, strict=True):
            rows = _candidates(screen, k, 2 * error)
            exact = products(query, documents, rows)
            order = np.lexsort((place[rows], -exact))[:k]
            yield [(int(rows[at]), float(exact[at])) for at in order]


def products(vector: Vectors, matrix: Vectors, rows: Rows) -> npt.NDArray[np.float64]:
    """Return the float64 inner product of a vector with the named rows of a matrix, in order.

    Each is summed on its own, in one fixed order: equal rows give equal products, whatever stands beside them.
    """
    wide, found = vector.astype(np.float64), np.empty(len(rows))
    for start in range(0, len(rows), RESCORED):
        part = matrix[rows[start : start + RESCORED]].astype(np.float64)
        found[start : start + len(part)] = (part * wide).sum(axis=1)
    return found


def product_error(left: Vectors, right: Vectors) -> float:
    """Return how far a float32 inner product of a row of each can be from the exact one, in any order of summing.

    It is below dim * 2^-24 * |l| * |r| (Higham, Accuracy and Stability of Numerical Algorithms, 3.1); twice that is
    returned, which leaves room for a threshold that is rounded to float32.
    """
    longest = [float(np.linalg.norm(rows, axis=1).max(initial=0.0)) for rows in (left, right)]
    return float(left.shape[1] * 2.0**-23 * longest[0] * longest[1])


def unit(rows: npt.ArrayLike) -> Vectors:
    """Return rows as float32, each divided by its length; a row of zeros stays one."""
    plain = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(plain, axis=1, keepdims=True)
    divided: Vectors = plain / np.maximum(lengths, np.finfo(np.float32).tiny)
    return divided


def check(queries: Vectors, documents: Vectors, ids: Sequence[str]) -> None:
    """Raise DataError if vectors cannot be compared: other lengths, other counts, NaN or infinity."""
    if queries.shape[1] != documents.shape[1]:
        raise DataError(f"query vectors have {queries.shape[1]} dimensions, document vectors {documents.shape[1]}")
    if len(ids) != len(documents):
        raise DataError(f"found {len(ids)} document ids for {len(documents)} document vectors")
    for name, rows in (("query", queries), ("document", documents)):
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise DataError(f"{len(bad)} {name} vectors hold NaN or infinity, the first in row {bad[0]}")


def _places(ids: Sequence[str]) -> Rows:
    """Return each id's place in the order of all ids."""
    places = np.empty(len(ids), dtype=np.int64)
    places[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return places


def _candidates(screen: Vectors, k: int, band: float) -> Rows:
    if k >= len(screen):
        return np.arange(len(screen))
    kth = float(np.partition(screen, len(screen) - k)[len(screen) - k])
    return np.flatnonzero(screen >= kth - band)
