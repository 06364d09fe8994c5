"""Rankings: cut, fuse, choose a pool, and measure."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.records import Hit

RRF_K = 60
"""Constant of reciprocal-rank fusion (Cormack, Clarke & Buettcher, SIGIR 2009)."""
DIGITS = 12
"""Sums of reciprocal ranks are rounded to this many digits, so that equal sums are equal."""

Method = Literal["equal-depth", "rrf", "union"]


def best_first(ids: Sequence[str], scores: npt.NDArray[np.float64], depth: int) -> list[Hit]:
    """Return the best `depth` documents with a score above 0, ties by document id."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > depth:
        kth = np.partition(scores[rows], len(rows) - depth)[len(rows) - depth]
        rows = rows[scores[rows] >= kth]
    order = sorted(rows.tolist(), key=lambda row: (-scores[row], ids[row]))[:depth]
    return [Hit(ids[row], rank, float(scores[row])) for rank, row in enumerate(order, start=1)]


def renamed(hits: Sequence[Hit], ids: Mapping[str, str | None], depth: int) -> list[Hit]:
    """Return the best `depth` hits under the ids of `ids`, without those whose id has become None; ranks from 1.

    An id that `ids` lacks stays. Of several hits that become one document the best counts; ties by document id.
    """
    scores: dict[str, float] = {}
    for hit in hits:
        doc_id = ids.get(hit.doc_id, hit.doc_id)
        if doc_id is not None:
            scores[doc_id] = max(hit.score, scores.get(doc_id, -math.inf))
    order = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:depth]
    return [Hit(doc_id, rank, score) for rank, (doc_id, score) in enumerate(order, start=1)]


def fuse(rankings: pl.DataFrame) -> pl.DataFrame:
    """Return one row a retrieved pair: query_id, doc_id, rrf, best, hits; each query's pairs best first.

    `rrf` is the sum of 1 / (60 + rank) over the retrievers that found the document, ties by document id; `best` is
    its best rank, `hits` holds every retriever's rank and score, by name. `rankings` is a table of that name; the
    order of its rows does not matter.
    """
    score = (1.0 / (RRF_K + pl.col("rank"))).sum().round(DIGITS)
    hits = pl.struct("retriever", "rank", "score")
    return (
        rankings.sort("query_id", "doc_id", "retriever")
        .group_by("query_id", "doc_id", maintain_order=True)
        .agg(score.alias("rrf"), pl.col("rank").min().alias("best"), hits.alias("hits"))
        .sort("query_id", "rrf", "doc_id", descending=[False, True, False])
    )


def choose(pairs: pl.DataFrame, size: int, method: Method) -> pl.DataFrame:
    """Return the rows of `fuse` that form each query's pool, in their order.

    `equal-depth`: the documents within the top d of any retriever, for the largest d at which they are at most
    `size`; what is left of `size` is filled up by fusion. Every retriever is trusted to the same depth, as in TREC
    pooling. `rrf`: the first `size` of the fusion. `union`: everything.
    """
    if method == "union":
        return pairs
    if method == "rrf":
        return pairs.filter(pl.int_range(pl.len()).over("query_id") < size)
    # rank "max" counts the documents of the query that are found at the same depth or above
    outside = pl.col("best").rank("max").over("query_id") > size
    return pairs.filter(outside.cast(pl.Int8).rank("ordinal").over("query_id") <= size)


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
