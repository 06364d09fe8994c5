"""Recall of the next text of a chain, and of any text of the same group, from vectors, in blocks of bounded memory.

Texts stand group by group, those of a group in their order: a pair is a text and the next one of its group. A rank is 1
+ the number of candidates that are strictly more similar; similarities closer than `NEAR` are equal, because the last
bits of a matrix product depend on where in it a row stands. How many candidates tie is kept beside the rank.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from curate.stats.tally import Floats, Ints

Matrix = npt.NDArray[np.float32]
Told = Callable[[int], None]
NEAR = 1e-6
"""Similarities of unit vectors in single precision that are this close are equal."""
CELLS = 1 << 24
"""Similarities that are held at once: 64 MB."""
PROTOCOLS = ("card", "card_own_out", "next", "group")


@dataclass(frozen=True)
class Chains:
    """Which texts belong together, and which follows which."""

    group: Ints
    """Number of each text's group, from 0, ascending; shape (texts,)."""
    ordered: npt.NDArray[np.bool_]
    """Whether a text has a place in its group: others stand behind those that have, and follow nothing."""

    @cached_property
    def query(self) -> Ints:
        """Return the texts that have a next one; that of text i is i + 1."""
        same = self.group[:-1] == self.group[1:]
        return np.flatnonzero(same & self.ordered[:-1] & self.ordered[1:]).astype(np.int64)

    @cached_property
    def member(self) -> Ints:
        """Return the texts whose group has another one."""
        return np.flatnonzero(np.bincount(self.group)[self.group] > 1).astype(np.int64)

    @cached_property
    def chains(self) -> int:
        """Return the number of groups that have a pair."""
        return len(np.unique(self.group[self.query]))

    @cached_property
    def own(self) -> Ints:
        """Return for every pair the candidate of `card` that is its query's own text; -1 where it is none."""
        place = np.full(len(self.group), -1, dtype=np.int64)
        place[self.query + 1] = np.arange(len(self.query))
        return place[self.query]

    def ceiling(self, depth: int) -> float:
        """Return the highest recall that `card` allows: a query's own text, if it is a candidate, is always first."""
        return float(np.mean((self.own < 0) | (depth > 1)))


@dataclass(frozen=True)
class NeighbourRanks:
    """Of each query, how many candidates stand before the relevant one, and how many tie with it."""

    query: Ints
    """Texts that were asked for."""
    above: Ints
    tied: Ints

    def hits(self, depth: int) -> Floats:
        """Return 1 for each query whose rank is within the depth, else 0."""
        return (self.above < depth).astype(np.float64)

    def by_chance(self, depth: int) -> Floats:
        """Return the chance of each query to be within the depth, if chance orders what ties."""
        return np.clip((depth - self.above) / (self.tied + 1), 0.0, 1.0)


def ranks(vectors: Matrix, chains: Chains, told: Told = lambda _done: None) -> dict[str, NeighbourRanks]:
    """Return the ranks of every protocol; `told` hears how many queries are done, of `queries(chains)`.

    card: candidates are the next texts of all pairs, the query's own text among them if it is one. card_own_out: the
    same without it. next: without the query's whole group, but for its true next. group: all texts but the query's
    own, and the nearest of its group counts.
    """
    found = _of_pairs(vectors, chains, told)
    return {**found, "group": _of_groups(vectors, chains, lambda done: told(len(chains.query) + done))}


def queries(chains: Chains) -> int:
    """Return the work of `ranks`: queries of pairs and of groups."""
    return len(chains.query) + len(chains.member)


def _of_pairs(vectors: Matrix, chains: Chains, told: Told) -> dict[str, NeighbourRanks]:
    candidates, count = vectors[chains.query + 1], len(chains.query)
    above, tied = np.zeros((2, 3, count), dtype=np.int64)
    groups = chains.group[chains.query]
    for start, end in _blocks(count, count):
        rows, places = np.arange(end - start), np.arange(start, end)
        similar = vectors[chains.query[start:end]] @ candidates.T
        more, near = _against(similar, similar[rows, places])
        above[:, places], tied[:, places] = more.sum(axis=1), near.sum(axis=1) - 1
        own = chains.own[start:end]
        among = own >= 0
        above[1, places[among]] -= more[rows[among], own[among]]
        tied[1, places[among]] -= near[rows[among], own[among]]
        for low, high, columns in _stretches(groups, start, end):
            inside = slice(low - start, high - start)
            above[2, low:high] -= more[inside, columns].sum(axis=1)
            tied[2, low:high] -= near[inside, columns].sum(axis=1) - 1
        told(end)
    return {name: NeighbourRanks(chains.query, above[at], tied[at]) for at, name in enumerate(PROTOCOLS[:3])}


def _of_groups(vectors: Matrix, chains: Chains, told: Told) -> NeighbourRanks:
    asked, count = chains.member, len(chains.member)
    above, tied = np.zeros((2, count), dtype=np.int64)
    groups = chains.group[asked]
    first = asked - np.arange(count)
    """What a place among those asked lacks to a place among all texts: the same within a group."""
    for start, end in _blocks(count, len(vectors)):
        similar = vectors[asked[start:end]] @ vectors.T
        similar[np.arange(end - start), asked[start:end]] = -np.inf
        best = np.empty(end - start, dtype=np.float32)
        stretches = [
            (slice(low - start, high - start), slice(columns.start + first[low], columns.stop + first[low]))
            for low, high, columns in _stretches(groups, start, end)
        ]
        for rows, columns in stretches:
            best[rows] = similar[rows, columns].max(axis=1)
        for rows, columns in stretches:
            similar[rows, columns] = -np.inf
        more, near = _against(similar, best)
        above[start:end], tied[start:end] = more.sum(axis=1), near.sum(axis=1)
        told(end)
    return NeighbourRanks(asked, above, tied)


def _against(similar: Matrix, relevant: Matrix) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which candidates are more similar than the relevant one of their row, and which as similar."""
    line = relevant[:, None]
    more = similar > line + np.float32(NEAR)
    return more, (similar >= line - np.float32(NEAR)) & ~more


def _blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    size = max(CELLS // max(columns, 1), 1)
    return ((start, min(start + size, rows)) for start in range(0, rows, size))


def _stretches(groups: Ints, start: int, end: int) -> Iterator[tuple[int, int, slice]]:
    """Yield the rows of each group within a block, and the places of the whole group, which may begin before it."""
    edges = np.flatnonzero(np.diff(groups[start:end], prepend=-1, append=-1)) + start
    for low, high in pairwise(edges):
        left, right = np.searchsorted(groups, groups[low]), np.searchsorted(groups, groups[low], side="right")
        yield int(low), int(high), slice(int(left), int(right))
