"""Products of vectors in single precision by torch, on a GPU or another of its devices."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curate.core.protocols import Vectors
from curate.retrieval.similarity.screening import GIB, Rows, Scores, rounded_down, single

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class RowsOnDevice:
    """Rows in float32 on a device, and an upper bound of their lengths."""

    rows: "torch.Tensor"
    longest: float


class TorchFloat32:
    """Products in single precision by torch, on any of its devices: a screen of pairs, and the nearest documents."""

    def __init__(self, device: "torch.device") -> None:
        self._device = device
        self.room = GIB
        if device.type == "cuda":
            import torch

            self.room = torch.cuda.mem_get_info(device)[0] // 2

    def load(self, rows: Vectors, longest: float) -> RowsOnDevice:
        """Return the rows on the device."""
        return RowsOnDevice(self._moved(rows), longest)

    def product(self, left: RowsOnDevice, right: RowsOnDevice) -> "torch.Tensor":
        """Return left times right transposed."""
        with _single_precision():
            return left.rows @ right.rows.T

    def above(self, scores: "torch.Tensor", floor: float) -> tuple[Rows, Rows, Scores]:
        """Return rows, columns and products that are at least `floor`; they are selected on the device, then copied."""
        indexes = (scores >= float(rounded_down(np.array(floor)))).nonzero()
        values = scores[indexes[:, 0], indexes[:, 1]].double().cpu().numpy()
        rows, columns = indexes.T.cpu().numpy()
        return rows, columns, values

    def error(self, left: RowsOnDevice, right: RowsOnDevice) -> float:
        """Return the bound of single precision."""
        return single(left.rows.shape[1], left.longest, right.longest)

    def nearest(self, queries: Vectors, documents: Vectors, k: int) -> tuple[Vectors, Rows]:
        """Return the k highest products of each query and their rows, in no order (see `exact_search.Nearest`)."""
        with _single_precision():
            products = self._moved(queries) @ self._moved(documents).T
        best = products.topk(k, dim=1, sorted=False)
        return best.values.cpu().numpy(), best.indices.cpu().numpy()

    def _moved(self, rows: Vectors) -> "torch.Tensor":
        import torch

        plain = np.array(rows, dtype=np.float32, order="C")  # a copy, for torch takes no array that cannot be written
        return torch.from_numpy(plain).to(self._device)


@contextmanager
def _single_precision() -> Iterator[None]:
    """Multiply float32 without TF32, which rounds to 11 bits and which a library in this process may have permitted."""
    import torch

    earlier = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(earlier)
