"""Choice of the screen (fast approximate products): half precision on a GPU, else the fastest precision of this CPU."""

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
"""Number of vectors, compared with each other, from which loading torch saves time."""
PRODUCTS, LOADING = 10**8, 4 * 10**8
"""Numbers of products of a search from which trying bfloat16 saves time, if torch is loaded, and if it is not."""
WAITING_S = 0.15
"""Seconds that `_seconds` measures; threads of numpy's last product have stopped spinning by then."""


def screen_for_search(device: str, products: int) -> Screen:
    """Return the screen of a device for a search with `products` products of a query and a document.

    `device` is `cpu`, a GPU such as `cuda` or `cuda:1`, or `auto` for a GPU if there is one. On a CPU it is bfloat16 if
    that is faster and torch is installed. The hits are the same with every screen. MissingExtra for a GPU without
    torch; ConfigError if torch cannot use the device.
    """
    enough = PRODUCTS if "torch" in sys.modules else LOADING
    return _gpu(device) or (BFloat16() if products >= enough and bf16_pays() else FLOAT32)


def screen_for_pairs(device: str, items: int) -> Screen:
    """Return the screen of a device for comparing `items` vectors with each other; `device` as in `screen_for_search`.

    On a CPU it is int8 for many vectors, if that is faster and torch is installed.
    """
    return _gpu(device) or (Int8() if items >= ITEMS and int8_pays() else FLOAT32)


def _gpu(device: str) -> Screen | None:
    """Return the screen of a GPU; None if the device is a CPU."""
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
    """Return whether this CPU multiplies int8 exactly, and in less than two thirds of the time of float32."""
    return installed("torch") and sums_exactly(Int8()) and _seconds(Int8()) < _seconds(FLOAT32) * 2 / 3


@cache
def bf16_pays() -> bool:
    """Return whether this CPU sums bfloat16 products in float32, and in less than two thirds of the time of float32."""
    return installed("torch") and sums_in_float32(BFloat16()) and _seconds(BFloat16()) < _seconds(FLOAT32) * 2 / 3


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
