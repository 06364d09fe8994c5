"""The queries that have a pool: all that `diversify` kept, or so many of them as `pool.queries` draws."""

import polars as pl

from curate.core.config import check
from curate.core.sampling import shuffled
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context


def pooled(context: Context) -> pl.DataFrame:
    """Return the rows of `queries` that have a pool, in their order; those without one are judged by nobody."""
    size = check(PoolConfig, context.settings.get("pool") or {}, "pool").queries
    return drawn(context.read("diversify", "queries"), size, context.seed)


def drawn(queries: pl.DataFrame, size: int | None, seed: int) -> pl.DataFrame:
    """Return so many rows, drawn by seed, in their order; all if there are no more, or without a size."""
    if size is None or size >= len(queries):
        return queries
    chosen = shuffled(sorted(queries["query_id"]), seed, "pool", "queries")[:size]
    return queries.filter(pl.col("query_id").is_in(chosen))
