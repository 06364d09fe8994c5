"""Growth of a pool by later systems and by known positives; existing pairs keep their positions.

A pair added as a known positive has no hits: it is outside of every depth and of all figures on retrievers.
"""

from collections.abc import Iterable

import polars as pl

from curate.core.records import TABLES

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
    """Return the `pool` table with the known positives (query_id, doc_id) that it lacks behind its own pairs, unranked.

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
