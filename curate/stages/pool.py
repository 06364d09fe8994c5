"""Pool: several retrievers rank the corpus for every query; their best documents become the candidates.

In: queries, corpus of `diversify`, and the documents that it and `mask` merged or dropped. Out: `rankings` (every
retriever's list, before fusion) and `pool` (query, document, position, and the rank and score that each retriever
gave). A ranking of the raw corpus, from a run file, is followed: merged documents count as the kept one, dropped ones
are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import polars as pl
from pydantic import Field, field_validator

from curate.config import Json, Section
from curate.context import Context, Report, Stage
from curate.corpus import TableCorpus
from curate.errors import DataError
from curate.files import TableWriter, write_table
from curate.protocols import Corpus, Progress, Retriever
from curate.ranking import Method, choose, fuse, renamed
from curate.records import TABLES, Hit, Query
from curate.stages import build

BLOCK = 100
"""Queries whose hits are written at once."""
NAMED = 10
"""Queries without candidates that are named."""


class Config(Section):
    """Which retrievers, how deep, and how their rankings become one pool."""

    retrievers: tuple[str, ...] = Field(default=("bm25", "e5", "use"), min_length=1, description="their order is free")
    depth: int = Field(default=500, ge=1, description="documents that each retriever gives a query")
    size: int = Field(default=500, ge=1, description="documents in a query's pool, at most")
    method: Method = Field(default="equal-depth", description="`union` takes everything that was retrieved")

    @field_validator("retrievers")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(twice)} stands there twice; name each retriever once")
        return names


def pool(rankings: pl.DataFrame, size: int, method: Method) -> pl.DataFrame:
    """Return the `pool` table of a `rankings` table, sorted by query and position (from 1)."""
    chosen = choose(fuse(rankings), size, method)
    position = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("query_id")
    return chosen.select("query_id", "doc_id", position.alias("position"), "hits")


def run(config: Config, context: Context) -> Report:
    """Ask every retriever and choose the pools."""
    queries = [Query(*row) for row in context.read("diversify", "queries").select("query_id", "text").iter_rows()]
    corpus = TableCorpus(context.folder("diversify"))
    ids = known_ids(context, corpus)
    with TableWriter(context.out, "rankings") as writer:
        for retriever in _retrievers(config, context):
            for block in ranked(retriever, corpus, queries, config.depth, ids, context.progress):
                writer.extend(block)
    rankings = pl.read_parquet(context.out / "rankings.parquet").sort("query_id", "retriever", "rank")
    write_table(context.out, "rankings", rankings)
    chosen = pool(rankings, config.size, config.method)
    if chosen.is_empty():
        raise DataError(
            f"pool.retrievers: {', '.join(config.retrievers)} found none of {len(corpus):,} documents for any of "
            f"{len(queries):,} queries; check that queries and corpus belong together, or add a retriever such as e5"
        )
    write_table(context.out, "pool", chosen)
    pooled = set(chosen["query_id"])
    bare = [query.query_id for query in queries if query.query_id not in pooled]
    pairs = rankings.select("query_id", "doc_id").n_unique()
    facts: dict[str, Json] = {
        "retrieved_pairs": pairs,
        "queries_without_candidates": len(bare),
        "hits_merged": ids.merged,
        "hits_left_out": ids.left_out,
    }
    return Report(len(queries) + len(corpus), len(chosen), pairs - len(chosen), facts=facts, notes=_notes(bare))


@dataclass
class Ids:
    """What became of every document, and how often a ranking met one that is merged or dropped."""

    now: Mapping[str, str | None]
    """Document id -> the id that stands for it, None if its text was dropped; every id that ever was."""
    merged: int = 0
    left_out: int = 0

    def follow(self, retriever: str, query: Query, hits: Sequence[Hit], depth: int) -> list[Hit]:
        """Return the best `depth` hits under today's ids; DataError if a document never was in the corpus."""
        for hit in hits:
            if hit.doc_id not in self.now:
                raise DataError(
                    f"retrievers.{retriever}: found the document {hit.doc_id!r} in the ranking of query "
                    f"{query.query_id!r}, expected one of the corpus; give a run over the corpus that `ingest` read"
                )
            self.left_out += self.now[hit.doc_id] is None
            self.merged += self.now[hit.doc_id] not in (None, hit.doc_id)
        return renamed(hits, self.now, depth)


def ranked(
    retriever: Retriever, corpus: Corpus, queries: Sequence[Query], depth: int, ids: Ids, progress: Progress
) -> Iterator[pl.DataFrame]:
    """Yield one retriever's rankings as frames of the table `rankings`, some queries each."""
    found = zip(queries, retriever.search(corpus, queries, depth, progress), strict=True)
    followed = ((query, ids.follow(retriever.name, query, hits, depth)) for query, hits in found)
    while block := list(islice(followed, BLOCK)):
        yield _frame(retriever.name, block)


def _notes(bare: Sequence[str]) -> list[str]:
    """Return the note on queries without candidates, none if there is no such query."""
    if not bare:
        return []
    have = "query has" if len(bare) == 1 else "queries have"
    return [f"{len(bare):,} {have} no candidates: {', '.join(bare[:NAMED])}{', ...' if len(bare) > NAMED else ''}"]


def fingerprint(config: Config, context: Context) -> Json:
    """Return what identifies each retriever: settings, encoder revision, digest of a run file."""
    return {retriever.name: retriever.identity for retriever in _retrievers(config, context)}


def _retrievers(config: Config, context: Context) -> Iterator[Retriever]:
    return (build.retriever(context, name) for name in config.retrievers)


def known_ids(context: Context, corpus: Corpus) -> Ids:
    """Return what `mask` and `diversify` made of the documents' ids; holds ids, no texts."""
    dropped = pl.concat([context.read(stage, "dropped") for stage in ("mask", "diversify")])
    now: dict[str, str | None] = dict.fromkeys(dropped.filter(pl.col("table") == "corpus")["id"])
    now |= {doc.doc_id: doc.doc_id for batch in corpus.batches() for doc in batch}
    aliases = context.read("mask", "aliases").filter(pl.col("table") == "corpus")
    return Ids(now | {old: now[kept] for old, kept in aliases.select("old_id", "kept_id").iter_rows()})


def _frame(name: str, block: Sequence[tuple[Query, Sequence[Hit]]]) -> pl.DataFrame:
    rows = [(query.query_id, name, hit.doc_id, hit.rank, hit.score) for query, hits in block for hit in hits]
    return pl.DataFrame(rows, schema=TABLES["rankings"], orient="row")


STAGE = Stage("pool", Config, ("mask", "diversify"), run, fingerprint, head=())
