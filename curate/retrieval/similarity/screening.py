"""Screens: fast inner products with an error bound, to exclude pairs that cannot be in the result of exact products."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from curate.core.protocols import Vectors

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
GIB = 2**30


class Screen(Protocol):
    """Fast inner products on a device, in some precision; loaded blocks and products stay there, opaque to callers."""

    room: int
    """Maximum bytes of loaded vectors, counted as float32."""

    def load(self, rows: Vectors, longest: float) -> Any:  # noqa: ANN401 - only the screen that made it looks inside
        """Load rows, shape (n, dim), none longer than `longest`, for `product`."""
        ...

    def product(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return the inner products of all rows of two loaded blocks, shape (left, right)."""
        ...

    def above(self, scores: Any, floor: float) -> tuple[Rows, Rows, Scores]:  # noqa: ANN401
        """Return rows, columns and products of all products that are at least `floor`, row by row."""
        ...

    def error(self, left: Any, right: Any) -> float:  # noqa: ANN401
        """Return a bound on |screen's product - exact product| of any two rows of these blocks."""
        ...


@dataclass(frozen=True)
class Rows32:
    """Rows in contiguous memory, and an upper bound of their lengths."""

    rows: Vectors
    longest: float


class Float32:
    """Screen in single precision on the CPU."""

    room = GIB

    def load(self, rows: Vectors, longest: float) -> Rows32:
        """Return the rows in contiguous memory."""
        return Rows32(np.ascontiguousarray(rows, dtype=np.float32), longest)

    def product(self, left: Rows32, right: Rows32) -> Vectors:
        """Return left times right transposed."""
        scores: Vectors = left.rows @ right.rows.T
        return scores

    def above(self, scores: Vectors, floor: float) -> tuple[Rows, Rows, Scores]:
        """Find the products in one pass over the matrix."""
        indices = np.flatnonzero(scores >= rounded_down(np.array(floor)))
        rows, columns = np.divmod(indices, scores.shape[1])
        return rows, columns, scores.ravel()[indices].astype(np.float64)

    def error(self, left: Rows32, right: Rows32) -> float:
        """Return the bound of single precision."""
        return single(left.rows.shape[1], left.longest, right.longest)


def single(dim: int, left: float, right: float) -> float:
    """Return the error bound of a float32 product of two vectors of at most the lengths `left` and `right`.

    (dim + 2) * 2^-24 * |l| * |r| (Higham, Accuracy and Stability of Numerical Algorithms, 3.1; + 2 for vectors that
    were rounded to float32), doubled, and 2^-126 for each of dim products that may underflow.
    """
    return (dim + 2) * 2.0**-23 * left * right + dim * 2.0**-126


def rounded_down(floors: Scores) -> Vectors:
    """Return the numbers as float32, each lowered by one step so that rounding never increases it."""
    return np.nextafter(floors.astype(np.float32), np.float32(-np.inf))


FLOAT32 = Float32()
