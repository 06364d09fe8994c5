"""Choice of the screen for products: half precision on a GPU, else the fastest precision of this CPU."""

import math
import sys
import time
from functools import cache

from curate.core.errors import ConfigError
from curate.retrieval.similarity.bf16 import BFloat16, sums_in_float32
from curate.retrieval.similarity.float16 import Float16
from curate.retrieval.similarity.int8 import Int8, sums_exactly, turn
from curate.retrieval.similarity.screening import FLOAT32, Screen
from curate.system.extras import installed, needed

ITEMS = 40_000
"""Minimum vectors to compare with each other for which loading torch pays."""
PRODUCTS, LOADING = 10**8, 4 * 10**8
"""Minimum products of a search for which trying bfloat16 pays, and loading torch for it."""
WAITING_S = 0.15
"""Seconds that numpy's threads may wait for the next product."""


def screen_for_search(device: str, products: int) -> Screen:
    """Return the screen of a device for a search of so many products, of queries and documents.

    `device` is `cpu`, a GPU such as `cuda` or `cuda:1`, or `auto` for a GPU if there is one. A processor multiplies
    bfloat16 if it is faster at that and torch, which alone can, is installed. The hits are the same on every screen.
    MissingExtra without torch for a GPU; ConfigError if torch cannot use the device.
    """
    enough = PRODUCTS if "torch" in sys.modules else LOADING
    return _gpu(device) or (BFloat16() if products >= enough and bf16_pays() else FLOAT32)


def screen_for_pairs(device: str, items: int) -> Screen:
    """Return the screen of a device, as for a search, on which so many vectors are compared with each other.

    For many vectors, a processor multiplies whole numbers of eight bits if it is faster at that and torch is installed.
    """
    return _gpu(device) or (Int8() if items >= ITEMS and int8_pays() else FLOAT32)


def _gpu(device: str) -> Screen | None:
    """Return the screen of a GPU; None for the processor."""
    if device == "cpu" or (device == "auto" and not installed("torch")):
        return None
    with needed(f"engine.device: {device!r}"):
        import torch

    if device == "auto" and not torch.cuda.is_available():
        return None
    try:
        return Float16(torch.zeros(1, device="cuda" if device == "auto" else device).device)
    except (RuntimeError, AssertionError) as error:  # torch raises both for a device that is not there
        words = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"engine.device: {device!r} cannot be used ({words}); give cpu, cuda or cuda:N, or auto"
        ) from error


@cache
def int8_pays() -> bool:
    """Return whether this processor multiplies int8 exactly, and in less than two thirds of the time of float32."""
    return installed("torch") and sums_exactly(Int8()) and _seconds(Int8()) < _seconds(FLOAT32) * 2 / 3


@cache
def bf16_pays() -> bool:
    """Return whether this processor sums bfloat16 in float32, and in less than two thirds of the time of float32."""
    return installed("torch") and sums_in_float32(BFloat16()) and _seconds(BFloat16()) < _seconds(FLOAT32) * 2 / 3


def _seconds(screen: Screen) -> float:
    """Return the shortest time of a product in seconds.

    Threads of numpy's last product spin for a while and slow torch's down, so measuring lasts until they sleep.
    """
    block, begun, shortest = screen.load(turn(1024), 1.01), time.perf_counter(), math.inf
    while time.perf_counter() < begun + WAITING_S:
        start = time.perf_counter()
        screen.product(block, block)
        shortest = min(shortest, time.perf_counter() - start)
    return shortest
