"""Rankings: sort and truncate hits, convert them between lists, arrays and tables, and score them by nDCG."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.errors import RunFailed
from curate.core.protocols import Corpus, Hits, Progress, Retriever
from curate.core.records import TABLES, Hit, Query

BLOCK = 1_000
"""Number of lists of hits (one per query) that are converted to arrays at a time."""

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


def best_first(tie_order: Numbers, scores: Scores, depth: int) -> Numbers:
    """Return the row numbers of the best `depth` scores above 0, best first, ties by ascending `tie_order`."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > depth:
        kth = np.partition(scores[rows], len(rows) - depth)[len(rows) - depth]
        rows = rows[scores[rows] >= kth]
    best: Numbers = rows[np.lexsort((tie_order[rows], -scores[rows]))[:depth]]
    return best


def ordered(
    queries: Numbers, docs: Numbers, scores: Scores, depth: int, ties: Numbers | None = None
) -> tuple[Numbers, Numbers]:
    """Return the row numbers of each query's best `depth` documents, sorted by query and rank, and ranks from 1.

    `queries` is ascending. Of several rows of one document and query the best counts. Equal scores are ordered by
    `ties`, or by document if it is None.
    """
    ties = docs if ties is None else ties
    rows = np.arange(len(queries))
    above, below = scores[:-1], scores[1:]
    # most lists are in order and without repeated documents: lexsort and unique, which are slow, are left out for them
    if not ((np.diff(queries) > 0) | (above > below) | ((above == below) & (np.diff(ties) > 0))).all():
        rows = np.lexsort((ties, -scores, queries))
    pairs = (queries * (docs.max(initial=0) + 1) + docs)[rows]
    if (np.diff(np.sort(pairs)) == 0).any():
        rows = rows[np.sort(np.unique(pairs, return_index=True)[1])]
    ranks = places(queries[rows]) + 1
    return rows[ranks <= depth], ranks[ranks <= depth]


def places(queries: Numbers) -> Numbers:
    """Return each row's position among the rows of its query, from 0; rows of a query must be adjacent."""
    starts = starts_of(queries)
    return np.arange(len(queries)) - np.repeat(starts, np.diff(starts, append=len(queries)))


def starts_of(values: Numbers) -> Numbers:
    """Return the index at which each run of equal values starts; values must not be negative."""
    return np.flatnonzero(np.diff(values, prepend=-1))


def columns(lists: Sequence[Sequence[Hit]]) -> Hits:
    """Return lists of hits, one per query, as arrays."""
    all_hits = [hit for hits in lists for hit in hits]
    return Hits(
        [hit.doc_id for hit in all_hits],
        np.arange(len(all_hits)),
        np.array([hit.score for hit in all_hits], dtype=np.float64),
        np.array([len(hits) for hits in lists], dtype=np.int64),
    )


def ask(
    retriever: Retriever, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
) -> Iterator[tuple[Sequence[Query], Hits]]:
    """Yield blocks of queries with a retriever's hits as arrays; RunFailed unless it returns one list per query."""
    end = 0
    for hits in _in_columns(retriever.search(corpus, queries, depth, progress)):
        start, end = end, end + len(hits.counts)
        if end > len(queries):
            break
        yield queries[start:end], hits
    if end != len(queries):
        raise RunFailed(f"retrievers.{retriever.name}: found lists for {end} queries, expected {len(queries)}")


def _in_columns(results: Iterable[Hits | Sequence[Hit]]) -> Iterator[Hits]:
    # a retriever may mix blocks of columns with lists of single queries; up to `BLOCK` of these become one block
    for in_columns, group in groupby(results, lambda hits: isinstance(hits, Hits)):
        if in_columns:
            yield from cast("Iterator[Hits]", group)
        while lists := [] if in_columns else list(islice(cast("Iterator[Sequence[Hit]]", group), BLOCK)):
            yield columns(lists)


def frame(retriever: str, queries: Sequence[Query], hits: Hits, depth: int) -> pl.DataFrame:
    """Return the first `depth` hits of each query as rows of the table `rankings`, in the retriever's order."""
    query_rows = np.repeat(np.arange(len(queries)), hits.counts)
    ranks = places(query_rows) + 1
    within_depth = ranks <= depth
    columns = {
        "query_id": pl.Series([query.query_id for query in queries], dtype=pl.String).gather(query_rows[within_depth]),
        "retriever": pl.Series([retriever]).gather(np.zeros(within_depth.sum(), dtype=np.int64)),
        "doc_id": pl.Series(hits.ids, dtype=pl.String).gather(hits.rows[within_depth]),
        "rank": ranks[within_depth],
        "score": hits.scores[within_depth],
    }
    return pl.DataFrame(columns, TABLES["rankings"])


def ndcg(ranking: Sequence[str], relevant: Collection[str], depth: int = 10) -> float:
    """Return nDCG at `depth` of one ranking for binary labels, in [0, 1]: gain 1, discount 1 / log2(rank + 1).

    `relevant` must not be empty: without a relevant document the measure is not defined.
    """
    if not relevant:
        raise ValueError("nDCG is not defined for a query without a relevant document")
    gain = sum(1 / math.log2(rank + 1) for rank, doc in enumerate(ranking[:depth], start=1) if doc in relevant)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(depth, len(relevant)) + 1))
    return gain / best


def mean_ndcg(
    rankings: pl.DataFrame, relevant: Mapping[str, Collection[str]], depth: int = 10, without: Collection[str] = ()
) -> dict[str, float | None]:
    """Return every retriever's mean nDCG over the queries of `relevant`; None if `relevant` is empty.

    `rankings` is the table `rankings`; documents of `without` are removed from it first. A query without a ranking
    counts as 0.
    """
    means: dict[str, float | None] = {}
    for (retriever,), retriever_rows in rankings.sort("retriever", "query_id", "rank").group_by(
        "retriever", maintain_order=True
    ):
        lists = {
            str(key[0]): hits["doc_id"].to_list()
            for key, hits in retriever_rows.group_by("query_id", maintain_order=True)
        }
        remaining = {query: [doc for doc in hits if doc not in without] for query, hits in lists.items()}
        scores = [ndcg(remaining.get(query, []), positives, depth) for query, positives in sorted(relevant.items())]
        means[str(retriever)] = sum(scores) / len(scores) if scores else None
    return means
