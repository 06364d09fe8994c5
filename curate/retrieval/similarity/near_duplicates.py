"""Near-duplicate search: which items resemble which earlier ones, to five digits on any device."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import longest, pair_products, products
from curate.retrieval.similarity.screening import FLOAT32, Error, Rows, Scores, Screen

DIGITS = 5
"""Similarities are rounded to this many digits before they meet the threshold, so that reruns agree."""
HALF = 0.5 * 10.0**-DIGITS
CHUNK = 4096
"""With about how many kept items a block is compared at once."""
RECENT = 4
"""Blocks of items kept last that become one part; to load a part again with each of them would take long."""
CROWDED = 1 / 200
"""Share of doubtful similarities of a matrix from which on a finer product of all is cheaper than one of each."""


@dataclass(frozen=True)
class _Part:
    """Some items that were kept."""

    items: Rows
    longest: float
    """The length of the longest of their vectors."""
    loaded: Any
    """Their vectors, as the screen takes them; None where there is no room, then they are read again and again."""


class Alike:
    """The items that were kept, and what resembles them: as if every similarity were a float64 product, rounded."""

    def __init__(self, vectors: Vectors, t: float, screen: Screen) -> None:
        self._vectors, self._screen = vectors.view(np.ndarray), screen
        self._t = round(t, DIGITS)
        self._bound = self._t + HALF
        self._error = 0.0
        """How far a product that was handed out can be from the exact one."""
        self._parts: list[_Part] = []
        self._recent: list[_Part] = []
        self._looks = self._crowds = 0
        """How often the screen was tried, and did not do."""

    def keep(self, items: Rows) -> None:
        """Append items, in order."""
        if len(items):
            self._recent.append(self._part(items))
        if len(self._recent) == RECENT:
            self._recent = [self._part(np.concatenate([part.items for part in self._recent]))]
            if len(self._recent[0].items) >= CHUNK:
                self._parts.append(self._recent.pop())

    def _part(self, items: Rows) -> _Part:
        """Return items with their vectors, which are loaded if there is room; DataError for NaN and infinity."""
        vectors = self._vectors[items]
        held = sum(len(part.items) for part in (*self._parts, *self._recent) if part.loaded is not None)
        room = (held + len(items)) * vectors.shape[1] * 4 <= self._screen.room
        length = longest(vectors, "item", items)
        return _Part(items, length, self._screen.load(vectors, length) if room else None)

    def before(self, items: Rows) -> Iterator[tuple[int, Rows, Scores]]:
        """Yield each of some items that resembles anything before it, what it resembles, and how much, roughly."""
        if self._crowds * 8 > self._looks + 8:
            self._settle()
        own = self._part(items)
        rows, columns, screen = self._close(own, own)
        before = np.flatnonzero(columns < rows)
        found = [(rows[before], items[columns[before]], screen[before])]
        for part in (*self._parts, *self._recent):
            rows, columns, screen = self._close(own, part)
            found.append((rows, part.items[columns], screen))
        yield from by_item(items, *(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _settle(self) -> None:
        """Go on in single precision: the rough screen fails too often to pay."""
        self._screen, self._looks, self._crowds = FLOAT32, 0, 0
        parts, recent = self._parts, self._recent
        self._parts, self._recent = [], []  # their room is free again, and what follows counts anew
        for held, before in ((self._parts, parts), (self._recent, recent)):
            for part in before:
                held.append(self._part(part.items))

    def _close(self, left: _Part, right: _Part) -> tuple[Rows, Rows, Scores]:
        """Return places in both of what is more similar than t, and a product of each pair that is near the exact one.

        A rough product screens. Where much lies within its error of the threshold, one in single precision does, and
        where that is not enough, in double.
        """
        for screen in dict.fromkeys((self._screen, FLOAT32)):
            blocks = [self._block(part, screen) for part in (left, right)]
            error = screen.error(*blocks)
            found = screen.above(screen.product(*blocks), float(error.least(self._bound)))
            if not self._crowded(screen, left, right, found[2] - error.of(found[2]) <= self._bound):
                return self._decided(left, right, found, error)
        wide, error = [self._vectors[part.items].astype(np.float64) for part in (left, right)], error.finer(2.0**-29)
        exact = wide[0] @ wide[1].T
        rows, columns = np.nonzero(exact > error.least(self._bound))
        return self._decided(left, right, (rows, columns, exact[rows, columns]), error)

    def _crowded(self, screen: Screen, left: _Part, right: _Part, doubtful: npt.NDArray[np.bool_]) -> bool:
        """Return whether too much of a matrix is doubtful, and count how often that was so."""
        crowded = bool(np.count_nonzero(doubtful) > CROWDED * len(left.items) * len(right.items))
        if screen is not FLOAT32:
            self._looks, self._crowds = self._looks + 1, self._crowds + crowded
        return crowded

    def _block(self, part: _Part, screen: Screen) -> Any:  # noqa: ANN401 - what a screen loads is its own
        if screen is self._screen and part.loaded is not None:
            return part.loaded
        return screen.load(self._vectors[part.items], part.longest)

    def _decided(
        self, left: _Part, right: _Part, found: tuple[Rows, Rows, Scores], error: Error
    ) -> tuple[Rows, Rows, Scores]:
        """Return what of a screen's pairs is above t for certain; the doubtful ones are computed again."""
        rows, columns, values = found
        slack = error.of(values)
        self._error = max(self._error, float(slack.max(initial=0.0)))
        doubtful = np.flatnonzero(values - slack <= self._bound)
        above = np.ones(len(rows), bool)
        pairs = self._vectors, left.items[rows[doubtful]], self._vectors, right.items[columns[doubtful]]
        above[doubtful] = np.round(pair_products(*pairs), DIGITS) > self._t
        return rows[above], columns[above], values[above]

    def nearest(self, item: int, items: Rows, screen: Scores) -> tuple[int, float]:
        """Return the first of the most similar items, and its similarity."""
        items = items[screen >= screen.max() - 2 * (HALF + self._error)]
        exact = np.round(products(self._vectors[item], self._vectors, items), DIGITS)
        best = int(exact.argmax())
        return int(items[best]), float(exact[best])


def by_item(items: Rows, rows: Rows, others: Rows, values: Scores) -> Iterator[tuple[int, Rows, Scores]]:
    """Yield each of the items in `rows`, places in `items`, with the others beside it, in order, and their values."""
    order = np.lexsort((others, rows))
    rows, others, values = rows[order], others[order], values[order]
    for low, high in pairwise([0, *(np.flatnonzero(np.diff(rows)) + 1).tolist(), len(rows)]):
        if low < high:
            yield int(items[rows[low]]), others[low:high], values[low:high]
