"""An upper bound on similarities from a few leading dimensions, for vectors that have most of their length in few."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curate.protocols import Vectors

SAMPLE, TRIED, ROUNDS = 2048, 1024, 3
"""Vectors from which directions are found, others of which pairs are counted, and rounds of orthogonal iteration (Golub
and Van Loan, Matrix Computations, 8.2.4)."""
DIMENSIONS = (32, 64, 128, 192, 256, 320)
SHARE = 0.4
"""Of all dimensions; more would cost as much as they save."""
RARE = 1 / 1000
"""Share of pairs that may need their exact product. One such pair costs about as much as 200 in a matrix product."""
EPSILON = 2.0**-24


@dataclass(frozen=True)
class Leading:
    """Directions in which sampled vectors are long, orthonormal, shape (dim, leading dimensions)."""

    basis: Vectors
    slack: float
    """What rounding may hide: the inner product of two rows of `rows` plus this is never below that of the vectors."""

    def rows(self, vectors: Vectors) -> Vectors:
        """Return each vector's coordinates and, in one more dimension, a bound on the length of what they leave out.

        With x = Ba + r and y = Bb + s, <x, y> is at most <a, b> + |r||s| (Cauchy-Schwarz), up to how far B is from
        orthonormal and coordinates are from exact. `vectors` are no longer than 1.
        """
        found = vectors @ self.basis
        rest = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        rest -= np.einsum("ij,ij->i", found, found, dtype=np.float64)
        return np.column_stack([found, np.sqrt(np.maximum(rest, 0) + self.slack)]).astype(np.float32)


def leading(vectors: Vectors, t: float) -> Leading | None:
    """Return the fewest directions by which almost all pairs of a sample are seen to be below t; None if none do.

    Vectors that are spread over all dimensions have none, and neither have those of most text encoders at a threshold
    that is near to how similar any two texts are.
    """
    drawn = vectors[np.linspace(0, len(vectors) - 1, min(len(vectors), SAMPLE + TRIED)).astype(np.int64)]
    if len(drawn) < 2 or float(np.einsum("ij,ij->i", drawn, drawn).max()) > 1 + 1e-4:
        return None
    others = np.arange(len(drawn)) % (1 + SAMPLE // TRIED) > 0  # directions seem better on what they were found from
    basis, tried = _directions(drawn[others]), drawn[~others]
    for dimensions in DIMENSIONS:
        if dimensions > SHARE * vectors.shape[1]:
            return None
        found = _of(basis[:, :dimensions])
        rows = found.rows(tried)
        high = np.count_nonzero(rows @ rows.T > t - found.slack) - len(rows)
        if high <= RARE / 2 * len(rows) ** 2:
            return found
    return None


def _directions(sample: Vectors) -> npt.NDArray[np.float64]:
    """Return the longest directions of a sample, longest first, roughly: any orthonormal ones give a true bound."""
    basis = sample[: max(DIMENSIONS)].T.astype(np.float64)
    for _ in range(ROUNDS):
        basis, _ = np.linalg.qr(sample.T @ (sample @ basis.astype(np.float32)))
    return np.linalg.qr(basis.astype(np.float64))[0]


def _of(basis: npt.NDArray[np.float64]) -> Leading:
    """Return directions in float32, and how far products from them may be wrong, for vectors of length 1.

    Each coordinate is wrong by dim * 2^-24 at most, so the coordinates of what is left out, which would be 0, and
    whatever they meet, by the root of their number times that; B'B differs from the identity by what is measured. All
    is counted twice over, which covers lengths up to 1.0001 and the last dimension's own rounding.
    """
    rounded = basis.astype(np.float32)
    exact = rounded.astype(np.float64)
    skew = float(np.linalg.norm(exact.T @ exact - np.eye(exact.shape[1])))
    dim, dimensions = rounded.shape
    return Leading(rounded, 2 * (skew + 3 * dimensions**0.5 * dim * EPSILON))
