"""The stage `pool`: several retrievers rank the corpus for every query, and their best documents form its pool.

In: queries and corpus of `diversify`, and the documents that it and `mask` merged or dropped. Out: `rankings` (every
retriever's list before fusion) and `pool` (query, document, position, rank and score by each retriever). A run file may
rank the raw corpus: merged documents then count as the retained one, and dropped documents are left out. In a run
written by `curate extend`, pool and rankings are those of the earlier version. Only the added systems search, and their
best documents are appended to the pool.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.ask import build
from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.progress import StepLabel
from curate.core.protocols import Corpus, Progress, Retriever
from curate.core.records import FILTERED, Query
from curate.pipeline import legacy, parent
from curate.pipeline.configs import PoolConfig as Config
from curate.pipeline.facts import drawn, known_ids
from curate.pipeline.parent import ParentVersion
from curate.pipeline.stage import Context, Report, Stage
from curate.retrieval import fusion
from curate.retrieval.fusion import Method, Names, RankedLists, grown, with_positives
from curate.retrieval.id_mapping import IdMapping, MappedHits, followed, ranked
from curate.retrieval.ranking import Numbers
from curate.system.files import TableWriter, frame, write_table

HITS = 2**20
"""Maximum number of hits fused at once, unless one query has more; they need about 400 MB."""
NAMED = 10
"""Maximum number of queries without candidates that a note names."""


def pool(rankings: pl.DataFrame, size: int, method: Method) -> pl.DataFrame:
    """Return the `pool` table, sorted by query and position, of a `rankings` table in any order.

    `size` and `method` as in `fusion.choose`.
    """
    columns = [rankings[name] for name in ("query_id", "retriever", "doc_id")]
    queries, retrievers, docs = (column.rank("dense").to_numpy().astype(np.int64) - 1 for column in columns)
    ranks = rankings["rank"].to_numpy().astype(np.int64)
    lists = RankedLists(queries, retrievers, docs, ranks, rankings["score"].to_numpy())
    return Names(*(column.unique().sort() for column in columns)).chosen(lists, size, method)[0]


def run(config: Config, context: Context) -> Report:
    """Run the stage: search with every retriever, then write rankings and pools."""
    query_table = context.queries
    chosen = drawn(query_table, config.queries, context.seed)
    queries = [Query(*row) for row in chosen.select("query_id", "text").iter_rows()]
    if not queries:
        raise DataError(
            "pool: found no query; have `curate queries` write some, and name its queries.jsonl in ingest.queries.path "
            "of another pipeline"
        )
    corpus = context.corpus
    ids = known_ids(context, corpus)
    positives = _positives(config, context, chosen)
    parent_version = ParentVersion.load(context.run)
    if parent_version is None:
        retrievers = (build.retriever(context, name) for name in config.retrievers)
        tables = write(config, retrievers, corpus, queries, ids, context.out, context.progress, positives)
    else:
        tables = _grow(config, parent_version, corpus, queries, ids, context, positives)
    if not tables.pairs:
        raise DataError(
            f"pool.retrievers: {', '.join(config.retrievers)} found none of {len(corpus):,} documents for any of "
            f"{len(queries):,} queries; check that queries and corpus belong together, or add a retriever such as e5"
        )
    no_candidates = [query.query_id for query in queries if query.query_id not in tables.queries]
    facts: dict[str, Json] = {
        "retrieved_pairs": tables.pairs,
        "queries_without_candidates": len(no_candidates),
        **({"queries_not_drawn": len(query_table) - len(chosen)} if len(query_table) > len(chosen) else {}),
        "hits_merged": ids.merged,
        "hits_left_out": ids.left_out,
        **({"indexes": tables.facts} if tables.facts else {}),
    }
    if len(positives):
        facts["legacy"] = {"positives": len(positives), "joined": tables.joined}
    notes = [*tables.notes]
    if no_candidates:
        have = "query has" if len(no_candidates) == 1 else "queries have"
        ellipsis = ", ..." if len(no_candidates) > NAMED else ""
        notes.append(f"{len(no_candidates):,} {have} no candidates: {', '.join(no_candidates[:NAMED])}{ellipsis}")
    dropped = tables.pairs - (tables.rows - tables.joined)
    return Report(len(queries) + len(corpus), tables.rows, dropped, facts=facts, notes=notes)


def _positives(config: Config, context: Context, queries: pl.DataFrame) -> pl.DataFrame:
    """Return the known positives (query_id, doc_id; sorted) to add to the pools; empty unless `pool.legacy` is set."""
    if not legacy.joins(config, context):
        return frame("qrels").select("query_id", "doc_id")
    positives = context.legacy_positives().select("query_id", "doc_id").sort("query_id", "doc_id")
    return positives.join(queries, on="query_id", how="semi", maintain_order="left")


@dataclass
class PoolTables:
    """Counts, facts and notes on the written tables `pool` and `rankings`; `rows` are those of `pool`."""

    rows: int = 0
    pairs: int = 0
    """Number of retrieved pairs, in a pool or not."""
    joined: int = 0
    """Number of pairs that are in a pool only because they are known positives."""
    queries: set[str] = field(default_factory=set)
    """Queries that have a pool."""
    facts: dict[str, Json] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Notes of the retrievers on their searches."""

    def add_retriever(self, retriever: Retriever) -> None:
        """Copy the `facts` and `notes` of a retriever, if it has them; call it after the search, which sets them."""
        if facts := getattr(retriever, "facts", None):
            self.facts[retriever.name] = facts
        self.notes += getattr(retriever, "notes", ())


def write(
    config: Config,
    retrievers: Iterable[Retriever],
    corpus: Corpus,
    queries: Sequence[Query],
    ids: IdMapping,
    out: Path,
    progress: Progress,
    positives: pl.DataFrame | None = None,
) -> PoolTables:
    """Run the retrievers one after the other, then write `rankings` and `pool` in blocks of queries.

    Known `positives` (query_id, doc_id) that are not in a query's pool are appended to it, without a rank.
    """
    written = PoolTables()
    with TemporaryDirectory(prefix=".lists-", dir=out) as scratch:
        hits_by_retriever: dict[str, _StoredHits] = {}
        for number, retriever in enumerate(retrievers):
            blocks = followed(retriever, corpus, queries, config.depth, ids, progress)
            hits_by_retriever[retriever.name] = _StoredHits(Path(scratch, str(number)), blocks)
            written.add_retriever(retriever)
        query_ids = pl.Series([query.query_id for query in queries], dtype=pl.String)
        names = Names(query_ids.sort(), pl.Series(sorted(hits_by_retriever)), ids.names)
        with TableWriter(out, "rankings") as rankings, TableWriter(out, "pool") as pools:
            label = StepLabel("choosing pools", "queries")
            progress(label, len(queries), 0)
            start = 0
            for stop, lists in _query_blocks(
                [hits_by_retriever[name] for name in names.retrievers], query_ids.arg_sort().to_numpy()
            ):
                rankings.extend(names.rankings(lists))
                chosen, pairs = names.chosen(lists, config.size, config.method)
                if positives is not None:
                    block_queries = names.queries[start:stop].implode()
                    with_joined = with_positives(chosen, positives.filter(pl.col("query_id").is_in(block_queries)))
                    written.joined += len(with_joined) - len(chosen)
                    chosen, start = with_joined, stop
                pools.extend(chosen)
                written.pairs += pairs
                written.queries.update(chosen["query_id"].unique())
                progress(label, len(queries), stop)
            progress(label, len(queries), len(queries))
        written.rows = pools.rows
    return written


def _grow(
    config: Config,
    earlier: ParentVersion,
    corpus: Corpus,
    queries: Sequence[Query],
    ids: IdMapping,
    context: Context,
    positives: pl.DataFrame,
) -> PoolTables:
    """Write rankings and pool of the earlier version, extended by the best documents of the added systems."""
    written, depth = PoolTables(), max(config.depth, earlier.depth)
    lists = [parent.table(context.run, "rankings")]
    for name in earlier.added:
        retriever = build.retriever(context, name)
        retriever_lists = [*ranked(retriever, corpus, queries, depth, ids, context.progress)]
        if not sum(map(len, retriever_lists)):
            raise DataError(
                f"retrievers.{name}: found no document for any of {len(queries):,} queries of the run; give a ranking "
                "whose query ids are the run's"
            )
        lists += retriever_lists
        written.add_retriever(retriever)
    rankings, old = pl.concat(lists).sort("query_id", "retriever", "rank"), parent.table(context.run, "pool")
    later = grown(old, rankings, earlier.added, earlier.depth)
    pool = with_positives(later, positives)
    write_table(context.out, "rankings", rankings)
    write_table(context.out, "pool", pool)
    written.rows, written.pairs = len(pool), rankings.select("query_id", "doc_id").n_unique()
    written.queries.update(pool["query_id"].unique())
    written.joined = int((pool["hits"].list.len() == 0).sum())
    written.notes.append(
        f"{len(later) - len(old):,} documents that {', '.join(earlier.added)} rank within {earlier.depth} joined the "
        f"{len(old):,} pairs of version {earlier.version - 1}"
    )
    return written


class _StoredHits:
    """Hits of one retriever, stored in files so that memory does not grow with the number of queries."""

    def __init__(self, path: Path, blocks: Iterator[MappedHits]) -> None:
        counts = [np.empty(0, dtype=np.int64)]
        with path.with_suffix(".docs").open("wb") as docs, path.with_suffix(".scores").open("wb") as scores:
            for block in blocks:
                docs.write(block.docs.data)
                scores.write(block.scores.data)
                counts.append(block.counts)
        self.counts = np.concatenate(counts)
        self._ends = np.cumsum(self.counts)
        self._docs, self._scores = _mapped(Path(docs.name), np.int64), _mapped(Path(scores.name), np.float64)

    def lists(self, indexes: Numbers, first: int, retriever: int) -> RankedLists:
        """Return the lists of the queries at `indexes`, numbered from `first` in this order."""
        counts = self.counts[indexes]
        rows = fusion.runs(self._ends[indexes] - counts, counts)
        queries = np.repeat(np.arange(first, first + len(indexes)), counts)
        return fusion.lists(queries, retriever, self._docs[rows], self._scores[rows])


def _mapped(path: Path, kind: type[Any]) -> npt.NDArray[Any]:
    return np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, dtype=kind)


def _query_blocks(hits_by_retriever: Sequence[_StoredHits], query_order: Numbers) -> Iterator[tuple[int, RankedLists]]:
    """Yield (number of queries so far, lists of all retrievers) for blocks of whole queries.

    Lists are sorted by query and retriever. A block has at most `HITS` hits, or one query.
    """
    hits_up_to = np.cumsum(sum(hits.counts[query_order] for hits in hits_by_retriever))
    start = 0
    while start < len(query_order):
        hits_before = hits_up_to[start - 1] if start else 0
        # at least one query, else a query with more than HITS hits would never be passed
        stop = max(start + 1, int(np.searchsorted(hits_up_to, hits_before + HITS, side="right")))
        lists = [hits.lists(query_order[start:stop], start, index) for index, hits in enumerate(hits_by_retriever)]
        yield stop, fusion.together(lists)
        start = stop


def fingerprint(config: Config, context: Context) -> Json:
    """Return retriever -> identity (settings, encoder revision, digest of a run file), and other outside inputs."""
    parent_version = ParentVersion.load(context.run)
    names = config.retrievers if parent_version is None else parent_version.added
    retrievers = (build.retriever(context, name) for name in names)
    chosen: dict[str, Json] = {} if config.queries is None else {"pool.queries": context.seed}
    chosen |= {"pool.legacy": context.relevant_from} if legacy.joins(config, context) else {}
    return {
        **{retriever.name: retriever.identity for retriever in retrievers},
        **chosen,
        **parent.identity(context.run),
    }


STAGE = Stage("pool", Config, ("mask", FILTERED), run, fingerprint, head=())
