"""Which items resemble which of those that came before, to five digits, whatever computes the products."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from curate.protocols import Vectors
from curate.screen import Rows, Scores, Screen
from curate.search import lengths, pair_products, products

DIGITS = 5
"""Similarities are rounded to this many digits before they meet the threshold, so that reruns agree."""
HALF = 0.5 * 10.0**-DIGITS
CHUNK = 8192
"""With how many kept items a block is compared at once."""
CROWDED = 1 / 50
"""Share of doubtful similarities of a matrix from which on the whole matrix is computed in float64."""


@dataclass(frozen=True)
class _Part:
    """Some items that were kept."""

    items: Rows
    loaded: Any
    """Their vectors, as the screen takes them; None where there is no room, then they are read again and again."""


class Alike:
    """The items that were kept, and what resembles them: as if every similarity were a float64 product, rounded."""

    def __init__(self, vectors: Vectors, t: float, screen: Screen) -> None:
        self._vectors, self._screen = vectors.view(np.ndarray), screen
        self._t = round(t, DIGITS)
        self._bound = self._t + HALF
        self._longest = 0.0
        self._parts: list[_Part] = []

    def keep(self, items: Rows) -> None:
        """Append items, in order."""
        self._measure(items)  # those that a journal knows were never compared
        if self._parts and len(self._parts[-1].items) < CHUNK:
            items = np.concatenate([self._parts.pop().items, items])
        for part in (items[at : at + CHUNK] for at in range(0, len(items), CHUNK)):
            room = (len(self._parts) + 1) * CHUNK * self._vectors.shape[1] * 4 <= self._screen.room
            vectors = self._vectors[part]
            self._parts.append(_Part(part, self._screen.load(vectors) if room else None))

    def before(self, items: Rows) -> Iterator[tuple[int, Rows, Scores]]:
        """Yield each of some items that resembles anything before it, what it resembles, and how much, roughly."""
        self._measure(items)
        own = _Part(items, self._screen.load(self._vectors[items]))
        rows, columns, screen = self._close(own, own)
        before = np.flatnonzero(columns < rows)
        found = [(rows[before], items[columns[before]], screen[before])]
        for part in self._parts:
            rows, columns, screen = self._close(own, part)
            found.append((rows, part.items[columns], screen))
        rows, others, screen = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((others, rows))
        rows, others, screen = rows[order], others[order], screen[order]
        edges = [0, *(np.flatnonzero(np.diff(rows)) + 1).tolist(), len(rows)]
        for low, high in pairwise(edges):
            if low < high:
                yield int(items[rows[low]]), others[low:high], screen[low:high]

    def _measure(self, items: Rows) -> None:
        """Let the error bound hold for these items too; DataError if a vector holds NaN or infinity."""
        if len(items):
            longest = float(lengths(self._vectors[items], "item", int(items[0])).max())
            self._longest = max(self._longest, longest)

    def _close(self, left: _Part, right: _Part) -> tuple[Rows, Rows, Scores]:
        """Return places in both of what is more similar than t, and a product of each pair that is near the exact one.

        A rough product screens. Where much lies within its error of the threshold, a float64 product does.
        """
        loaded = self._screen.load(self._vectors[right.items]) if right.loaded is None else right.loaded
        error = self._screen.error(self._vectors.shape[1], self._longest, self._longest)
        rows, columns, values = self._screen.above(self._screen.product(left.loaded, loaded), self._bound - error)
        doubtful = np.flatnonzero(values <= self._bound + error)
        if len(doubtful) > CROWDED * len(left.items) * len(right.items):
            exact, error = _product(self._vectors[left.items], self._vectors[right.items]), error * 2.0**-29
            rows, columns = np.nonzero(exact > self._bound - error)
            values = exact[rows, columns]
            doubtful = np.flatnonzero(values <= self._bound + error)
        above = np.ones(len(rows), bool)
        above[doubtful] = self._exact(left.items[rows[doubtful]], right.items[columns[doubtful]]) > self._t
        return rows[above], columns[above], values[above]

    def _exact(self, left: Rows, right: Rows) -> Scores:
        """Return the rounded float64 similarities of pairs of items."""
        return np.round(pair_products(self._vectors, left, self._vectors, right), DIGITS)

    def nearest(self, item: int, items: Rows, screen: Scores) -> tuple[int, float]:
        """Return the first of the most similar items, and its similarity."""
        error = self._screen.error(self._vectors.shape[1], self._longest, self._longest)
        items = items[screen >= screen.max() - 2 * (HALF + error)]
        exact = np.round(products(self._vectors[item], self._vectors, items), DIGITS)
        best = int(exact.argmax())
        return int(items[best]), float(exact[best])


def _product(left: Vectors, right: Vectors) -> Scores:
    found: Scores = left.astype(np.float64) @ right.astype(np.float64).T
    return found
