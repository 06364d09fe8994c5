"""Devices for approximate products: int8 on the processor, or half precision by torch on a GPU."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curate.core.errors import ConfigError, DataError
from curate.core.protocols import Vectors
from curate.retrieval.similarity.approximate import FLOAT32, GIB, Rows, Scores, Screen, rounded_down
from curate.retrieval.similarity.int8 import Int8, int8_pays
from curate.system.extras import installed, needed

if TYPE_CHECKING:
    import torch

HALF = 2.0**-11
"""How far float16 is from a number, relative to it; below 2^-14 it is 2^-25 at most."""
LONGEST = 100.0
"""Longer vectors could have products that float16 cannot hold."""
WORTHWHILE = 40_000
"""From so many vectors on that are compared with each other, loading torch is paid back."""


def screen_on(device: str, compared: int = 0) -> Screen:
    """Return the screen of a device: `cpu`, a GPU such as `cuda` or `cuda:1`, or `auto` for a GPU if there is one.

    `compared` is how many vectors will be compared with each other: for many, a processor multiplies whole numbers if
    it is faster at that and torch, which alone can, is installed. The hits are the same on every screen. MissingExtra
    without torch for a GPU; ConfigError if torch cannot use the device.
    """
    if device == "cpu":
        return Int8() if compared >= WORTHWHILE and installed("torch") and int8_pays() else FLOAT32
    if device == "auto" and not installed("torch"):
        return screen_on("cpu", compared)
    with needed(f"engine.device: {device!r}"):
        import torch

    if device == "auto" and not torch.cuda.is_available():
        return screen_on("cpu", compared)
    try:
        return Float16(torch.zeros(1, device="cuda" if device == "auto" else device).device)
    except (RuntimeError, AssertionError) as error:  # torch raises both for a device that is not there
        words = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"engine.device: {device!r} cannot be used ({words}); give cpu, cuda or cuda:N, or auto"
        ) from error


@dataclass(frozen=True)
class Rows16:
    """Rows on a device, and a length that none exceeds."""

    rows: "torch.Tensor"
    longest: float


class Float16:
    """Products in half precision by torch, on any of its devices."""

    def __init__(self, device: "torch.device") -> None:
        self._device = device
        self.room = GIB
        if device.type == "cuda":
            import torch

            self.room = torch.cuda.mem_get_info(device)[0]  # half of what is free, for a number takes two bytes there

    def load(self, rows: Vectors, longest: float) -> Rows16:
        """Return the rows on the device; DataError for vectors that float16 cannot hold."""
        import torch

        if longest > LONGEST:
            raise DataError(f"a vector is longer than {LONGEST:g}; normalise the vectors, or set engine.device=cpu")
        whole = torch.from_numpy(np.array(rows, order="C"))  # torch takes C order alone
        return Rows16(whole.to(self._device, torch.float16), longest)

    def product(self, left: Rows16, right: Rows16) -> "torch.Tensor":
        """Return left times right transposed, summed in single precision, in half precision."""
        import torch

        settings = torch.backends.cuda.matmul
        before = settings.allow_fp16_reduced_precision_reduction
        settings.allow_fp16_reduced_precision_reduction = False
        try:
            return left.rows @ right.rows.T
        finally:
            settings.allow_fp16_reduced_precision_reduction = before

    def kth(self, scores: "torch.Tensor", k: int) -> Scores:
        """Return the k-th highest product of each row."""
        best = scores.float().topk(k, dim=1, sorted=True).values[:, -1]
        found: Scores = best.double().cpu().numpy()
        return found

    def at_least(self, scores: "torch.Tensor", floors: Scores) -> Iterator[tuple[Rows, Scores]]:
        """Find them on the device, and bring only them from there."""
        rows, columns, values = self._found(scores, floors)
        edges = np.searchsorted(rows, np.arange(1, len(floors)))
        yield from zip(np.split(columns, edges), np.split(values, edges), strict=True)

    def above(self, scores: "torch.Tensor", floor: float) -> tuple[Rows, Rows, Scores]:
        """Find them on the device, and bring only them from there."""
        return self._found(scores, np.array([floor]))

    def _found(self, scores: "torch.Tensor", floors: Scores) -> tuple[Rows, Rows, Scores]:
        import torch

        places = (scores.float() >= torch.from_numpy(rounded_down(floors)).to(self._device)[:, None]).nonzero()
        values = scores[places[:, 0], places[:, 1]].double().cpu().numpy()
        rows, columns = places.T.cpu().numpy()
        return rows, columns, values

    def error(self, left: Rows16, right: Rows16) -> float:
        """Return a bound from rounding both vectors, summing in float32 and rounding the product.

        Rounding moves a vector by HALF of its length, and each number by 2^-25 at most. The sum is wrong by dim *
        2^-24, which is doubled, for tensor cores cut off where others round.
        """
        dim, lengths = left.rows.shape[1], (left.longest, right.longest)
        first, second = (length * (1 + HALF) + 2.0**-25 * math.sqrt(dim) for length in lengths)
        found: float = first * second * (1 + HALF + dim * 2.0**-23) - lengths[0] * lengths[1] + 2.0**-24
        return found
