"""The queries that have a pool: all that `diversify` kept, or so many of them as `pool.queries` draws."""

import polars as pl

from curate.core.config import check
from curate.core.sampling import shuffled
from curate.stages.configs import PoolConfig
from curate.stages.context import Context


def pooled(context: Context) -> pl.DataFrame:
    """Return the rows of `queries` that have a pool, in their order; those without one are judged by nobody."""
    return drawn(context.read("diversify", "queries"), settings(context).queries, context.seed)


def settings(context: Context) -> PoolConfig:
    """Return the settings of the pools, for stages that read them."""
    return check(PoolConfig, context.settings.get("pool") or {}, "pool")


def takes_positives(config: PoolConfig, context: Context) -> bool:
    """Say whether known positives join the pools; in an audit, which asks what retrieval finds of them, they do not."""
    return config.legacy and "audit" not in context.stages


def drawn(queries: pl.DataFrame, size: int | None, seed: int) -> pl.DataFrame:
    """Return so many rows, drawn by seed, in their order; all if there are no more, or without a size."""
    if size is None or size >= len(queries):
        return queries
    chosen = shuffled(sorted(queries["query_id"]), seed, "pool", "queries")[:size]
    return queries.filter(pl.col("query_id").is_in(chosen))
