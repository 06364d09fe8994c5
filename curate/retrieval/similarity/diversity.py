"""Diversity rule (near-duplicate filtering): a text is retained unless too many retained texts are similar to it."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.errors import ConfigError
from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import lengths
from curate.retrieval.similarity.hnsw import Graph
from curate.retrieval.similarity.near_duplicates import CHUNK, DIGITS, Alike
from curate.retrieval.similarity.screening import FLOAT32, Rows, Screen

BLOCK = 1024
"""Number of items decided per block; a matrix of similarities has at most BLOCK x CHUNK x 4 bytes."""
CALIBRATION = 20_000
"""Number of first items on which the threshold `t: auto` is calibrated."""
DECISION = np.dtype([("kept", "?"), ("nearest", "<i8"), ("similarity", "<f8")])
"""Type of the decision on an item; fields as in `Diversity`."""
TRIES = 11
"""Bisection steps of `t: auto`; there are fewer than 2 ** 11 thresholds of 3 digits between -1 and 1."""
Kept = npt.NDArray[np.bool_]
Decisions = npt.NDArray[np.void]
Contradict = Callable[[int, Rows], npt.NDArray[np.bool_]]
"""Function of (row of an item, rows of others) that returns which of the others contradict the item."""


@dataclass(frozen=True)
class Diversity:
    """Decisions of the rule, one entry per item, in order."""

    kept: Kept
    nearest: npt.NDArray[np.int64]
    """For a dropped item, the row of the most similar item retained before it, the first of several; else -1."""
    similarity: npt.NDArray[np.float64]
    """Similarity to that item, rounded; NaN for a retained item."""
    t: float | None
    """The threshold used; None if the rule was not applied."""
    disagreement: float | None = None
    """Share of a sample of items that the exact rule decides differently; None if exact or not measured."""
    spared: int = 0
    """Protected items that the rule for copies would have dropped."""


class Journal(Protocol):
    """Journal that stores decisions block by block, so that an interrupted run can resume."""

    def known(self, block: int) -> Decisions:
        """Return the stored decisions on the first items, complete blocks only."""
        ...

    def add(self, decisions: Decisions) -> None:
        """Append the decisions on the next block."""
        ...


def everything(size: int) -> Diversity:
    """Return decisions that retain all `size` items, without applying the rule."""
    return Diversity(np.ones(size, bool), np.full(size, -1), np.full(size, np.nan), None)


def diversify(
    vectors: Vectors,
    t: float,
    n: int = 1,
    seeds: int | Rows = 0,
    screen: Screen = FLOAT32,
    journal: Journal | None = None,
    approximate: int = 0,
    looked: Callable[[int], None] = lambda _items: None,
    contradict: Contradict | None = None,
) -> Diversity:
    """Return the decisions of the diversity rule: an item is dropped if more than n items before it are similar to it.

    Items are decided in order; only retained items count, with a similarity above t. With n < k this is the paper's
    rule "discard x if more than n of its top-k neighbours in the growing index have a similarity above t". `seeds` (a
    number of first items, or row numbers) come before all others and are always retained.

    `vectors` has one L2-normalised row per item, and may be mapped from disk. Similarity is the float64 inner product;
    it and t are rounded to 5 digits. A less precise product screens pairs, and those within its error of the threshold
    are rescored, so decisions do not depend on block size or machine. Blocks in the journal are not decided again. If
    `approximate` is not 0, so many neighbours are searched in a graph that may miss some (see `Graph`). Neighbours that
    `contradict` an item do not count. `looked` is called with the number of decided items, first with those in the
    journal. DataError if a vector has NaN or infinity.
    """
    order, seed_size = _order(len(vectors), seeds)
    rule = Graph(vectors, t, approximate) if approximate else Alike(vectors, t, screen)
    decided = np.empty(len(vectors), DECISION)
    decided[:] = (True, -1, np.nan)
    stored = journal.known(BLOCK)[: len(vectors)] if journal else decided[:0]
    looked(len(stored))
    for start in range(0, len(vectors), BLOCK):
        items = order[start : start + BLOCK]
        if start < len(stored):
            decided[items] = stored[start : start + BLOCK]
        else:
            tested = frozenset(items[max(seed_size - start, 0) :].tolist())
            for index, alike, products in rule.before(items):
                kept_neighbours = decided["kept"][alike]
                if contradict and index in tested and np.count_nonzero(kept_neighbours) > n:
                    kept_neighbours[kept_neighbours] = ~contradict(index, alike[kept_neighbours])
                if index in tested and np.count_nonzero(kept_neighbours) > n:
                    decided[index] = (False, *rule.nearest(index, alike[kept_neighbours], products[kept_neighbours]))
            if journal:
                journal.add(decided[items])
        rule.keep(items[decided["kept"][items]])
        looked(max(start + len(items), len(stored)))
    return Diversity(decided["kept"], decided["nearest"], decided["similarity"], t)


def disagreement(
    vectors: Vectors,
    decided: Diversity,
    n: int,
    seeds: int | Rows,
    sample: int,
    contradict: Contradict | None = None,
) -> float | None:
    """Return the share of a random sample of tested items that the exact rule decides differently.

    It measures decisions by an approximate index: every item of the sample is compared with all items retained before
    it, in single precision. None if all items are seeds.
    """
    if decided.t is None:
        return None
    order, seed_size = _order(len(vectors), seeds)
    position = np.argsort(order)
    drawn = np.random.default_rng(0).permutation(order[seed_size:])[:sample]
    kept_items, drawn_vectors, alike = np.flatnonzero(decided.kept), vectors[drawn], np.zeros(len(drawn), np.int64)
    for start in range(0, len(kept_items), CHUNK):
        chunk = kept_items[start : start + CHUNK]
        close = np.round(drawn_vectors @ vectors[chunk].T, DIGITS) > round(decided.t, DIGITS)
        close &= position[chunk] < position[drawn][:, None]
        if contradict:
            for row in np.flatnonzero(close.any(axis=1)):
                close[row, close[row]] = ~contradict(int(drawn[row]), chunk[close[row]])
        alike += np.count_nonzero(close, axis=1)
    return float(np.mean((alike <= n) != decided.kept[drawn])) if len(drawn) else None


def _order(size: int, seeds: int | Rows) -> tuple[Rows, int]:
    """Return the rows of all items in the order of decision, seeds first, and the number of seeds."""
    first = np.arange(min(seeds, size)) if isinstance(seeds, int) else seeds
    return np.concatenate([first, np.setdiff1d(np.arange(size), first)]), len(first)


def threshold(
    vectors: Vectors,
    n: int,
    target_drop: float,
    screen: Screen = FLOAT32,
    tried: Callable[[int], None] = lambda _tries: None,
) -> float:
    """Return a threshold t, to 3 digits, at which the rule drops at most a share `target_drop` of the first items.

    It is calibrated on `CALIBRATION` items by bisection: t - 0.001 would drop more. Of a longer list a larger share is
    dropped, since it has more near neighbours. `tried` is called with the number of thresholds tried, at last TRIES.
    """
    sample = vectors[:CALIBRATION]
    low, high, tries = -1000, 1000, 0  # nothing is more similar than 1, so `high` drops nothing
    while low < high:
        tried(tries)
        middle = (low + high) // 2
        is_kept = diversify(sample, middle / 1000, n, screen=screen).kept
        low, high = (middle + 1, high) if len(is_kept) - is_kept.sum() > target_drop * len(is_kept) else (low, middle)
        tries += 1
    tried(TRIES)
    return low / 1000


def twins(items: pl.DataFrame, kept: Kept) -> dict[str, str]:
    """Return dropped id -> retained id for every dropped item that has a retained exact duplicate.

    `items` has one row per item, in order: id and `class`, the class of exact duplicates before masking. The retained
    item may come later, since seeds are always retained.
    """
    stays = pl.Series(kept, dtype=pl.Boolean)
    stands = items.filter(stays).unique("class", keep="first").select("class", kept="id")
    moved = items.filter(~stays).join(stands, on="class", maintain_order="left")
    return dict(moved.select("id", "kept").iter_rows())


# Threshold sweep: number of texts kept by the diversity rule at several thresholds, in one pass over a sample.

STEP = 0.01
MOST = 100
"""Maximum number of thresholds of a sweep."""


def sweep(vectors: Vectors, ts: Sequence[float], n: int = 1) -> list[int]:
    """Return the number of items retained by the diversity rule at each threshold (see `diversify`), without seeds.

    Every pair is compared once, in float64. Pass a sample, since time and memory grow with the number of items; of the
    full list a larger share would be dropped, since more items have a near neighbour. DataError as for `diversify`.
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
    """Decide a block of items in order, in place in `is_kept`; `above` marks pairs with a similarity above t."""
    kept_before = np.count_nonzero(above[:, : block.start] & is_kept[: block.start], axis=1)
    for row, index in enumerate(range(block.start, block.stop)):
        kept_in_block = np.count_nonzero(above[row, block.start : index] & is_kept[block.start : index])
        is_kept[index] = kept_before[row] + kept_in_block <= n


def thresholds(text: str) -> list[float]:
    """Return the thresholds in a text such as `t=0.7:0.9` (steps of 0.01) or `t=0.7:0.9:0.05`.

    ConfigError for any other text, for numbers outside of -1 to 1, and for more than `MOST` thresholds.
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
