"""The diversity rule: keep a text unless too many kept texts already resemble it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from curate.duplicates import Firsts
from curate.protocols import Vectors
from curate.search import Rows, Scores, error_bound, lengths, products

DIGITS = 5
"""Similarities are rounded to this many digits before they meet the threshold, so that reruns agree."""
HALF = 0.5 * 10.0**-DIGITS
BLOCK, CHUNK = 1024, 8192
"""Items compared at once, and with how many kept ones: a matrix of similarities has at most BLOCK x CHUNK x 4 bytes."""
CROWDED = 1 / 50
"""Share of doubtful similarities of a matrix from which on the whole matrix is computed in float64."""
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
    size, rule, index = len(vectors), _Rule(t), _Index()
    kept, nearest, similarity = np.zeros(size, bool), np.full(size, -1), np.full(size, np.nan)
    for start in range(0, size, BLOCK):
        block = np.ascontiguousarray(vectors[start : start + BLOCK])
        kept[start : start + len(block)] = True
        for item, alike, screen in rule.alike(block, start, index):
            there = kept[alike]
            if item >= seed_size and np.count_nonzero(there) > n:
                kept[item] = False
                found = rule.nearest(vectors[item], vectors, alike[there], screen[there])
                nearest[item], similarity[item] = found
        stay = np.flatnonzero(kept[start : start + len(block)])
        index.add(block[stay], start + stay)
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


@dataclass
class _Index:
    """The vectors that were kept, in chunks of which all but the last are full, and which items they are."""

    chunks: list[tuple[Vectors, Rows]] = field(default_factory=list)

    def add(self, vectors: Vectors, items: Rows) -> None:
        """Append vectors, in order."""
        if self.chunks and len(self.chunks[-1][1]) < CHUNK:
            last, known = self.chunks.pop()
            vectors, items = np.concatenate([last, vectors]), np.concatenate([known, items])
        self.chunks += [(vectors[at : at + CHUNK], items[at : at + CHUNK]) for at in range(0, len(items), CHUNK)]


class _Rule:
    """Which items resemble which: decided as if every similarity were a float64 product, rounded."""

    def __init__(self, t: float) -> None:
        self._t = round(t, DIGITS)
        self._bound = self._t + HALF
        self._longest = 0.0

    def alike(self, block: Vectors, start: int, index: _Index) -> Iterator[tuple[int, Rows, Scores]]:
        """Yield each item of a block that resembles anything before it, what it resembles, and how much, roughly."""
        self._longest = max(self._longest, float(lengths(block, "item", start).max()))
        rows, columns, screen = self._close(block, block)
        before = np.flatnonzero(columns < rows)
        found = [(rows[before], columns[before] + start, screen[before])]
        for vectors, items in index.chunks:
            rows, columns, screen = self._close(block, vectors)
            found.append((rows, items[columns], screen))
        rows, items, screen = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((items, rows))
        rows, items, screen = rows[order], items[order], screen[order]
        edges = [0, *(np.flatnonzero(np.diff(rows)) + 1).tolist(), len(rows)]
        for low, high in pairwise(edges):
            if low < high:
                yield start + int(rows[low]), items[low:high], screen[low:high]

    def _close(self, left: Vectors, right: Vectors) -> tuple[Rows, Rows, Scores]:
        """Return rows of both whose similarity is above t, and a product of each pair that is near the exact one.

        A float32 product screens. Where much lies within its error of the threshold, a float64 product does.
        """
        screen, error = left @ right.T, error_bound(left.shape[1], self._longest, self._longest)
        at = np.flatnonzero(screen > self._bound - error)
        values = screen.ravel()[at]
        doubtful = np.flatnonzero(values <= self._bound + error)
        if len(doubtful) > CROWDED * screen.size:
            screen, error = left.astype(np.float64) @ right.astype(np.float64).T, error * 2.0**-29
            at = np.flatnonzero(screen > self._bound - error)
            values = screen.ravel()[at]
            doubtful = np.flatnonzero(values <= self._bound + error)
        rows, columns = np.divmod(at, len(right))
        above = np.ones(len(at), bool)
        above[doubtful] = _exact(left, right, rows[doubtful], columns[doubtful]) > self._t
        return rows[above], columns[above], values[above].astype(np.float64)

    def nearest(self, vector: Vectors, vectors: Vectors, items: Rows, screen: Scores) -> tuple[int, float]:
        """Return the first of the most similar items, and its similarity."""
        error = error_bound(len(vector), self._longest, self._longest)
        items = items[screen >= screen.max() - 2 * (HALF + error)]
        exact = np.round(products(vector, vectors, items), DIGITS)
        best = int(exact.argmax())
        return int(items[best]), float(exact[best])


def _exact(left: Vectors, right: Vectors, rows: Rows, columns: Rows) -> Scores:
    """Return the rounded float64 similarities of pairs of rows."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        found[part] = np.einsum(
            "ij,ij->i", left[rows[part]].astype(np.float64), right[columns[part]].astype(np.float64)
        )
    return np.round(found, DIGITS)
