"""The diversity rule: keep a text unless too many kept texts already resemble it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curate.duplicates import Firsts
from curate.protocols import Vectors
from curate.search import Rows, product_error, products

DIGITS = 5
"""Similarities are rounded to this many digits before they meet the threshold, so that reruns agree."""
HALF = 0.5 * 10.0**-DIGITS
BLOCK = 256
"""Items compared at once with all before them: bounds the matrix of similarities to BLOCK x items x 4 bytes."""
CALIBRATION = 20_000
"""Items on which `t: auto` is found."""
Kept = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Diversity:
    """What the rule decided: one entry an item, in order."""

    kept: Kept
    nearest: npt.NDArray[np.int64]
    """For a dropped item the most similar one that was kept before it, the first of several; -1 for a kept item."""
    similarity: npt.NDArray[np.float64]
    """Similarity to that item, rounded; NaN for a kept item."""
    t: float | None
    """The threshold that was used; None if the rule was not applied."""


def everything(size: int) -> Diversity:
    """Return the decision to keep all items."""
    return Diversity(np.ones(size, bool), np.full(size, -1), np.full(size, np.nan), None)


def diversify(vectors: Vectors, t: float, n: int = 1, seed_size: int = 0) -> Diversity:
    """Keep each item, in order, unless more than n of the items kept before it have a similarity above t.

    With n < k this is the paper's rule "discard x if more than n of its top-k neighbours in the growing index
    have a similarity above t". The first `seed_size` items are kept untested. `vectors` has one L2-normalised
    row an item; similarity is the float64 inner product, and it and t are rounded to 5 digits. A float32 product
    screens: whatever lies within its error of the threshold is rescored, so no block or machine can change a decision.
    """
    size, rule = len(vectors), _Rule(vectors, t)
    kept, nearest, similarity = np.zeros(size, bool), np.full(size, -1), np.full(size, np.nan)
    for start in range(0, size, BLOCK):
        block = vectors[start : start + BLOCK]
        screens = block @ vectors[: start + len(block)].T
        for item, row in enumerate(screens, start):
            screen = np.where(kept[:item], row[:item], -np.inf)
            kept[item] = item < seed_size or rule.alike(item, screen) <= n
            if not kept[item]:
                nearest[item], similarity[item] = rule.nearest(item, screen)
    return Diversity(kept, nearest, similarity, t)


def threshold(vectors: Vectors, n: int, target_drop: float) -> float:
    """Return a t, to 3 digits, at which the rule drops at most `target_drop` of the first 20,000 items.

    It is found by bisection: 0.001 less would drop more than that. Of a longer list a larger share has a near
    neighbour, so more is dropped of it.
    """
    sample = vectors[:CALIBRATION]
    low, high = -1000, 1000  # nothing is more similar than 1, so `high` drops nothing
    while low < high:
        middle = (low + high) // 2
        kept = diversify(sample, middle / 1000, n).kept
        low, high = (middle + 1, high) if len(kept) - kept.sum() > target_drop * len(kept) else (low, middle)
    return low / 1000


def twins(items: Iterable[tuple[str, str]], kept: Kept) -> dict[str, str]:
    """Return dropped id -> kept id for every dropped item whose very text is kept; items are (id, text), in order."""
    firsts, found, gone = Firsts(), {}, set()
    for (name, text), stays in zip(items, kept.tolist(), strict=True):
        first = firsts.of(name, text)
        if not stays:
            gone.add(name)
            if first not in gone:
                found[name] = first
    return found


class _Rule:
    """Similarities to earlier items, from float32 screens that hold -inf for items that are not kept."""

    def __init__(self, vectors: Vectors, t: float) -> None:
        self._vectors, self._t = vectors, round(t, DIGITS)
        self._error = product_error(vectors, vectors)

    def alike(self, item: int, screen: Vectors) -> int:
        """Return how many have a similarity above t."""
        bound = self._t + HALF
        doubtful = np.flatnonzero(np.abs(screen - np.float32(bound)) <= self._error)
        sure = np.count_nonzero(screen > bound + self._error)
        return int(sure + np.count_nonzero(self._exact(item, doubtful) > self._t))

    def nearest(self, item: int, screen: Vectors) -> tuple[int, float]:
        """Return the first of the most similar ones, and its similarity."""
        rows = np.flatnonzero(screen >= float(screen.max()) - 2 * (HALF + self._error))
        exact = self._exact(item, rows)
        best = int(exact.argmax())
        return int(rows[best]), float(exact[best])

    def _exact(self, item: int, rows: Rows) -> npt.NDArray[np.float64]:
        return np.round(products(self._vectors[item], self._vectors, rows), DIGITS)
