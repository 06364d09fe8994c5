"""The queries with a pool: all that `diversify` kept, or a sample of `pool.queries`."""

import polars as pl

from curate.core.config import check
from curate.core.sampling import shuffled
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context
from curate.retrieval.id_mapping import IdMapping
from curate.system.corpus import TableCorpus


def pooled(context: Context) -> pl.DataFrame:
    """Return the rows of `queries` with a pool, in their order; others are not judged."""
    size = check(PoolConfig, context.settings.get("pool") or {}, "pool").queries
    return drawn(context.read("diversify", "queries"), size, context.seed)


def drawn(queries: pl.DataFrame, size: int | None, seed: int) -> pl.DataFrame:
    """Return a random sample of `size` rows, in their order; all if there are no more, or without a size."""
    if size is None or size >= len(queries):
        return queries
    chosen = shuffled(sorted(queries["query_id"]), seed, "pool", "queries")[:size]
    return queries.filter(pl.col("query_id").is_in(chosen))


def known_ids(context: Context, corpus: TableCorpus) -> IdMapping:
    """Return the mapping of the documents' ids by `mask` and `diversify`."""
    tables = [context.read(stage, "dropped") for stage in ("mask", "diversify")]
    dropped = pl.concat(tables).filter(pl.col("table") == "corpus").select("id", now=pl.lit(None, pl.String))
    surviving = corpus.ids().to_frame("id").with_columns(now="id")
    now = pl.concat([surviving, dropped]).unique("id", keep="first")
    aliases = context.read("mask", "aliases").filter(pl.col("table") == "corpus").select(id="old_id", kept="kept_id")
    moved = aliases.join(now, left_on="kept", right_on="id").select("id", "now")
    return IdMapping(pl.concat([moved, now]).unique("id", keep="first", maintain_order=True))
