"""Exact nearest neighbours by inner product, in an order that no block size, thread or machine can change."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from curate.core.errors import DataError
from curate.core.protocols import Vectors
from curate.retrieval.similarity.screening import FLOAT32, Error, Rows, Scores, Screen
from curate.system.processes import cores

Result = TypeVar("Result")
Best = tuple[Rows, Scores]
"""Rows of documents and their inner products with a query, best first."""

QUERIES, DOCUMENTS = 1024, 16_384
"""A block of scores is at most QUERIES x DOCUMENTS x 4 bytes: 64 MB."""
RESCORED = 128
"""Rows that are held as float64 at once: few enough to stay in the processor's cache, where it is twice as fast."""
PRODUCT_CORES = 2
"""So many cores are taken by a product alone."""
LONGEST = 1e18
"""Products of longer vectors may be larger than float32 can hold."""


def top_k(
    queries: Vectors,
    documents: Vectors,
    ids: Sequence[str],
    k: int,
    screen: Screen = FLOAT32,
    looked: Callable[[int], None] = lambda _queries: None,
) -> Iterator[Best]:
    """Yield, for each query, the rows of the min(k, documents) best documents and their inner products, best first.

    The order is by the float64 product of the stored vectors, then by document id. A rough product screens, block by
    block: what lies within its error of the k-th best so far is rescored in the end. `documents` may be a
    memory-mapped file larger than memory: it is read once for each 1,024 queries, front to back.
    `looked` is told to how many queries' work what is done comes to: always less than all of it.
    Raises DataError if a vector holds NaN or infinity or is longer than 1e18, or if the shapes do not fit.
    """
    check(queries, documents, ids)
    documents = documents.view(np.ndarray)  # a memory-mapped array is slower at taking rows
    place = cache(lambda: places(ids))

    def ranked(query: Vectors, rows: Rows) -> Best:
        exact = products(query, documents, rows)
        order = np.argsort(-exact)
        if (np.diff(exact[order]) == 0).any():  # seldom, and sorting the ids of a large corpus takes long
            order = np.lexsort((place()[rows], -exact))
        return rows[order[:k]], exact[order[:k]]

    with ThreadPoolExecutor(cores()) as pool:
        for start in range(0, len(queries), QUERIES):
            block = np.ascontiguousarray(queries[start : start + QUERIES])

            def told(share: float, before: int = start, queries: int = len(block)) -> None:
                looked(before + int(share * queries))

            yield from pool.map(ranked, block, _screened(block, documents, k, screen, told))


def _screened(
    queries: Vectors, documents: Vectors, k: int, screen: Screen, looked: Callable[[float], None]
) -> list[Rows]:
    """Return for each query the rows of all documents that may be among its k best."""
    kept = [_Kept(k) for _ in queries]
    asked = screen.load(queries, longest(queries, "query"))
    floors = np.full(len(queries), -np.inf)

    def multiplied(start: int) -> tuple[Any, Error]:
        block = documents[start : start + DOCUMENTS]
        loaded = screen.load(block, longest(block, "document", np.arange(start, start + len(block))))
        return screen.product(asked, loaded), screen.error(asked, loaded)

    starts = range(0, len(documents), DOCUMENTS)
    for start, (scores, error) in zip(starts, _ahead(multiplied, starts), strict=True):
        if start == 0 and min(len(documents), DOCUMENTS) > k:
            kth = screen.kth(scores, k)
            floors = kth - error.of(kth)
        each = iter(kept)
        for edges, columns, found in screen.at_least(scores, error.least(floors)):
            rows, slack = columns + start, error.of(found)
            lowest, highest = found - slack, found + slack
            for (low, high), best in zip(pairwise(edges), each, strict=False):
                best.add(rows[low:high], lowest[low:high], highest[low:high])
        floors = np.maximum(floors, [best.floor for best in kept])
        looked(start / len(documents))
    return [best.rows() for best in kept]


def _ahead(function: Callable[[int], Result], items: Iterable[int]) -> Iterator[Result]:
    """Yield the function's result for each item; a thread makes the next one while the last is looked at.

    Not of two cores, which a product takes both: there it would only be interrupted.
    """
    if cores() <= PRODUCT_CORES:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(1) as pool:
        coming: Future[Result] | None = None
        for item in items:
            last, coming = coming, pool.submit(function, item)
            if last:
                yield last.result()
        if coming:
            yield coming.result()


@dataclass
class _Kept:
    """What may be among the k best of one query, of all documents that were looked at."""

    k: int
    floor: float = -np.inf
    """The k-th best is certainly not below it."""
    _parts: list[tuple[Rows, Scores, Scores]] = field(default_factory=list)
    """Rows of documents, and what their products are at least and at most."""
    _new: int = 0

    def add(self, rows: Rows, lowest: Scores, highest: Scores) -> None:
        """Look at some documents, whose products are so much at least and at most."""
        self._parts.append((rows, lowest, highest))
        self._new += len(rows)
        if self._new >= self.k:
            self._settle()

    def _settle(self) -> None:
        rows, lowest, highest = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        if len(rows) > self.k:
            self.floor = float(np.partition(lowest, len(rows) - self.k)[len(rows) - self.k])
            stay = np.flatnonzero(highest >= self.floor)
            rows, lowest, highest = rows[stay], lowest[stay], highest[stay]
        self._parts, self._new = [(rows, lowest, highest)], 0

    def rows(self) -> Rows:
        """Return the rows of the documents, in order."""
        if not self._parts:
            return np.empty(0, dtype=np.int64)
        self._settle()
        return self._parts[0][0]


def products(vector: Vectors, matrix: Vectors, rows: Rows) -> Scores:
    """Return the float64 inner product of a vector with the named rows of a matrix, in order.

    Each is summed on its own, in one fixed order: equal rows give equal products in any company.
    """
    wide, found = vector.astype(np.float64), np.empty(len(rows))
    taken = np.empty((min(RESCORED, len(rows)), matrix.shape[1]))
    for start in range(0, len(rows), RESCORED):
        part = rows[start : start + RESCORED]
        taken[: len(part)] = matrix[part]
        np.einsum("ij,j->i", taken[: len(part)], wide, out=found[start : start + RESCORED])
    return found


def pair_products(left: Vectors, rows: Rows, right: Vectors, columns: Rows) -> Scores:
    """Return the float64 inner product of each named row of one matrix with the one of the other beside it."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), RESCORED):
        part = slice(start, start + RESCORED)
        first, second = left[rows[part]].astype(np.float64), right[columns[part]].astype(np.float64)
        found[part] = np.einsum("ij,ij->i", first, second)
    return found


def longest(rows: Vectors, name: str, places: Rows | None = None) -> float:
    """Return a length that no vector exceeds, hardly more than the longest; DataError as `lengths`."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float32, casting="same_kind")
    largest = float(squares.max(initial=0.0))
    if not largest <= LONGEST**2:
        largest = float(lengths(rows, name, places).max()) ** 2
    return length_bound(largest, rows.shape[1])


def length_bound(square: float, dim: int) -> float:
    """Return a length that no vector exceeds whose `dim` squares, summed in float32 in any order, are at most `square`.

    The sum is wrong by dim * 2^-24 of it, doubled, and each square may be too small for float32.
    """
    return math.sqrt(square) * (1 + dim * 2.0**-23) + math.sqrt(dim) * 2.0**-63


def lengths(rows: Vectors, name: str, places: Rows | None = None) -> Scores:
    """Return the lengths of vectors; DataError for NaN, infinity and lengths above 1e18. `places` are their rows."""
    found: Scores = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    bad = np.flatnonzero(~(found <= LONGEST))
    if len(bad):
        what = f"are longer than {LONGEST:g}" if np.isfinite(rows[bad]).all() else "hold NaN or infinity"
        first = bad[0] if places is None else places[bad].min()
        raise DataError(f"{len(bad)} {name} vectors {what}, the first in row {first}; use vectors of length 1")
    return found


def unit(rows: npt.ArrayLike) -> Vectors:
    """Return rows as float32, each divided by its length; a row of zeros stays one."""
    plain = np.asarray(rows, dtype=np.float32)
    norms = np.linalg.norm(plain, axis=1, keepdims=True)
    divided: Vectors = plain / np.maximum(norms, np.finfo(np.float32).tiny)
    return divided


def check(queries: Vectors, documents: Vectors, ids: Sequence[str]) -> None:
    """Raise DataError if vectors cannot be compared: other lengths, or other counts."""
    if queries.shape[1] != documents.shape[1]:
        raise DataError(f"query vectors have {queries.shape[1]} dimensions, document vectors {documents.shape[1]}")
    if len(ids) != len(documents):
        raise DataError(f"found {len(ids)} document ids for {len(documents)} document vectors")


def places(ids: Sequence[str]) -> Rows:
    """Return each id's place in the order of all ids."""
    found = np.empty(len(ids), dtype=np.int64)
    found[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return found
