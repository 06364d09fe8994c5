"""Structure of embeddings: nearest-neighbour recall in groups of texts, and silhouettes, in bounded memory."""

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
"""Maximum difference of equal similarities, for unit vectors in single precision."""
CELLS = 1 << 24
"""Number of similarities per block: 64 MB."""
PROTOCOLS = ("card", "card_own_out", "next", "group")


@dataclass(frozen=True)
class Chains:
    """Groups of texts and positions within them, the input of `ranks`."""

    group: Ints
    """Number of each text's group, from 0, ascending; shape (texts,)."""
    ordered: npt.NDArray[np.bool_]
    """Whether a text has a position in its group; texts without one come last in the group and are in no pair."""

    @cached_property
    def query(self) -> Ints:
        """Return the indexes of texts that have a next one; the next one of text i is text i + 1."""
        same = self.group[:-1] == self.group[1:]
        return np.flatnonzero(same & self.ordered[:-1] & self.ordered[1:]).astype(np.int64)

    @cached_property
    def member(self) -> Ints:
        """Return the indexes of texts in groups of several texts."""
        return np.flatnonzero(np.bincount(self.group)[self.group] > 1).astype(np.int64)

    @cached_property
    def chains(self) -> int:
        """Return the number of groups that have a pair."""
        return len(np.unique(self.group[self.query]))

    @cached_property
    def own(self) -> Ints:
        """Return per pair the index of its query among the candidates of `card`; -1 if it is no candidate."""
        index = np.full(len(self.group), -1, dtype=np.int64)
        index[self.query + 1] = np.arange(len(self.query))
        return index[self.query]

    def ceiling(self, depth: int) -> float:
        """Return the maximum recall of `card` at a depth: a query that is its own candidate always has rank 1."""
        return float(np.mean((self.own < 0) | (depth > 1)))


@dataclass(frozen=True)
class NeighbourRanks:
    """Per query, the numbers of candidates that are more similar than the relevant one, or tied with it."""

    query: Ints
    """Indexes of the texts used as queries."""
    above: Ints
    tied: Ints

    def hits(self, depth: int) -> Floats:
        """Return 1 for each query whose relevant candidate is within the depth, else 0; ties count as hits."""
        return (self.above < depth).astype(np.float64)

    def by_chance(self, depth: int) -> Floats:
        """Return per query the probability that its relevant candidate is within the depth, if ties are random."""
        return np.clip((depth - self.above) / (self.tied + 1), 0.0, 1.0)


def ranks(vectors: Matrix, chains: Chains, told: Told = lambda _done: None) -> dict[str, NeighbourRanks]:
    """Return protocol -> ranks; `told` gets the number of completed queries, of `queries(chains)`.

    card: the candidates are the next texts of all pairs, including the query's own text if it is one; the relevant one
    is the query's next text. card_own_out: the same without the query's own text. next: the same without the query's
    group, except its next text. group: the candidates are all texts of other groups and the nearest text of the query's
    own group, which is the relevant one.
    """
    pair_ranks = _ranks_of_pairs(vectors, chains, told)
    return {
        **pair_ranks,
        "group": _ranks_of_groups(vectors, chains, lambda completed: told(len(chains.query) + completed)),
    }


def queries(chains: Chains) -> int:
    """Return the work of `ranks`: queries of pairs and of groups."""
    return len(chains.query) + len(chains.member)


def _ranks_of_pairs(vectors: Matrix, chains: Chains, progress: Told) -> dict[str, NeighbourRanks]:
    candidates, count = vectors[chains.query + 1], len(chains.query)
    above, tied = np.zeros((2, 3, count), dtype=np.int64)
    groups = chains.group[chains.query]
    for start, end in _blocks(count, count):
        rows, indexes = np.arange(end - start), np.arange(start, end)
        similar = vectors[chains.query[start:end]] @ candidates.T
        above_it, near = _against(similar, similar[rows, indexes])
        above[:, indexes], tied[:, indexes] = above_it.sum(axis=1), near.sum(axis=1) - 1
        own_candidate = chains.own[start:end]
        among = own_candidate >= 0
        above[1, indexes[among]] -= above_it[rows[among], own_candidate[among]]
        tied[1, indexes[among]] -= near[rows[among], own_candidate[among]]
        for low, high, columns in _stretches(groups, start, end):
            inside = slice(low - start, high - start)
            above[2, low:high] -= above_it[inside, columns].sum(axis=1)
            tied[2, low:high] -= near[inside, columns].sum(axis=1) - 1
        progress(end)
    return {name: NeighbourRanks(chains.query, above[index], tied[index]) for index, name in enumerate(PROTOCOLS[:3])}


def _ranks_of_groups(vectors: Matrix, chains: Chains, progress: Told) -> NeighbourRanks:
    members, count = chains.member, len(chains.member)
    above, tied = np.zeros((2, count), dtype=np.int64)
    groups = chains.group[members]
    first = members - np.arange(count)
    """Index among all texts minus index among `members`; constant within a group."""
    for start, end in _blocks(count, len(vectors)):
        similar = vectors[members[start:end]] @ vectors.T
        similar[np.arange(end - start), members[start:end]] = -np.inf
        best = np.empty(end - start, dtype=np.float32)
        stretches = [
            (slice(low - start, high - start), slice(columns.start + first[low], columns.stop + first[low]))
            for low, high, columns in _stretches(groups, start, end)
        ]
        for rows, columns in stretches:
            best[rows] = similar[rows, columns].max(axis=1)
        for rows, columns in stretches:
            similar[rows, columns] = -np.inf
        above_it, near = _against(similar, best)
        above[start:end], tied[start:end] = above_it.sum(axis=1), near.sum(axis=1)
        progress(end)
    return NeighbourRanks(members, above, tied)


def _against(similar: Matrix, relevant: Matrix) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return two masks of candidates: more similar than their row's relevant one, and tied with it."""
    line = relevant[:, None]
    above_it = similar > line + np.float32(NEAR)
    return above_it, (similar >= line - np.float32(NEAR)) & ~above_it


def _blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    size = max(CELLS // max(columns, 1), 1)
    return ((start, min(start + size, rows)) for start in range(0, rows, size))


def _stretches(groups: Ints, start: int, end: int) -> Iterator[tuple[int, int, slice]]:
    """Yield for each group in a block its start and end in the block, and the slice of the whole group in `groups`."""
    edges = np.flatnonzero(np.diff(groups[start:end], prepend=-1, append=-1)) + start
    for low, high in pairwise(edges):
        first, stop = np.searchsorted(groups, groups[low]), np.searchsorted(groups, groups[low], side="right")
        yield int(low), int(high), slice(int(first), int(stop))


# Silhouettes of labelled vectors by cosine distance, without a matrix of all pairs.

ROWS = 4096
"""Number of vectors per block in double precision; limits memory."""


def silhouettes(vectors: npt.NDArray[np.float32], labels: Ints) -> Floats:
    """Return the silhouette (b - a) / max(a, b) per text, with a and b mean cosine distances.

    a is the distance to the other texts of its label, b to those of the nearest other label.
    """
    sizes = np.bincount(labels).astype(np.float64)
    sums = np.zeros((len(sizes), vectors.shape[1]))
    for start in range(0, len(vectors), ROWS):
        np.add.at(sums, labels[start : start + ROWS], vectors[start : start + ROWS].astype(np.float64))
    figures = np.zeros(len(vectors))
    for start in range(0, len(vectors), ROWS):
        block, label = vectors[start : start + ROWS].astype(np.float64), labels[start : start + ROWS]
        rows = np.arange(len(block))
        distance = 1 - block @ sums.T / sizes
        itself, others = 1 - (block * block).sum(axis=1), sizes[label] - 1
        inner = (distance[rows, label] * sizes[label] - itself) / np.maximum(others, 1)
        distance[rows, label] = np.inf
        nearest = distance.min(axis=1)
        widest = np.maximum(np.maximum(inner, nearest), 1e-12)
        figures[start : start + ROWS] = np.where(others > 0, (nearest - inner) / widest, 0.0)
    return figures
