"""Exact nearest neighbours by inner product, in an order that does not depend on block size, threads or machine."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import numpy.typing as npt

from curate.core.errors import DataError
from curate.core.protocols import Vectors
from curate.retrieval.similarity.screening import Rows, Scores, single
from curate.system.faiss_library import library
from curate.system.processes import cores

Best = tuple[Rows, Scores]
"""Rows of documents and their inner products with a query, best first."""
Nearest = Callable[[Vectors, Vectors, int], tuple[Vectors, Rows]]
"""Function of (queries, documents, k) that returns the k highest float32 products of each query, and their rows."""

QUERIES, DOCUMENTS, CONVERTED = 1024, 262_144, 16_384
"""Maximum queries and documents of one search, and documents that are converted to float32 or multiplied at a time."""
MARGIN = 64
"""Number of documents beyond k that are searched for, so that rounding of the k-th product leaves none out."""
RESCORED = 128
"""Number of rows converted to float64 at a time; so few fit in the CPU's cache, which is twice as fast."""
LONGEST = 1e18
"""Maximum length of a vector, since products of longer ones may overflow float32."""


def nearest_by_faiss(queries: Vectors, documents: Vectors, k: int) -> tuple[Vectors, Rows]:
    """Return the k highest products of each query and their rows, in no order, by FAISS on all cores."""
    faiss = library()
    scores, rows = faiss.knn(queries, documents, k, metric=faiss.METRIC_INNER_PRODUCT)
    return scores, rows


def top_k(
    queries: Vectors,
    documents: Vectors,
    ids: Sequence[str],
    k: int,
    nearest: Nearest = nearest_by_faiss,
    looked: Callable[[int], None] = lambda _queries: None,
) -> Iterator[Best]:
    """Yield, for each query, the rows of the min(k, documents) best documents and their inner products, best first.

    The order is by the float64 product of the stored vectors, then by document id. `nearest` only selects candidates by
    its float32 products; decision 0022 says why none is missed. `documents` may be a memory-mapped file larger than
    memory; it is read in order, once per `QUERIES` queries, and once more for queries of the block whose margin proves
    nothing. `looked` is called with the progress in queries; its last value is below their number.

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
            block = queries[start : start + QUERIES]

            def report_share(share: float, offset: int = start, queries: int = len(block)) -> None:
                looked(offset + int(share * queries))

            yield from pool.map(ranked, block, _candidates(block, documents, k, nearest, report_share))


def _candidates(
    queries: Vectors, documents: Vectors, k: int, nearest: Nearest, looked: Callable[[float], None]
) -> list[Rows]:
    """Return, for each query, rows of documents among which its k best are, by float64 product, ties included.

    With an error of a float32 product of at most e, k documents have exact products of at least s - e, where s is the
    k-th highest float32 product. So all of the best have float32 products of at least s - 2e, and the rows found are
    complete if the lowest of them is below that. Otherwise, every document is looked at for the query.
    """
    rough_queries, width = _float32(queries), min(k + MARGIN, len(documents))
    longest_query, longest_document = longest(queries, "query"), 0.0
    scores, rows = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
    is_plain = documents.dtype == np.float32 and documents.flags.c_contiguous
    step = DOCUMENTS if is_plain else CONVERTED
    for start in range(0, len(documents), step):
        block = documents[start : start + step]
        row_numbers = np.arange(start, start + len(block))
        longest_document = max(longest_document, longest(block, "document", row_numbers))
        block_scores, block_rows = nearest(rough_queries, _float32(block), min(width, len(block)))
        scores, rows = np.hstack([scores, block_scores]), np.hstack([rows, block_rows + start])
        if scores.shape[1] > width:
            best = np.argpartition(-scores, width - 1, axis=1)[:, :width]
            scores, rows = np.take_along_axis(scores, best, 1), np.take_along_axis(rows, best, 1)
        looked(start / len(documents))
    if not len(documents):
        return list(rows)
    kth = np.partition(scores, max(width - k, 0), axis=1)[:, max(width - k, 0)]
    floors = kth.astype(np.float64) - 2 * single(queries.shape[1], longest_query, longest_document)
    candidates = [query_rows[near] for query_rows, near in zip(rows, scores >= floors[:, None], strict=True)]
    if width < len(documents) and len(open_queries := np.flatnonzero(scores.min(axis=1) >= floors)):
        complete = _not_below(rough_queries[open_queries], documents, floors[open_queries])
        for query, query_rows in zip(open_queries.tolist(), complete, strict=True):
            candidates[query] = query_rows
    return candidates


def _not_below(queries: Vectors, documents: Vectors, floors: Scores) -> list[Rows]:
    """Return, for each query, the rows of all documents with a float32 product of at least its floor."""
    rows_by_query: list[list[Rows]] = [[] for _ in queries]
    for start in range(0, len(documents), CONVERTED):
        block = _float32(documents[start : start + CONVERTED])
        for query_rows, products, floor in zip(rows_by_query, queries @ block.T, floors, strict=True):
            query_rows.append(np.flatnonzero(products >= floor) + start)
    return [np.concatenate(query_rows) for query_rows in rows_by_query]


def _float32(rows: Vectors) -> Vectors:
    return np.ascontiguousarray(rows, dtype=np.float32)


def products(vector: Vectors, matrix: Vectors, rows: Rows) -> Scores:
    """Return the float64 inner products of a vector with the `rows` of a matrix, in order.

    Each product is summed on its own in a fixed order, so equal vectors have equal products whatever the other rows.
    """
    wide, scores = vector.astype(np.float64), np.empty(len(rows))
    buffer = np.empty((min(RESCORED, len(rows)), matrix.shape[1]))
    taken = np.empty(buffer.shape, matrix.dtype)
    for start in range(0, len(rows), RESCORED):
        block = rows[start : start + RESCORED]
        buffer[: len(block)] = np.take(matrix, block, 0, taken[: len(block)], "clip")  # without a copy, by "clip"
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
