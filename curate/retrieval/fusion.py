"""Rank fusion of several retrievers into a pool, and its growth by later systems and known positives.

Queries, retrievers and documents are numbers: their indexes among the sorted names, so that sorting by number sorts by
name. Fusing a million hits takes half a second and 400 MB; with more, callers fuse blocks of queries.
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
"""Sums of reciprocal ranks are rounded to multiples of 1 / SCALE, so that sums equal but for rounding errors tie."""

Method = Literal["equal-depth", "rrf", "round-robin", "union"]


@dataclass(frozen=True)
class RankedLists:
    """Hits of a block of queries, one row per hit, as arrays of equal length; no retriever repeats a document."""

    queries: Numbers
    retrievers: Numbers
    docs: Numbers
    ranks: Numbers
    """From 1."""
    scores: Scores


@dataclass(frozen=True)
class Pairs:
    """Retrieved query-document pairs as arrays of equal length, grouped by query, best first by fusion.

    `order` has one entry per hit instead.
    """

    queries: Numbers
    docs: Numbers
    best: Numbers
    """Best rank that any retriever gave the pair."""
    first: Numbers
    """Retriever that gave the pair its best rank, the first by name of several."""
    starts: Numbers
    counts: Numbers
    """Start of a pair's hits in `order`, and their number."""
    order: Numbers
    """Row numbers of the fused `RankedLists`, sorted by query, document and retriever."""


def fuse(lists: RankedLists) -> Pairs:
    """Return the retrieved pairs sorted by query, then by reciprocal-rank fusion, best first.

    A document's fusion score is the sum of 1 / (60 + rank) over the retrievers that returned it. Ties are by document.
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
    """Return the rows of `pairs` that form each query's pool of at most `size` documents, in the pool's order.

    `equal-depth`: the union of every retriever's top d, as in TREC pooling, for the largest d at which it has at most
    `size` documents; the rest of `size` is filled up by fusion. `rrf`: the first `size` of the fusion. `union`: all
    retrieved documents, without a limit. These three are in the order of the fusion. `round-robin`: retrievers take
    turns in the order of their names, and each adds its document of rank n in its n-th turn unless the pool has it;
    this is the order by best rank, then by the first retriever that gave the document this rank.
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
    """Return one retriever's hits as `RankedLists`, with ranks from 1; rows are grouped by query, best first."""
    return RankedLists(queries, np.full(len(queries), retriever), docs, places(queries) + 1, scores)


def together(parts: Sequence[RankedLists]) -> RankedLists:
    """Return the lists of several retrievers as one, sorted by query, then in the order of `parts`, then by rank.

    Each part has the lists of one retriever, sorted by query.
    """
    columns = [np.concatenate([getattr(ranked, field.name) for ranked in parts]) for field in fields(RankedLists)]
    order = np.argsort(columns[0], kind="stable")
    return RankedLists(*(column[order] for column in columns))


def runs(starts: Numbers, counts: Numbers) -> Numbers:
    """Return the concatenated ranges start, start + 1, ..., start + count - 1."""
    ends = np.cumsum(counts)
    numbers: Numbers = np.repeat(starts - (ends - counts), counts) + np.arange(counts.sum())
    return numbers


def hits(pairs: Pairs, rows: Numbers, lists: RankedLists, names: pl.Series) -> pl.Series:
    """Return the hits of the pairs in `rows` as a list<struct> column: retriever, rank, score, sorted by retriever.

    `lists` are the lists that `pairs` was fused from, `names` the sorted names of the retrievers.
    """
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
    """Sorted names of queries, retrievers and documents; `RankedLists` and `Pairs` contain indexes of them."""

    queries: pl.Series
    retrievers: pl.Series
    docs: pl.Series

    def rankings(self, lists: RankedLists) -> pl.DataFrame:
        """Return the hits as rows of the table `rankings`, in their order."""
        queries, docs = self.queries.gather(lists.queries), self.docs.gather(lists.docs)
        return _table("rankings", queries, self.retrievers.gather(lists.retrievers), docs, lists.ranks, lists.scores)

    def chosen(self, lists: RankedLists, size: int, method: Method) -> tuple[pl.DataFrame, int]:
        """Return the pools of a block of queries, as rows of the table `pool`, and the number of retrieved pairs.

        `size` and `method` as in `choose`.
        """
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
    """Return the unjudged documents (holes) that added systems rank within `depth` and that the pool lacks.

    Columns: query_id, doc_id, `best` (rank), `systems` (sorted names); sorted by query, best rank, document.
    """
    new = rankings.filter(pl.col("retriever").is_in(list(added)) & (pl.col("rank") <= depth))
    unjudged = new.join(pool, on=_KEY, how="anti").group_by(_KEY)
    return unjudged.agg(best=pl.col("rank").min(), systems=pl.col("retriever").sort()).sort(
        "query_id", "best", "doc_id"
    )


def grown(pool: pl.DataFrame, rankings: pl.DataFrame, added: Iterable[str], depth: int) -> pl.DataFrame:
    """Return the `pool` table with the unjudged documents of the added systems appended per query (see `holes`).

    `rankings` are those of the pool's retrievers and of the added systems; the hits of all pairs are built anew from
    them. A pair that had no hits only gets those of the added systems.
    """
    rows = _behind(pool, holes(pool, rankings, added, depth))
    later = pl.col("retriever").is_in(list(added)) & (pl.col("rank") <= depth)
    unranked = pool.filter(pl.col("hits").list.len() == 0)
    counted = pl.concat([rankings.join(unranked, on=_KEY, how="anti"), rankings.filter(later)]).unique()
    hit = pl.struct("retriever", "rank", "score")
    hits = counted.join(rows, on=_KEY, how="semi").sort(*_KEY, "retriever").group_by(_KEY).agg(hits=hit)
    return _with_hits(rows, hits)


def with_positives(pool: pl.DataFrame, positives: pl.DataFrame) -> pl.DataFrame:
    """Return the `pool` table with known positives (query_id, doc_id) that it lacks appended per query, without hits.

    Sorted by query and position.
    """
    new = positives.select(_KEY).join(pool, on=_KEY, how="anti").sort(_KEY)
    return _with_hits(_behind(pool, new), pool.select(*_KEY, "hits"))


def _behind(pool: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, doc_id and position of a pool's pairs, with the pairs of `new` appended per query, in order."""
    last = pool.group_by("query_id").agg(last=pl.col("position").max())
    position = pl.col("last").fill_null(0) + pl.int_range(1, pl.len() + 1).over("query_id")
    behind = new.join(last, on="query_id", how="left", maintain_order="left").with_columns(position=position)
    return pl.concat([frame.select(*_KEY, pl.col("position").cast(pl.Int32)) for frame in (pool, behind)])


def _with_hits(rows: pl.DataFrame, hits: pl.DataFrame) -> pl.DataFrame:
    none = pl.lit([], TABLES["pool"]["hits"])
    complete = rows.join(hits, on=_KEY, how="left").with_columns(pl.col("hits").fill_null(none))
    columns = [pl.col(name).cast(kind) for name, kind in TABLES["pool"].items()]
    return complete.sort("query_id", "position").select(columns)
