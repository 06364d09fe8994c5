"""Approximate products with an error bound, by which pairs that cannot matter are left out before the exact ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from curate.core.protocols import Vectors

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
GIB = 2**30
TILE = 16
"""Rows of products that are compared with their floors at once: few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class Error:
    """How far a screen's product can be from the exact one: `absolute`, and a share `relative` of its own size."""

    absolute: float
    relative: float = 0.0

    def of(self, products: Scores) -> Scores:
        """Return how far each product can be from the exact one; of a larger product neither bound is lower."""
        return self.absolute + self.relative * np.abs(products)

    def finer(self, share: float) -> "Error":
        """Return the error of a precision in which every step is wrong by this share of what it was."""
        return Error(self.absolute * share, self.relative * share)

    def least(self, floors: Scores | float) -> Scores:
        """Return the least product whose exact one may reach each floor: the inverse of product + `of`(product)."""
        reach = floors - self.absolute
        least: Scores = reach / (1 + np.copysign(self.relative, reach))
        return least


Tile = tuple[list[int], Rows, Scores]
"""Of some rows that follow one another: edges, columns, products. Those of row i stand from edges[i] to edges[i + 1],
in the order of the columns."""


class Screen(Protocol):
    """Multiply vectors somewhere, in some precision; blocks and products stay there and are handed back as they are."""

    room: int
    """Bytes of vectors, as float32, that may stay loaded."""

    def load(self, rows: Vectors, longest: float) -> Any:  # noqa: ANN401 - only the screen that made it looks inside
        """Return rows, shape (n, dim), none longer than `longest`, as `product` takes them."""
        ...

    def product(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return the inner products of all rows of two loaded blocks, shape (left, right)."""
        ...

    def kth(self, scores: Any, k: int) -> Scores:  # noqa: ANN401
        """Return the k-th highest product of each row; k is at most the number of columns."""
        ...

    def at_least(self, scores: Any, floors: Scores) -> Iterator[Tile]:  # noqa: ANN401
        """Yield, some rows at a time, the columns whose product is not below the row's floor, and these products."""
        ...

    def above(self, scores: Any, floor: float) -> tuple[Rows, Rows, Scores]:  # noqa: ANN401
        """Return rows, columns and products of all that is not below one floor, row by row."""
        ...

    def error(self, left: Any, right: Any) -> Error:  # noqa: ANN401
        """Return how far a product of two rows of these blocks can be from the exact one."""
        ...


@dataclass(frozen=True)
class Rows32:
    """Rows in one piece of memory, and a length that none exceeds."""

    rows: Vectors
    longest: float


class Float32:
    """Products by the processor, in single precision."""

    room = GIB

    def load(self, rows: Vectors, longest: float) -> Rows32:
        """Return the rows in one piece of memory."""
        return Rows32(np.ascontiguousarray(rows, dtype=np.float32), longest)

    def product(self, left: Rows32, right: Rows32) -> Vectors:
        """Return left times right transposed."""
        found: Vectors = left.rows @ right.rows.T
        return found

    def kth(self, scores: Vectors, k: int) -> Scores:
        """Return the k-th highest product of each row."""
        return kth_highest(scores, k).astype(np.float64)

    def at_least(self, scores: Vectors, floors: Scores) -> Iterator[Tile]:
        """Yield TILE rows at a time."""
        for edges, columns, values in not_below(scores, rounded_down(floors)):
            yield edges, columns, values.astype(np.float64)

    def above(self, scores: Vectors, floor: float) -> tuple[Rows, Rows, Scores]:
        """Return them from one look at the whole matrix."""
        at = np.flatnonzero(scores >= rounded_down(np.array(floor)))
        rows, columns = np.divmod(at, scores.shape[1])
        return rows, columns, scores.ravel()[at].astype(np.float64)

    def error(self, left: Rows32, right: Rows32) -> Error:
        """Return the bound of single precision."""
        return Error(single(left.rows.shape[1], left.longest, right.longest))


def single(dim: int, left: float, right: float) -> float:
    """Return how far a float32 product of two vectors of at most these lengths can be from the exact one.

    (dim + 2) * 2^-24 * |l| * |r| (Higham, Accuracy and Stability of Numerical Algorithms, 3.1; 2 for vectors that had
    to be rounded to float32), doubled, and 2^-126 for each product that may be too small for float32.
    """
    return (dim + 2) * 2.0**-23 * left * right + dim * 2.0**-126


def rounded_down(floors: Scores) -> Vectors:
    """Return float32 numbers that are not above these."""
    return np.nextafter(floors.astype(np.float32), np.float32(-np.inf))


def kth_highest(matrix: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    """Return the k-th highest number of each row, one row at a time, which stays in the processor's cache."""
    place = matrix.shape[1] - k
    return np.array([np.partition(row, place)[place] for row in matrix], dtype=matrix.dtype)


def not_below(matrix: npt.NDArray[Any], floors: npt.NDArray[Any]) -> Iterator[tuple[list[int], Rows, npt.NDArray[Any]]]:
    """Yield, TILE rows at a time, the columns whose number is not below the row's floor, as in a `Tile`."""
    width = matrix.shape[1]
    for start in range(0, len(matrix), TILE):
        tile = matrix[start : start + TILE]
        at = np.flatnonzero(tile >= floors[start : start + TILE, None])
        yield np.searchsorted(at, np.arange(len(tile) + 1) * width).tolist(), at % width, tile.ravel()[at]


FLOAT32 = Float32()
