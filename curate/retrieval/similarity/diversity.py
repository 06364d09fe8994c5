"""The diversity rule: keep a text unless too many kept texts already resemble it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.protocols import Vectors
from curate.retrieval.similarity.hnsw import Graph
from curate.retrieval.similarity.near_duplicates import CHUNK, DIGITS, Alike
from curate.retrieval.similarity.screening import FLOAT32, Rows, Screen

BLOCK = 1024
"""Items compared per block with CHUNK kept ones: a matrix of similarities has BLOCK x CHUNK x 4 bytes."""
CALIBRATION = 20_000
"""Items that `t: auto` is calibrated on."""
DECISION = np.dtype([("kept", "?"), ("nearest", "<i8"), ("similarity", "<f8")])
"""Decision on an item; see Diversity."""
TRIES = 11
"""Maximum thresholds that `t: auto` tries: there are fewer than 2 ** 11 between -1 and 1."""
Kept = npt.NDArray[np.bool_]
Decisions = npt.NDArray[np.void]
Contradict = Callable[[int, Rows], npt.NDArray[np.bool_]]
"""Item, others -> which of the others contradict it."""


@dataclass(frozen=True)
class Diversity:
    """Decisions of the rule, one entry per item, in order."""

    kept: Kept
    nearest: npt.NDArray[np.int64]
    """For a dropped item the most similar item kept before it, the first of several; -1 for a kept item."""
    similarity: npt.NDArray[np.float64]
    """Similarity to that item, rounded; NaN for a kept item."""
    t: float | None
    """The threshold used; None if the rule was not applied."""
    disagreement: float | None = None
    """Share of a sample that the exact rule decides differently from an approximate index; None if not measured."""


class Journal(Protocol):
    """Journal of decisions, block by block, so that an interrupted run resumes."""

    def known(self, block: int) -> Decisions:
        """Return the stored decisions on the first items, complete blocks only."""
        ...

    def add(self, decisions: Decisions) -> None:
        """Append the decisions on the next block."""
        ...


def everything(size: int) -> Diversity:
    """Return the decision to keep all items."""
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
    """Keep each item, in order, unless more than n of the items kept before it have a similarity above t.

    With n < k this is the paper's rule "discard x if more than n of its top-k neighbours in the growing index
    have a similarity above t". `seeds`, the first so many items or those named, come before all others and are kept
    untested. `vectors` has one L2-normalised row per item, and may be mapped from disk; similarity is the float64 inner
    product, and it and t are rounded to 5 digits. A rough product screens: what lies within its error of the
    threshold is rescored, so no block or machine can change a decision. Blocks that the journal knows are not decided
    again. `approximate`, if it is not 0, is how many neighbours are looked up in a graph that may miss some (see
    `Graph`). Neighbours that `contradict` an item are not counted. `looked` is told how many items are decided, first
    of those that the journal knows. DataError if a vector holds NaN or infinity.
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

    For decisions by an approximate index: every item is compared with all kept before it, in single precision. None if
    no item was tested.
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
    """Return all items in the order of decision, and the number of seeds at its start."""
    first = np.arange(min(seeds, size)) if isinstance(seeds, int) else seeds
    return np.concatenate([first, np.setdiff1d(np.arange(size), first)]), len(first)


def threshold(
    vectors: Vectors,
    n: int,
    target_drop: float,
    screen: Screen = FLOAT32,
    tried: Callable[[int], None] = lambda _tries: None,
) -> float:
    """Return a t, to 3 digits, at which the rule drops at most `target_drop` of the first 20,000 items.

    By bisection: 0.001 less would drop more than that. A longer list has more near neighbours, so a larger share of it
    is dropped. `tried` gets the number of thresholds tried, in the end TRIES.
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
    """Return dropped id -> kept id for every dropped item whose exact duplicate is kept.

    `items` has a row per item, in order: id and `class`, the equality class of its raw text. The kept one may come
    later, since seeds are kept wherever they are.
    """
    stays = pl.Series(kept, dtype=pl.Boolean)
    stands = items.filter(stays).unique("class", keep="first").select("class", kept="id")
    moved = items.filter(~stays).join(stands, on="class", maintain_order="left")
    return dict(moved.select("id", "kept").iter_rows())
