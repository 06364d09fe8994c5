"""Rank fusion of several retrievers into a pool, and its growth by later systems and known positives.

Queries, retrievers and documents are numbers, their indexes among the sorted names, so that order by number is order by
name. A million hits take half a second and 400 MB; of more, callers fuse some queries at a time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import polars as pl

from curate.core.records import TABLES
from curate.retrieval.ranking import Numbers, Scores, places, starts_of

RRF_K = 60
"""Constant of reciprocal-rank fusion (Cormack, Clarke & Buettcher, SIGIR 2009)."""
SCALE = 10**12
"""Sums of reciprocal ranks are rounded to whole parts of this, so that equal sums are equal."""

Method = Literal["equal-depth", "rrf", "round-robin", "union"]


@dataclass(frozen=True)
class RankedLists:
    """The hits of some queries, one row per hit, in columns of one length; no retriever repeats a document."""

    queries: Numbers
    retrievers: Numbers
    docs: Numbers
    ranks: Numbers
    """From 1."""
    scores: Scores


@dataclass(frozen=True)
class Pairs:
    """Retrieved pairs in columns of one length, grouped by query, best first by fusion."""

    queries: Numbers
    docs: Numbers
    best: Numbers
    """The pair's best rank."""
    first: Numbers
    """The first retriever by name that gave it this rank."""
    starts: Numbers
    counts: Numbers
    """Start of a pair's hits in `order`, and their number."""
    order: Numbers
    """Rows of the lists by query, document and retriever."""


def fuse(lists: RankedLists) -> Pairs:
    """Return the retrieved pairs by query, then by the sum of 1 / (60 + rank) over the lists they are in, best first.

    Ties are by document.
    """
    docs, retrievers = _past(lists.docs), _past(lists.retrievers)
    keys = (lists.queries * docs + lists.docs) * retrievers + lists.retrievers
    order = np.argsort(keys)  # no two are equal
    pairs = keys[order] // retrievers
    starts = starts_of(pairs)
    ranks = lists.ranks[order]
    sums = np.rint(np.add.reduceat(1.0 / (RRF_K + ranks), starts) * SCALE).astype(np.int64)
    earliest = np.minimum.reduceat(ranks * retrievers + lists.retrievers[order], starts)
    queries, pair_docs = np.divmod(pairs[starts], docs)
    top = _past(sums)
    by_sum = np.argsort(queries * top + (top - 1 - sums), kind="stable")  # ties stay by document
    best, first = np.divmod(earliest[by_sum], retrievers)
    counts = np.diff(starts, append=len(order))
    return Pairs(queries[by_sum], pair_docs[by_sum], best, first, starts[by_sum], counts[by_sum], order)


def choose(pairs: Pairs, size: int, method: Method) -> Numbers:
    """Return the rows of `pairs` that form each query's pool, in the pool's order.

    `equal-depth`: the documents within the top d of any retriever, for the largest d at which they are at most `size`;
    the rest of `size` is filled up by fusion. Every retriever is trusted to the same depth, as in TREC pooling. `rrf`:
    the first `size` of the fusion. `union`: everything. These three are in the order of the fusion. `round-robin`: the
    retrievers take turns in the order of their names, and each adds its document of rank n in its n-th turn, unless the
    pool has it already. This ends at `size` documents, and its order is the order in which they came: by best rank,
    then by the first retriever that gave the document this rank.
    """
    rows = np.arange(len(pairs.queries))
    if method == "union":
        return rows
    if method == "rrf":
        return rows[places(pairs.queries) < size]
    if method == "round-robin":
        rows = np.lexsort((pairs.first, pairs.best, pairs.queries))
        return rows[places(pairs.queries) < size]
    inside = _best_rank_counts(pairs) <= size
    # those inside come first, then the others, each in the order of the fusion
    by_side = np.lexsort((~inside, pairs.queries))
    chosen = np.empty(len(rows), dtype=np.bool_)
    chosen[by_side] = places(pairs.queries) < size
    return rows[chosen]


def lists(queries: Numbers, retriever: int, docs: Numbers, scores: Scores) -> RankedLists:
    """Return one retriever's lists, each of which is in order."""
    return RankedLists(queries, np.full(len(queries), retriever), docs, places(queries) + 1, scores)


def together(parts: Sequence[RankedLists]) -> RankedLists:
    """Return the lists of several retrievers by query, retriever and rank; each part is one retriever's, in order."""
    columns = [np.concatenate([getattr(ranked, field.name) for ranked in parts]) for field in fields(RankedLists)]
    order = np.argsort(columns[0], kind="stable")
    return RankedLists(*(column[order] for column in columns))


def runs(starts: Numbers, counts: Numbers) -> Numbers:
    """Return the concatenated runs of consecutive numbers with these starts and counts."""
    ends = np.cumsum(counts)
    numbers: Numbers = np.repeat(starts - (ends - counts), counts) + np.arange(counts.sum())
    return numbers


def hits(pairs: Pairs, rows: Numbers, lists: RankedLists, names: pl.Series) -> pl.Series:
    """Return the hits of the pairs in `rows` as a list<struct> column: every retriever's rank and score, by name."""
    import pyarrow as pa

    list_rows = pairs.order[runs(pairs.starts[rows], pairs.counts[rows])]
    columns = [
        names.gather(lists.retrievers[list_rows]),
        pl.Series(lists.ranks[list_rows], dtype=pl.Int32),
        lists.scores[list_rows],
    ]
    structs = pl.DataFrame(dict(zip(("retriever", "rank", "score"), columns, strict=True)))
    offsets = pa.array(np.concatenate([[0], np.cumsum(pairs.counts[rows])]))
    return pl.Series("hits", pa.LargeListArray.from_arrays(offsets, structs.to_struct().to_arrow()))


@dataclass(frozen=True)
class Names:
    """Sorted names that the numbers in lists index."""

    queries: pl.Series
    retrievers: pl.Series
    docs: pl.Series

    def rankings(self, lists: RankedLists) -> pl.DataFrame:
        """Return lists as a frame of the table `rankings`, row by row."""
        queries, docs = self.queries.gather(lists.queries), self.docs.gather(lists.docs)
        return _table("rankings", queries, self.retrievers.gather(lists.retrievers), docs, lists.ranks, lists.scores)

    def chosen(self, lists: RankedLists, size: int, method: Method) -> tuple[pl.DataFrame, int]:
        """Return the pools of some queries as a frame of the table `pool`, and how many pairs were retrieved."""
        pairs = fuse(lists)
        rows = choose(pairs, size, method)
        queries, docs = self.queries.gather(pairs.queries[rows]), self.docs.gather(pairs.docs[rows])
        positions = places(pairs.queries[rows]) + 1
        return _table("pool", queries, docs, positions, hits(pairs, rows, lists, self.retrievers)), len(pairs.queries)


def _table(name: str, *columns: pl.Series | Numbers | Scores) -> pl.DataFrame:
    return pl.DataFrame(dict(zip(TABLES[name], columns, strict=True)), TABLES[name])


def _past(numbers: Numbers) -> int:
    return int(numbers.max(initial=0)) + 1


def _best_rank_counts(pairs: Pairs) -> Numbers:
    """Return for every pair the number of pairs of its query with the same or a better best rank."""
    keys = pairs.queries * _past(pairs.best) + pairs.best
    starts = starts_of(pairs.queries)
    earlier_pairs = np.repeat(starts, np.diff(starts, append=len(keys)))
    return np.searchsorted(np.sort(keys), keys, side="right") - earlier_pairs


# Growth of a pool by later systems and by known positives; existing pairs keep their positions.

_KEY = ("query_id", "doc_id")


def holes(pool: pl.DataFrame, rankings: pl.DataFrame, added: Iterable[str], depth: int) -> pl.DataFrame:
    """Return the documents that the added systems rank within `depth` and the pool lacks: pair, best rank, systems.

    Sorted by query, then by best rank, then by document.
    """
    new = rankings.filter(pl.col("retriever").is_in(list(added)) & (pl.col("rank") <= depth))
    unjudged = new.join(pool, on=_KEY, how="anti").group_by(_KEY)
    return unjudged.agg(best=pl.col("rank").min(), systems=pl.col("retriever").sort()).sort(
        "query_id", "best", "doc_id"
    )


def grown(pool: pl.DataFrame, rankings: pl.DataFrame, added: Iterable[str], depth: int) -> pl.DataFrame:
    """Return the `pool` table with the holes of the added systems appended per query.

    `rankings` are those of the pool's own retrievers and of the added ones; every pair's hits are taken from them.
    """
    rows = _behind(pool, holes(pool, rankings, added, depth))
    later = pl.col("retriever").is_in(list(added)) & (pl.col("rank") <= depth)
    unranked = pool.filter(pl.col("hits").list.len() == 0)
    counted = pl.concat([rankings.join(unranked, on=_KEY, how="anti"), rankings.filter(later)]).unique()
    hit = pl.struct("retriever", "rank", "score")
    hits = counted.join(rows, on=_KEY, how="semi").sort(*_KEY, "retriever").group_by(_KEY).agg(hits=hit)
    return _with_hits(rows, hits)


def with_positives(pool: pl.DataFrame, positives: pl.DataFrame) -> pl.DataFrame:
    """Return the `pool` table with missing known positives (query_id, doc_id) after each query's own pairs, unranked.

    Sorted by query and position.
    """
    new = positives.select(_KEY).join(pool, on=_KEY, how="anti").sort(_KEY)
    return _with_hits(_behind(pool, new), pool.select(*_KEY, "hits"))


def _behind(pool: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return pair and position of a pool's pairs, with new ones appended per query in their order."""
    last = pool.group_by("query_id").agg(last=pl.col("position").max())
    position = pl.col("last").fill_null(0) + pl.int_range(1, pl.len() + 1).over("query_id")
    behind = new.join(last, on="query_id", how="left", maintain_order="left").with_columns(position=position)
    return pl.concat([frame.select(*_KEY, pl.col("position").cast(pl.Int32)) for frame in (pool, behind)])


def _with_hits(rows: pl.DataFrame, hits: pl.DataFrame) -> pl.DataFrame:
    none = pl.lit([], TABLES["pool"]["hits"])
    complete = rows.join(hits, on=_KEY, how="left").with_columns(pl.col("hits").fill_null(none))
    columns = [pl.col(name).cast(kind) for name, kind in TABLES["pool"].items()]
    return complete.sort("query_id", "position").select(columns)
