"""Threshold sweep: number of texts kept by the diversity rule at several thresholds, in one pass over a sample."""

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from curate.core.errors import ConfigError
from curate.core.protocols import Vectors
from curate.retrieval.similarity.diversity import BLOCK
from curate.retrieval.similarity.exact_search import lengths
from curate.retrieval.similarity.near_duplicates import DIGITS

STEP = 0.01
MOST = 100
"""Maximum thresholds of a sweep."""


def sweep(vectors: Vectors, ts: Sequence[float], n: int = 1) -> list[int]:
    """Return the number of items kept by the diversity rule at each threshold (see `diversify`), without seeds.

    Every pair is compared once, in float64. Time and the memory of a block grow with the number of items, so `vectors`
    is a sample; of a longer list a larger share has a near neighbour. DataError as for `diversify`.
    """
    lengths(vectors, "item")  # no similarity with NaN is above anything
    wide = vectors.astype(np.float64)
    levels = np.round(ts, DIGITS)
    kept_by_level = np.zeros((len(levels), len(wide)), dtype=bool)
    for start in range(0, len(wide), BLOCK):
        block = slice(start, min(start + BLOCK, len(wide)))
        alike = np.round(wide[block] @ wide[: block.stop].T, DIGITS)
        for level, decided in zip(levels, kept_by_level, strict=True):
            _decide(alike > level, decided, block, n)
    return [int(decided.sum()) for decided in kept_by_level]


def _decide(above: npt.NDArray[np.bool_], is_kept: npt.NDArray[np.bool_], block: slice, n: int) -> None:
    """Apply the rule to a block's items in order, in place; `above` marks similar earlier items."""
    kept_before = np.count_nonzero(above[:, : block.start] & is_kept[: block.start], axis=1)
    for row, index in enumerate(range(block.start, block.stop)):
        kept_in_block = np.count_nonzero(above[row, block.start : index] & is_kept[block.start : index])
        is_kept[index] = kept_before[row] + kept_in_block <= n


def thresholds(text: str) -> list[float]:
    """Return the thresholds that a text like `t=0.7:0.9` (in steps of 0.01) or `t=0.7:0.9:0.05` names.

    ConfigError for any other text, for numbers outside of -1 to 1, and for more than 100 thresholds.
    """
    number = r"(-?\d*\.?\d+)"
    match = re.fullmatch(rf"t={number}:{number}(?::{number})?", text)
    low, high, step = (float(group or STEP) for group in match.groups()) if match else (0.0, 0.0, 0.0)
    if not (-1 <= low <= high <= 1 and step >= 10.0**-DIGITS and high - low < MOST * step):
        raise ConfigError(
            f"--sweep: found {text!r}, expected t=LOW:HIGH or t=LOW:HIGH:STEP between -1 and 1 and at most {MOST} "
            "thresholds, such as t=0.7:0.9"
        )
    steps = math.floor((high - low) / step + 1e-6)  # 0.3 / 0.1 is a little less than 3
    return [round(low + number * step, DIGITS) for number in range(steps + 1)]
