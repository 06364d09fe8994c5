"""Approximate products of vectors as 8-bit integers, with a bound on their error."""

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from curate.core.protocols import Vectors
from curate.retrieval.similarity.screening import GIB, Rows, Scores

if TYPE_CHECKING:
    import torch

CACHED = 128
"""Number of rows quantised at a time; so few fit in the CPU's cache."""
WIDTH = 64
"""Multiple to which rows are zero-padded, since torch 2.13 multiplies rows of one number wrongly."""


@dataclass(frozen=True)
class Whole:
    """Rows quantised to integers: each value is an integer times a step shared by all rows."""

    numbers: "torch.Tensor"
    step: float
    longest: float
    """Upper bound of the rows' lengths."""
    astray: float
    """Upper bound of the length of a row's quantisation error."""


@dataclass(frozen=True)
class WholeProducts:
    """Products as integers; the value of a product is its integer times `step`."""

    numbers: npt.NDArray[np.int32]
    step: float


class Int8:
    """Screen by int8: vectors are quantised to -127 to 127, of which newer processors multiply four at a time.

    All vectors are rotated first, which changes no inner product. Without it, int8 would be too coarse for the small
    dimensions of embeddings in which some dimensions are much larger.
    """

    room = 4 * GIB  # which takes one, for a number takes a byte

    def load(self, rows: Vectors, longest: float) -> Whole:
        """Return the rows quantised in steps of 1/127 of their largest absolute value, with the measured error."""
        import torch

        dim = rows.shape[1]
        # by torch: threads of numpy's products spin for a while and would slow torch's down
        turned = (torch.from_numpy(np.array(rows, np.float32, order="C")) @ torch.from_numpy(turn(dim))).numpy()
        step = np.float32(max(turned.max(initial=0.0), -turned.min(initial=0.0)) / 127 + 2.0**-100)
        numbers, off = np.zeros((len(rows), -(-dim // WIDTH) * WIDTH), np.int8), 0.0
        for start in range(0, len(rows), CACHED):
            block = turned[start : start + CACHED]
            block /= step
            numbers[start : start + CACHED, :dim] = near = np.rint(block)
            block -= near
            off = max(off, float(np.einsum("ij,ij->i", block, block).max()) ** 0.5)
        off = off * (1 + dim * 2.0**-23) + dim**0.5 * 2.0**-16  # single precision, of numbers up to 127
        astray = off * float(step) + longest * dim**1.5 * 2.0**-23
        return Whole(torch.from_numpy(numbers), float(step), longest, astray)

    def product(self, left: Whole, right: Whole) -> WholeProducts:
        """Return left times right transposed; sums of whole numbers are exact."""
        import torch

        # no public function multiplies int8 on processors
        sums = torch._int_mm(left.numbers, right.numbers.T)  # noqa: SLF001
        return WholeProducts(sums.numpy(), left.step * right.step)

    def above(self, scores: WholeProducts, floor: float) -> tuple[Rows, Rows, Scores]:
        """Return rows, columns and products from one pass over the matrix."""
        indexes = np.flatnonzero(scores.numbers >= math.floor(floor / scores.step))
        rows, columns = np.divmod(indexes, scores.numbers.shape[1])
        return rows, columns, scores.numbers.ravel()[indexes] * np.float64(scores.step)

    def error(self, left: Whole, right: Whole) -> float:
        """Return the error bound |dx| |y| + |x - dx| |dy|, where dx and dy are the quantisation errors of x and y.

        It holds for any vectors by Cauchy and Schwarz, since xy - (x - dx)(y - dy) = dx y + (x - dx) dy. Rotation in
        single precision adds at most dim * 2^-24 |R| |x| to dx (Higham, as for float32), where |R|, of absolute values,
        is at most sqrt(dim). This is doubled, since the matrix, too, is only exact to single precision.
        """
        return left.astray * right.longest + (left.longest + left.astray) * right.astray


@cache
def turn(dim: int) -> Vectors:
    """Return a random rotation matrix with a fixed seed, shape (dim, dim)."""
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))
    return rotation.astype(np.float32)


def sums_exactly(screen: Int8) -> bool:
    """Return whether this processor sums int8 products exactly, by a test with few and many rows of largest numbers.

    Processors that multiply two at a time add them in 16 bits, which may overflow.
    """
    import torch

    numbers = np.where(turn(256) > 0, np.int8(127), np.int8(-127))
    numbers[0] = 127
    blocks = [Whole(torch.from_numpy(numbers[:rows]), 1.0, 1.0, 0.0) for rows in (1, 37, 256)]
    for block, right_block in product(blocks, repeat=2):
        exact = block.numbers.numpy().astype(np.float64) @ right_block.numbers.numpy().astype(np.float64).T
        if not np.array_equal(screen.product(block, right_block).numbers, exact):
            return False
    return True
