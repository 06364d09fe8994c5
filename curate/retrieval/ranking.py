"""Rankings: cut, fused, pooled and measured."""

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
"""Lists of hits that are put together."""

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


def best_first(places: Numbers, scores: Scores, depth: int) -> Numbers:
    """Return the rows of the best `depth` scores above 0, best first, ties by place."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > depth:
        kth = np.partition(scores[rows], len(rows) - depth)[len(rows) - depth]
        rows = rows[scores[rows] >= kth]
    best: Numbers = rows[np.lexsort((places[rows], -scores[rows]))[:depth]]
    return best


def ordered(
    queries: Numbers, docs: Numbers, scores: Scores, depth: int, ties: Numbers | None = None
) -> tuple[Numbers, Numbers]:
    """Return the rows of each query's best `depth` documents, and their ranks from 1.

    `queries` ascends. Of several rows of one document and query the best counts; ties by `ties`, else by document. Most
    lists come in order and without doubles, and then nothing is sorted but their numbers.
    """
    ties = docs if ties is None else ties
    rows = np.arange(len(queries))
    above, below = scores[:-1], scores[1:]
    if not ((np.diff(queries) > 0) | (above > below) | ((above == below) & (np.diff(ties) > 0))).all():
        rows = np.lexsort((ties, -scores, queries))
    pairs = (queries * (docs.max(initial=0) + 1) + docs)[rows]
    if (np.diff(np.sort(pairs)) == 0).any():
        rows = rows[np.sort(np.unique(pairs, return_index=True)[1])]
    ranks = places(queries[rows]) + 1
    return rows[ranks <= depth], ranks[ranks <= depth]


def places(queries: Numbers) -> Numbers:
    """Return each row's place among those of its query, from 0; rows of a query stand together."""
    starts = starts_of(queries)
    return np.arange(len(queries)) - np.repeat(starts, np.diff(starts, append=len(queries)))


def starts_of(values: Numbers) -> Numbers:
    """Return where each run of equal numbers begins; none is below 0."""
    return np.flatnonzero(np.diff(values, prepend=-1))


def columns(lists: Sequence[Sequence[Hit]]) -> Hits:
    """Return lists of hits in columns."""
    found = [hit for hits in lists for hit in hits]
    return Hits(
        [hit.doc_id for hit in found],
        np.arange(len(found)),
        np.array([hit.score for hit in found], dtype=np.float64),
        np.array([len(hits) for hits in lists], dtype=np.int64),
    )


def ask(
    retriever: Retriever, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
) -> Iterator[tuple[Sequence[Query], Hits]]:
    """Yield what a retriever finds in columns, some queries at once, with these queries."""
    done = 0
    for hits in _blocks(retriever.search(corpus, queries, depth, progress)):
        start, done = done, done + len(hits.counts)
        if done > len(queries):
            break
        yield queries[start:done], hits
    if done != len(queries):
        raise RunFailed(f"retrievers.{retriever.name}: found lists for {done} queries, expected {len(queries)}")


def _blocks(found: Iterable[Hits | Sequence[Hit]]) -> Iterator[Hits]:
    """Yield columns as they are, and lists of hits put together, a thousand at once."""
    for in_columns, some in groupby(found, lambda hits: isinstance(hits, Hits)):
        if in_columns:
            yield from cast("Iterator[Hits]", some)
        while lists := [] if in_columns else list(islice(cast("Iterator[Sequence[Hit]]", some), BLOCK)):
            yield columns(lists)


def frame(retriever: str, queries: Sequence[Query], hits: Hits, depth: int) -> pl.DataFrame:
    """Return the best `depth` hits of each query as a frame of the table `rankings`, as the retriever gave them."""
    asked = np.repeat(np.arange(len(queries)), hits.counts)
    ranks = places(asked) + 1
    here = ranks <= depth
    columns = {
        "query_id": pl.Series([query.query_id for query in queries], dtype=pl.String).gather(asked[here]),
        "retriever": pl.Series([retriever]).gather(np.zeros(here.sum(), dtype=np.int64)),
        "doc_id": pl.Series(hits.ids, dtype=pl.String).gather(hits.rows[here]),
        "rank": ranks[here],
        "score": hits.scores[here],
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
    """Return every retriever's mean nDCG over the queries of `relevant`; None if there is none.

    `rankings` is a table of that name; the documents `without` are taken out of it first. A query that a retriever has
    no ranking for counts as 0.
    """
    found: dict[str, float | None] = {}
    for (retriever,), part in rankings.sort("retriever", "query_id", "rank").group_by("retriever", maintain_order=True):
        lists = {str(key[0]): hits["doc_id"].to_list() for key, hits in part.group_by("query_id", maintain_order=True)}
        kept = {query: [doc for doc in hits if doc not in without] for query, hits in lists.items()}
        scores = [ndcg(kept.get(query, []), wanted, depth) for query, wanted in sorted(relevant.items())]
        found[str(retriever)] = sum(scores) / len(scores) if scores else None
    return found
