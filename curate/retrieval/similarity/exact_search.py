"""Exact nearest neighbours by inner product, in an order that does not depend on block size, threads or machine."""

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
"""Maximum queries and documents of one block of scores, of at most QUERIES x DOCUMENTS x 4 bytes: 64 MB."""
RESCORED = 128
"""Number of rows converted to float64 at a time; so few fit in the CPU's cache, which is twice as fast."""
PRODUCT_CORES = 2
"""Number of cores that one matrix product occupies."""
LONGEST = 1e18
"""Maximum length of a vector, since products of longer ones may overflow float32."""


def top_k(
    queries: Vectors,
    documents: Vectors,
    ids: Sequence[str],
    k: int,
    screen: Screen = FLOAT32,
    looked: Callable[[int], None] = lambda _queries: None,
) -> Iterator[Best]:
    """Yield, for each query, the rows of the min(k, documents) best documents and their inner products, best first.

    The order is by the float64 product of the stored vectors, then by document id. The screen's less precise product
    selects candidates, block by block: documents within its error of the k-th best so far. They are rescored at the
    end. `documents` may be a memory-mapped file larger than memory; it is read in order, once per `QUERIES` queries.
    `looked` is called with the progress in queries; its last value is below their number.

    DataError if a vector has NaN or infinity or is longer than `LONGEST`, or if the shapes do not fit.
    """
    check(queries, documents, ids)
    documents = documents.view(np.ndarray)  # a memory-mapped array is slower at taking rows
    id_positions = cache(lambda: places(ids))

    def ranked(query: Vectors, rows: Rows) -> Best:
        exact = products(query, documents, rows)
        order = np.argsort(-exact)
        if (np.diff(exact[order]) == 0).any():  # seldom, and sorting the ids of a large corpus takes long
            order = np.lexsort((id_positions()[rows], -exact))
        return rows[order[:k]], exact[order[:k]]

    with ThreadPoolExecutor(cores()) as pool:
        for start in range(0, len(queries), QUERIES):
            block = np.ascontiguousarray(queries[start : start + QUERIES])

            def report_share(share: float, offset: int = start, queries: int = len(block)) -> None:
                looked(offset + int(share * queries))

            yield from pool.map(ranked, block, _screened(block, documents, k, screen, report_share))


def _screened(
    queries: Vectors, documents: Vectors, k: int, screen: Screen, looked: Callable[[float], None]
) -> list[Rows]:
    """Return, for each query, the rows of all documents that may be among its k best, ascending."""
    candidates_by_query = [_Candidates(k) for _ in queries]
    loaded_queries = screen.load(queries, longest(queries, "query"))
    floors = np.full(len(queries), -np.inf)

    def multiplied(start: int) -> tuple[Any, Error]:
        block = documents[start : start + DOCUMENTS]
        loaded = screen.load(block, longest(block, "document", np.arange(start, start + len(block))))
        return screen.product(loaded_queries, loaded), screen.error(loaded_queries, loaded)

    starts = range(0, len(documents), DOCUMENTS)
    for start, (scores, error) in zip(starts, _ahead(multiplied, starts), strict=True):
        if start == 0 and min(len(documents), DOCUMENTS) > k:
            kth = screen.kth(scores, k)
            floors = kth - error.of(kth)
        remaining = iter(candidates_by_query)  # tiles come in the order of the queries
        for edges, columns, tile_products in screen.at_least(scores, error.least(floors)):
            rows, slack = columns + start, error.of(tile_products)
            lowest, highest = tile_products - slack, tile_products + slack
            for (low, high), query_candidates in zip(pairwise(edges), remaining, strict=False):
                query_candidates.add(rows[low:high], lowest[low:high], highest[low:high])
        floors = np.maximum(floors, [query_candidates.floor for query_candidates in candidates_by_query])
        looked(start / len(documents))
    return [query_candidates.rows() for query_candidates in candidates_by_query]


def _ahead(function: Callable[[int], Result], items: Iterable[int]) -> Iterator[Result]:
    """Yield the function's result for each item; a thread computes the next one while the caller uses the last.

    On two cores or fewer no thread is used, since a matrix product occupies both.
    """
    if cores() <= PRODUCT_CORES:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(1) as pool:
        pending: Future[Result] | None = None
        for argument in items:
            last, pending = pending, pool.submit(function, argument)
            if last:
                yield last.result()
        if pending:
            yield pending.result()


@dataclass
class _Candidates:
    """Candidates of one query: the documents added so far that may be among its k best."""

    k: int
    floor: float = -np.inf
    """Lower bound of the k-th best product."""
    _blocks: list[tuple[Rows, Scores, Scores]] = field(default_factory=list)
    """Blocks of (rows of documents, lower bounds, upper bounds of their products)."""
    _new: int = 0
    """Number of documents added since the last pruning."""

    def add(self, rows: Rows, lowest: Scores, highest: Scores) -> None:
        """Add documents with lower and upper bounds of their products."""
        self._blocks.append((rows, lowest, highest))
        self._new += len(rows)
        if self._new >= self.k:
            self._prune()

    def _prune(self) -> None:
        rows, lowest, highest = (np.concatenate(arrays) for arrays in zip(*self._blocks, strict=True))
        if len(rows) > self.k:
            self.floor = float(np.partition(lowest, len(rows) - self.k)[len(rows) - self.k])
            possible = np.flatnonzero(highest >= self.floor)
            rows, lowest, highest = rows[possible], lowest[possible], highest[possible]
        self._blocks, self._new = [(rows, lowest, highest)], 0

    def rows(self) -> Rows:
        """Return the rows of the remaining documents, ascending."""
        if not self._blocks:
            return np.empty(0, dtype=np.int64)
        self._prune()
        return self._blocks[0][0]


def products(vector: Vectors, matrix: Vectors, rows: Rows) -> Scores:
    """Return the float64 inner products of a vector with the `rows` of a matrix, in order.

    Each product is summed on its own in a fixed order, so equal vectors have equal products whatever the other rows.
    """
    wide, scores = vector.astype(np.float64), np.empty(len(rows))
    buffer = np.empty((min(RESCORED, len(rows)), matrix.shape[1]))
    for start in range(0, len(rows), RESCORED):
        block = rows[start : start + RESCORED]
        buffer[: len(block)] = matrix[block]
        np.einsum("ij,j->i", buffer[: len(block)], wide, out=scores[start : start + RESCORED])
    return scores


def pair_products(left: Vectors, rows: Rows, right: Vectors, columns: Rows) -> Scores:
    """Return the float64 inner products of row rows[i] of `left` and row columns[i] of `right`."""
    scores = np.empty(len(rows))
    for start in range(0, len(rows), RESCORED):
        block = slice(start, start + RESCORED)
        first, second = left[rows[block]].astype(np.float64), right[columns[block]].astype(np.float64)
        scores[block] = np.einsum("ij,ij->i", first, second)
    return scores


def longest(rows: Vectors, name: str, row_numbers: Rows | None = None) -> float:
    """Return a close upper bound of the lengths of vectors; DataError as for `lengths`."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float32, casting="same_kind")
    largest = float(squares.max(initial=0.0))
    if not largest <= LONGEST**2:  # not `>`, which is false for NaN
        largest = float(lengths(rows, name, row_numbers).max()) ** 2
    return length_bound(largest, rows.shape[1])


def length_bound(square: float, dim: int) -> float:
    """Return an upper bound of the length of a vector whose `dim` squared entries sum in float32 to at most `square`.

    It holds for any order of summation, as it allows twice the relative error dim * 2^-24, and underflow of squares.
    """
    return math.sqrt(square) * (1 + dim * 2.0**-23) + math.sqrt(dim) * 2.0**-63


def lengths(rows: Vectors, name: str, row_numbers: Rows | None = None) -> Scores:
    """Return the lengths (L2 norms) of vectors; DataError with the row number for NaN, infinity or above `LONGEST`.

    `name` names the vectors in the message; `row_numbers` are the rows' numbers there, by default from 0.
    """
    norms: Scores = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    bad = np.flatnonzero(~(norms <= LONGEST))
    if len(bad):
        what = f"are longer than {LONGEST:g}" if np.isfinite(rows[bad]).all() else "hold NaN or infinity"
        first = bad[0] if row_numbers is None else row_numbers[bad].min()
        raise DataError(f"{len(bad)} {name} vectors {what}, the first in row {first}; use vectors of length 1")
    return norms


def unit(rows: npt.ArrayLike) -> Vectors:
    """Return L2-normalised rows as float32; a row of zeros is unchanged."""
    plain = np.asarray(rows, dtype=np.float32)
    norms = np.linalg.norm(plain, axis=1, keepdims=True)
    divided: Vectors = plain / np.maximum(norms, np.finfo(np.float32).tiny)
    return divided


def check(queries: Vectors, documents: Vectors, ids: Sequence[str]) -> None:
    """Raise DataError if queries and documents differ in dimensions, or ids and documents in number."""
    if queries.shape[1] != documents.shape[1]:
        raise DataError(f"query vectors have {queries.shape[1]} dimensions, document vectors {documents.shape[1]}")
    if len(ids) != len(documents):
        raise DataError(f"found {len(ids)} document ids for {len(documents)} document vectors")


def places(ids: Sequence[str]) -> Rows:
    """Return each id's position, from 0, in the sorted order of all ids."""
    positions = np.empty(len(ids), dtype=np.int64)
    positions[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return positions
