"""Approximate products of vectors in bfloat16, with a bound on their error."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import length_bound
from curate.retrieval.similarity.screening import (
    GIB,
    TILE,
    Error,
    Rows,
    Scores,
    Tile,
    kth_highest,
    not_below,
    rounded_down,
)

if TYPE_CHECKING:
    import torch

Bits = npt.NDArray[np.int16]
HALF = 2.0**-8
"""Maximum relative rounding error of bfloat16."""
LEAST = 2.0**-126
"""Smallest absolute value that is not flushed to 0."""
CACHED = 256
"""Number of rows rounded at a time; so few fit in the CPU's cache."""


@dataclass(frozen=True)
class RowsBf16:
    """Rows in bfloat16."""

    rows: "torch.Tensor"
    longest: float
    """Upper bound of the rows' lengths before rounding."""
    astray: float
    """Upper bound of the length of a row's rounding error."""


class BFloat16:
    """Screen by processors that multiply bfloat16 and add in single precision (AVX512-BF16, AMX, Arm's BF16).

    A product is rounded to bfloat16. Read as 16-bit integers, its bits sort positive numbers like the numbers
    themselves, so that they are compared with floors without a conversion.
    """

    room = 2 * GIB  # which takes one, for a number takes two bytes

    def load(self, rows: Vectors, longest: float) -> RowsBf16:
        """Return the rows in bfloat16, with their measured rounding error, about half of the worst case."""
        import torch

        loaded, largest = torch.empty(rows.shape, dtype=torch.bfloat16), 0.0
        # a copy, for torch takes no array that cannot be written to
        copy = torch.empty((min(CACHED, len(rows)), rows.shape[1]), dtype=torch.float32)
        for start in range(0, len(rows), CACHED):
            block = rows[start : start + CACHED]
            np.copyto(copy.numpy()[: len(block)], block, casting="same_kind")
            near, off = loaded[start : start + CACHED], copy[: len(block)]
            near.copy_(off)
            largest = max(largest, float(off.sub_(near).square_().sum(1).max()))
        astray = length_bound(largest, rows.shape[1]) + longest * 2.0**-23 + LEAST * math.sqrt(rows.shape[1])
        return RowsBf16(loaded, longest, astray)

    def product(self, left: RowsBf16, right: RowsBf16) -> Bits:
        """Return the bits of left times right transposed."""
        import torch

        bits: Bits = (left.rows @ right.rows.T).view(torch.int16).numpy()
        return bits

    def kth(self, scores: Bits, k: int) -> Scores:
        """Return the k-th highest product of each row."""
        best = kth_highest(scores, k)
        if best.min(initial=0) >= 0:
            return numbers(best)
        return numbers(ordered(kth_highest(ordered(scores), k)))

    def at_least(self, scores: Bits, floors: Scores) -> Iterator[Tile]:
        """Yield tiles of `TILE` rows; if a floor is not positive, bits are first mapped by `ordered`."""
        floors_ = rounded_down(floors).view(np.int32)
        limits = (floors_ ^ ((floors_ >> 31) & 0x7FFFFFFF)) >> 16
        for start in range(0, len(scores), TILE):
            tile, low = scores[start : start + TILE], limits[start : start + TILE].astype(np.int16)
            positive = low.min() > 0
            ((edges, columns, bits),) = not_below(tile if positive else ordered(tile), low)
            yield edges, columns, numbers(bits if positive else ordered(bits))

    def above(self, scores: Bits, floor: float) -> tuple[Rows, Rows, Scores]:
        """Return rows, columns and products, row by row."""
        tiles = list(self.at_least(scores, np.full(len(scores), floor)))
        rows = np.repeat(np.arange(len(scores)), np.concatenate([np.diff(edges) for edges, *_ in tiles]))
        columns, products = (np.concatenate(arrays) for arrays in zip(*(tile for _, *tile in tiles), strict=True))
        return rows, columns, products

    def error(self, left: RowsBf16, right: RowsBf16) -> Error:
        """Return the error bound: |dx| |y| + |x - dx| |dy| for rounding the vectors, and errors of the float32 sum.

        dx and dy are the rounding errors of x and y, as for `Int8`. Products of two bfloat16 are exact in float32;
        their sum, in any order, has an error of dim * 2^-24 |x| |y| (Higham, Accuracy and Stability of Numerical
        Algorithms, 3.1), doubled because some units truncate instead of rounding. Last, the sum is rounded to bfloat16.
        """
        dim, first, second = left.rows.shape[1], left.longest + left.astray, right.longest + right.astray
        rounded = left.astray * right.longest + first * right.astray
        return Error(rounded + first * second * dim * 2.0**-23 + (2 * dim + 1) * LEAST, HALF)


def ordered(bits: Bits) -> Bits:
    """Return integers that sort like the bfloat16 numbers with these bits; the function is its own inverse."""
    return bits ^ ((bits >> 15) & np.int16(0x7FFF))


def numbers(bits: Bits) -> Scores:
    """Return the bfloat16 numbers with these bits, as float64."""
    return (bits.astype(np.int32) << 16).view(np.float32).astype(np.float64)


def sums_in_float32(screen: BFloat16) -> bool:
    """Return whether this processor sums products in float32, by test vectors for which bfloat16 sums would be wrong.

    In the test vectors, the first 64 products add up to 1, and every `width` products after them to too little to
    change 1 in bfloat16. Few and many rows are tested, since a library may multiply them in different ways.
    """
    for width, rows in product((1, 64, 512), (1, 37, 256)):
        vectors = np.full((rows, 4096), math.sqrt(0.96 * 2.0**-9 / width), np.float32)
        vectors[:, :64] = 1 / 8
        block = screen.load(vectors, float(np.linalg.norm(vectors[0])))
        exact = (block.rows.double() @ block.rows.double().T).numpy()
        if (np.abs(numbers(screen.product(block, block)) - exact) > screen.error(block, block).of(exact)).any():
            return False
    return True
