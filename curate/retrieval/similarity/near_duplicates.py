"""Exact near-duplicate search among retained items, with the same result on any device."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import longest, pair_products, products
from curate.retrieval.similarity.screening import FLOAT32, Rows, Scores, Screen

DIGITS = 5
"""Decimal places to which similarities are rounded before comparison with the threshold, so that reruns agree."""
HALF = 0.5 * 10.0**-DIGITS
CHUNK = 4096
"""Approximate number of retained items that a block is compared with at a time."""
RECENT = 4
"""Number of recent blocks of retained items that are merged into one part; merging after every block would be slow."""
CROWDED = 1 / 200
"""Share of similarities within the error of the threshold above which a finer product of all pairs is cheaper."""


@dataclass(frozen=True)
class _Part:
    """A part of the retained items, compared with a block at a time."""

    items: Rows
    longest: float
    """Length of the longest of their vectors."""
    loaded: Any
    """Their vectors as loaded by the screen; None if there is no room, so that they are loaded for every comparison."""


class Alike:
    """The retained items, and search for near-duplicates among them, by float64 products rounded to `DIGITS`."""

    def __init__(self, vectors: Vectors, t: float, screen: Screen) -> None:
        self._vectors, self._screen = vectors.view(np.ndarray), screen
        self._t = round(t, DIGITS)
        self._bound = self._t + HALF
        self._error = 0.0
        """How far a product that was handed out can be from the exact one."""
        self._parts: list[_Part] = []
        self._recent: list[_Part] = []
        self._looks = self._crowds = 0
        """How often the screen was tried, and how often too many products were within its error of the threshold."""

    def keep(self, items: Rows) -> None:
        """Append items, in order."""
        if len(items):
            self._recent.append(self._part(items))
        if len(self._recent) == RECENT:
            self._recent = [self._part(np.concatenate([recent.items for recent in self._recent]))]
            if len(self._recent[0].items) >= CHUNK:
                self._parts.append(self._recent.pop())

    def _part(self, items: Rows) -> _Part:
        """Return items with their vectors, loaded for the screen if they fit; DataError for NaN and infinity."""
        vectors = self._vectors[items]
        held = sum(
            len(loaded_part.items) for loaded_part in (*self._parts, *self._recent) if loaded_part.loaded is not None
        )
        room = (held + len(items)) * vectors.shape[1] * 4 <= self._screen.room
        length = longest(vectors, "item", items)
        return _Part(items, length, self._screen.load(vectors, length) if room else None)

    def before(self, items: Rows) -> Iterator[tuple[int, Rows, Scores]]:
        """Yield (item, its near-duplicates among the retained items, approximate similarities), for items with any."""
        if self._crowds * 8 > self._looks + 8:
            self._settle()
        block = self._part(items)
        rows, columns, screen = self._close(block, block)
        earlier = np.flatnonzero(columns < rows)
        results = [(rows[earlier], items[columns[earlier]], screen[earlier])]
        for kept_part in (*self._parts, *self._recent):
            rows, columns, screen = self._close(block, kept_part)
            results.append((rows, kept_part.items[columns], screen))
        yield from by_item(items, *(np.concatenate(arrays) for arrays in zip(*results, strict=True)))

    def _settle(self) -> None:
        """Switch to single precision, since the coarse screen leaves too many pairs undecided to save time."""
        self._screen, self._looks, self._crowds = FLOAT32, 0, 0
        earlier_parts, recent = self._parts, self._recent
        self._parts, self._recent = [], []  # frees their room, and room is counted anew
        for held, earlier in ((self._parts, earlier_parts), (self._recent, recent)):
            for earlier_part in earlier:
                held.append(self._part(earlier_part.items))

    def _close(self, left: _Part, right: _Part) -> tuple[Rows, Rows, Scores]:
        """Return indexes into both parts of all pairs with a similarity above t, and their approximate products.

        A coarse product screens the pairs. If too many are within its error of the threshold, it is repeated in single
        and finally in double precision.
        """
        for screen in dict.fromkeys((self._screen, FLOAT32)):
            blocks = [
                side.loaded
                if screen is self._screen and side.loaded is not None
                else screen.load(self._vectors[side.items], side.longest)
                for side in (left, right)
            ]
            error = screen.error(*blocks)
            candidates = screen.above(screen.product(*blocks), self._bound - error)
            doubtful = candidates[2] - error <= self._bound  # within error of the threshold
            crowded = bool(np.count_nonzero(doubtful) > CROWDED * len(left.items) * len(right.items))
            if screen is not FLOAT32:
                self._looks, self._crowds = self._looks + 1, self._crowds + crowded
            if not crowded:
                return self._decided(left, right, candidates, error)
        wide, error = [self._vectors[side.items].astype(np.float64) for side in (left, right)], error * 2.0**-29
        exact = wide[0] @ wide[1].T
        rows, columns = np.nonzero(exact > self._bound - error)
        return self._decided(left, right, (rows, columns, exact[rows, columns]), error)

    def _decided(
        self, left: _Part, right: _Part, candidates: tuple[Rows, Rows, Scores], error: float
    ) -> tuple[Rows, Rows, Scores]:
        """Return those of a screen's candidates that are above t; pairs within its error of t are rescored exactly."""
        rows, columns, values = candidates
        self._error = max(self._error, error)
        doubtful = np.flatnonzero(values - error <= self._bound)
        above = np.ones(len(rows), bool)
        pairs = self._vectors, left.items[rows[doubtful]], self._vectors, right.items[columns[doubtful]]
        above[doubtful] = np.round(pair_products(*pairs), DIGITS) > self._t
        return rows[above], columns[above], values[above]

    def nearest(self, item: int, items: Rows, screen: Scores) -> tuple[int, float]:
        """Return the first of the most similar of `items` to `item`, and its similarity, rounded."""
        items = items[screen >= screen.max() - 2 * (HALF + self._error)]
        exact = np.round(products(self._vectors[item], self._vectors, items), DIGITS)
        best = int(exact.argmax())
        return int(items[best]), float(exact[best])


def by_item(items: Rows, rows: Rows, others: Rows, values: Scores) -> Iterator[tuple[int, Rows, Scores]]:
    """Yield every item with its others, in order, and their values; `rows` are indexes into `items`."""
    order = np.lexsort((others, rows))
    rows, others, values = rows[order], others[order], values[order]
    for low, high in pairwise([0, *(np.flatnonzero(np.diff(rows)) + 1).tolist(), len(rows)]):
        if low < high:
            yield int(items[rows[low]]), others[low:high], values[low:high]
