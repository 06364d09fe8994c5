"""Approximate products in half precision by torch, on a GPU or another of its devices, with a bound on their error."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curate.core.errors import DataError
from curate.core.protocols import Vectors
from curate.retrieval.similarity.screening import GIB, Error, Rows, Scores, Tile, rounded_down

if TYPE_CHECKING:
    import torch

HALF = 2.0**-11
"""Maximum relative rounding error of float16; below 2^-14 the error is at most 2^-25."""
LONGEST = 100.0
"""Maximum length of a vector, since products of longer ones could overflow float16."""


@dataclass(frozen=True)
class Rows16:
    """Rows in float16 on a device, and an upper bound of their lengths."""

    rows: "torch.Tensor"
    longest: float


class Float16:
    """Screen in half precision by torch, on any of its devices."""

    def __init__(self, device: "torch.device") -> None:
        self._device = device
        self.room = GIB
        if device.type == "cuda":
            import torch

            self.room = torch.cuda.mem_get_info(device)[0]  # half of what is free, for a number takes two bytes there

    def load(self, rows: Vectors, longest: float) -> Rows16:
        """Return the rows in float16 on the device; DataError for vectors longer than `LONGEST`."""
        import torch

        if longest > LONGEST:
            raise DataError(f"a vector is longer than {LONGEST:g}; normalise the vectors, or set engine.device=cpu")
        tensor = torch.from_numpy(np.array(rows, order="C"))  # torch takes C order alone
        return Rows16(tensor.to(self._device, torch.float16), longest)

    def product(self, left: Rows16, right: Rows16) -> "torch.Tensor":
        """Return left times right transposed, summed in single precision and rounded to half precision."""
        import torch

        settings = torch.backends.cuda.matmul
        earlier = settings.allow_fp16_reduced_precision_reduction
        settings.allow_fp16_reduced_precision_reduction = False
        try:
            return left.rows @ right.rows.T
        finally:
            settings.allow_fp16_reduced_precision_reduction = earlier

    def kth(self, scores: "torch.Tensor", k: int) -> Scores:
        """Return the k-th highest product of each row."""
        best = scores.float().topk(k, dim=1, sorted=True).values[:, -1]
        kth_best: Scores = best.double().cpu().numpy()
        return kth_best

    def at_least(self, scores: "torch.Tensor", floors: Scores) -> Iterator[Tile]:
        """Yield one tile with all rows; products are selected on the device, and only these are copied."""
        rows, columns, values = self._above_floors(scores, floors)
        yield np.searchsorted(rows, np.arange(len(floors) + 1)).tolist(), columns, values

    def above(self, scores: "torch.Tensor", floor: float) -> tuple[Rows, Rows, Scores]:
        """Return rows, columns and products that are at least `floor`; they are selected on the device, then copied."""
        return self._above_floors(scores, np.array([floor]))

    def _above_floors(self, scores: "torch.Tensor", floors: Scores) -> tuple[Rows, Rows, Scores]:
        import torch

        indexes = (scores.float() >= torch.from_numpy(rounded_down(floors)).to(self._device)[:, None]).nonzero()
        values = scores[indexes[:, 0], indexes[:, 1]].double().cpu().numpy()
        rows, columns = indexes.T.cpu().numpy()
        return rows, columns, values

    def error(self, left: Rows16, right: Rows16) -> Error:
        """Return the error bound, for rounding both vectors, summing in float32 and rounding the product.

        Rounding changes a vector by at most HALF of its length, plus 2^-25 per entry. The sum has a relative error of
        dim * 2^-24, which is doubled, because tensor cores truncate instead of rounding.
        """
        dim, lengths = left.rows.shape[1], (left.longest, right.longest)
        first, second = (length * (1 + HALF) + 2.0**-25 * math.sqrt(dim) for length in lengths)
        return Error(first * second * (1 + dim * 2.0**-23) - lengths[0] * lengths[1] + 2.0**-24, HALF)
