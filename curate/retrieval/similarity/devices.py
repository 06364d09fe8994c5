"""Choice of what multiplies vectors: torch on a GPU, else FAISS for search, and the fastest precision for pairs."""

import math
import time
from functools import cache

from curate.core.errors import ConfigError
from curate.retrieval.similarity.exact_search import Nearest, nearest_by_faiss
from curate.retrieval.similarity.int8 import Int8, sums_exactly, turn
from curate.retrieval.similarity.screening import FLOAT32, Screen
from curate.retrieval.similarity.torch_products import TorchFloat32
from curate.system.extras import installed, needed

ITEMS = 40_000
"""Number of vectors, compared with each other, from which loading torch saves time."""
WAITING_S = 0.15
"""Seconds that `_seconds` measures; threads of numpy's last product have stopped spinning by then."""


def nearest_on(device: str) -> Nearest:
    """Return the function that searches on a device: `cpu`, a GPU such as `cuda` or `cuda:1`, or `auto` (a GPU if any).

    The hits are the same with every device. MissingExtra for a GPU without torch; ConfigError if torch cannot use it.
    """
    gpu = _gpu(device)
    return gpu.nearest if gpu else nearest_by_faiss


def screen_for_pairs(device: str, items: int) -> Screen:
    """Return the screen of a device for comparing `items` vectors with each other; `device` as in `nearest_on`.

    On a CPU it is int8 for many vectors, if that is faster and torch is installed.
    """
    return _gpu(device) or (Int8() if items >= ITEMS and int8_pays() else FLOAT32)


def _gpu(device: str) -> TorchFloat32 | None:
    """Return products on a GPU; None if the device is a CPU."""
    if device == "cpu" or (device == "auto" and not installed("torch")):
        return None
    with needed(f"engine.device: {device!r}"):
        import torch

    if device == "auto" and not torch.cuda.is_available():
        return None
    try:
        return TorchFloat32(torch.zeros(1, device="cuda" if device == "auto" else device).device)
    except (RuntimeError, AssertionError) as error:  # torch raises both for a device that is not there
        words = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"engine.device: {device!r} cannot be used ({words}); give cpu, cuda or cuda:N, or auto"
        ) from error


@cache
def int8_pays() -> bool:
    """Return whether this CPU multiplies int8 exactly, and in less than two thirds of the time of float32."""
    return installed("torch") and sums_exactly(Int8()) and _seconds(Int8()) < _seconds(FLOAT32) * 2 / 3


def _seconds(screen: Screen) -> float:
    """Return the shortest time of a matrix product with a screen, in seconds.

    Threads of numpy's last product spin for a while and slow down torch's, so measuring continues until they sleep.
    """
    block, begun, shortest = screen.load(turn(1024), 1.01), time.perf_counter(), math.inf
    while time.perf_counter() < begun + WAITING_S:
        start = time.perf_counter()
        screen.product(block, block)
        shortest = min(shortest, time.perf_counter() - start)
    return shortest
