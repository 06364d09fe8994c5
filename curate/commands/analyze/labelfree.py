"""What can be counted of a run's queries: words shared with their positives, best BM25 rank of one, length."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from curate.ask import build
from curate.core.records import Query
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context
from curate.retrieval.id_mapping import IdMapping, ranked
from curate.retrieval.retrievers.bm25 import Bm25, Config
from curate.retrieval.retrievers.tokens import cutter
from curate.stats import difficulty
from curate.stats.difficulty import Measured
from curate.system.corpus import TableCorpus

COMPUTED = "computed"
"""Named in place of a retriever where none of the pooled ones is a BM25."""


@dataclass(frozen=True)
class Counted:
    """The queries with a positive, in the order of the table, and by which BM25 they were measured."""

    queries: list[Measured]
    bm25: str
    """Name of a pooled retriever, or `computed`."""
    tokens: str
    """`words` or `bigrams`, as that BM25 has them."""
    depth: int
    """Documents that it ranked for a query, at most."""


def count(context: Context, pool: PoolConfig, qrels: pl.DataFrame) -> Counted:
    """Return what can be counted of every query with a positive."""
    name, config = _bm25(context, pool)
    cut = cutter(config.tokens, build.kit(context).cache)
    rankings = context.read("pool", "rankings").filter(pl.col("retriever") == name)
    asked = context.read("diversify", "queries").join(qrels, on="query_id", how="semi", maintain_order="left")
    queries = [Query(*row) for row in asked.select("query_id", "text").iter_rows()]
    if name == COMPUTED:
        rankings = _ranked(context, config, queries, pool.depth)
    ranks = difficulty.best_ranks(rankings, qrels)
    positives = dict(qrels.group_by("query_id").agg("doc_id").iter_rows())
    tokens = _tokens(context, set(qrels["doc_id"]), cut)
    found = [
        difficulty.measure(
            query.query_id,
            query.text,
            frozenset(cut(query.text)),
            [tokens[doc_id] for doc_id in positives[query.query_id]],
            ranks.get(query.query_id),
        )
        for query in queries
    ]
    return Counted(found, name, config.tokens, pool.depth)


def _bm25(context: Context, pool: PoolConfig) -> tuple[str, Config]:
    """Return the first pooled retriever that is a BM25, and its settings; the usual settings if there is none."""
    defined = context.definitions.get("retrievers", {})
    for name in pool.retrievers:
        settings = dict(defined.get(name, {}))
        if settings.pop("kind", name) == "bm25":
            return name, Config.model_validate(settings)
    return COMPUTED, Config()


def _ranked(context: Context, config: Config, queries: list[Query], depth: int) -> pl.DataFrame:
    corpus = TableCorpus(context.folder("diversify"))
    same = IdMapping(corpus.ids().to_frame("id").with_columns(now="id"))
    retriever = Bm25(COMPUTED, config, build.kit(context))
    return pl.concat(ranked(retriever, corpus, queries, depth, same, context.progress))


def _tokens(context: Context, wanted: set[str], cut: Callable[[str], list[str]]) -> Mapping[str, frozenset[str]]:
    """Return the tokens of the wanted documents; the corpus streams."""
    batches = TableCorpus(context.folder("diversify")).batches()
    return {doc.doc_id: frozenset(cut(doc.shown())) for batch in batches for doc in batch if doc.doc_id in wanted}
