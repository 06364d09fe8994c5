"""Screens: fast inner products with an error bound, to exclude pairs that cannot be in the result of exact products."""

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
"""Number of rows of products compared with their floors (minimum products) at a time; so few fit in the CPU's cache."""


@dataclass(frozen=True)
class Error:
    """Bound on |screen's product - exact product|: `absolute` + `relative` * |screen's product|."""

    absolute: float
    relative: float = 0.0

    def of(self, products: Scores) -> Scores:
        """Return the bound for each product; product + bound and product - bound are monotonic in the product."""
        return self.absolute + self.relative * np.abs(products)

    def finer(self, share: float) -> "Error":
        """Return the error bound of a precision whose rounding error is `share` times that of this one."""
        return Error(self.absolute * share, self.relative * share)

    def least(self, floors: Scores | float) -> Scores:
        """Return, per floor, the lowest product whose exact value may reach it: inverse of product + `of(product)`."""
        reach = floors - self.absolute
        least: Scores = reach / (1 + np.copysign(self.relative, reach))
        return least


Tile = tuple[list[int], Rows, Scores]
"""(Edges, columns, products) selected from consecutive rows; those of row i are edges[i] to edges[i + 1], by column."""


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

    def kth(self, scores: Any, k: int) -> Scores:  # noqa: ANN401
        """Return the k-th highest product of each row; k is at most the number of columns."""
        ...

    def at_least(self, scores: Any, floors: Scores) -> Iterator[Tile]:  # noqa: ANN401
        """Yield, in tiles of rows, the columns whose product is at least the row's floor, and these products."""
        ...

    def above(self, scores: Any, floor: float) -> tuple[Rows, Rows, Scores]:  # noqa: ANN401
        """Return rows, columns and products of all products that are at least `floor`, row by row."""
        ...

    def error(self, left: Any, right: Any) -> Error:  # noqa: ANN401
        """Return the error bound of a product of two rows of these blocks."""
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

    def kth(self, scores: Vectors, k: int) -> Scores:
        """Return the k-th highest product of each row."""
        return kth_highest(scores, k).astype(np.float64)

    def at_least(self, scores: Vectors, floors: Scores) -> Iterator[Tile]:
        """Yield tiles of `TILE` rows."""
        for edges, columns, values in not_below(scores, rounded_down(floors)):
            yield edges, columns, values.astype(np.float64)

    def above(self, scores: Vectors, floor: float) -> tuple[Rows, Rows, Scores]:
        """Find the products in one pass over the matrix."""
        indices = np.flatnonzero(scores >= rounded_down(np.array(floor)))
        rows, columns = np.divmod(indices, scores.shape[1])
        return rows, columns, scores.ravel()[indices].astype(np.float64)

    def error(self, left: Rows32, right: Rows32) -> Error:
        """Return the bound of single precision."""
        return Error(single(left.rows.shape[1], left.longest, right.longest))


def single(dim: int, left: float, right: float) -> float:
    """Return the error bound of a float32 product of two vectors of at most the lengths `left` and `right`.

    (dim + 2) * 2^-24 * |l| * |r| (Higham, Accuracy and Stability of Numerical Algorithms, 3.1; + 2 for vectors that
    were rounded to float32), doubled, and 2^-126 for each of dim products that may underflow.
    """
    return (dim + 2) * 2.0**-23 * left * right + dim * 2.0**-126


def rounded_down(floors: Scores) -> Vectors:
    """Return the numbers as float32, each lowered by one step so that rounding never increases it."""
    return np.nextafter(floors.astype(np.float32), np.float32(-np.inf))


def kth_highest(matrix: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    """Return the k-th highest number of each row; rows are processed one at a time, since one fits in the cache."""
    position = matrix.shape[1] - k
    return np.array([np.partition(row, position)[position] for row in matrix], dtype=matrix.dtype)


def not_below(matrix: npt.NDArray[Any], floors: npt.NDArray[Any]) -> Iterator[tuple[list[int], Rows, npt.NDArray[Any]]]:
    """Yield a `Tile` per `TILE` rows: the columns whose number is at least the row's floor, and these numbers."""
    width = matrix.shape[1]
    for start in range(0, len(matrix), TILE):
        tile = matrix[start : start + TILE]
        indices = np.flatnonzero(tile >= floors[start : start + TILE, None])
        yield (
            np.searchsorted(indices, np.arange(len(tile) + 1) * width).tolist(),
            indices % width,
            tile.ravel()[indices],
        )


FLOAT32 = Float32()
