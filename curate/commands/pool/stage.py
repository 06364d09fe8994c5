"""Pool: several retrievers rank the corpus for every query; their best documents become the candidates.

In: queries, corpus of `diversify`, and the documents that it and `mask` merged or dropped. Out: `rankings` (every
retriever's list, before fusion) and `pool` (query, document, position, and the rank and score that each retriever
gave). A ranking of the raw corpus, from a run file, is followed: merged documents count as the kept one, dropped ones
are left out. In a run that `curate extend` made, pool and rankings are those of the earlier version, and only the
systems that came later are asked: their best documents join the pool, so no pair of it is lost.
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
from curate.core.records import Query
from curate.pipeline import legacy, parent
from curate.pipeline.configs import PoolConfig as Config
from curate.pipeline.facts import drawn, known_ids
from curate.pipeline.parent import ParentVersion
from curate.pipeline.stage import Context, Report, Stage
from curate.retrieval import fusion
from curate.retrieval.fusion import Method, Names, RankedLists, grown, with_positives
from curate.retrieval.id_mapping import IdMapping, MappedHits, followed, ranked
from curate.retrieval.ranking import Numbers
from curate.system.corpus import TableCorpus
from curate.system.files import TableWriter, frame, write_table

HITS = 2**20
"""Hits that are fused at once, unless one query has more: at most some 400 MB."""
NAMED = 10
"""Queries without candidates that are named."""


def pool(rankings: pl.DataFrame, size: int, method: Method) -> pl.DataFrame:
    """Return the `pool` table of a `rankings` table, with rows in any order; sorted by query and position."""
    columns = [rankings[name] for name in ("query_id", "retriever", "doc_id")]
    queries, retrievers, docs = (column.rank("dense").to_numpy().astype(np.int64) - 1 for column in columns)
    ranks = rankings["rank"].to_numpy().astype(np.int64)
    lists = RankedLists(queries, retrievers, docs, ranks, rankings["score"].to_numpy())
    return Names(*(column.unique().sort() for column in columns)).chosen(lists, size, method)[0]


def run(config: Config, context: Context) -> Report:
    """Ask every retriever and choose the pools."""
    kept = context.read("diversify", "queries")
    chosen = drawn(kept, config.queries, context.seed)
    queries = [Query(*row) for row in chosen.select("query_id", "text").iter_rows()]
    if not queries:
        raise DataError(
            "pool: found no query; have `curate queries` write some, and name its queries.jsonl in ingest.queries.path "
            "of another pipeline"
        )
    corpus = TableCorpus(context.folder("diversify"))
    ids = known_ids(context, corpus)
    positives = _positives(config, context, chosen)
    before = ParentVersion.load(context.run)
    if before is None:
        retrievers = _retrievers(config, context)
        found = write(config, retrievers, corpus, queries, ids, context.out, context.progress, positives)
    else:
        found = _grow(config, before, corpus, queries, ids, context, positives)
    if not found.pairs:
        raise DataError(
            f"pool.retrievers: {', '.join(config.retrievers)} found none of {len(corpus):,} documents for any of "
            f"{len(queries):,} queries; check that queries and corpus belong together, or add a retriever such as e5"
        )
    bare = [query.query_id for query in queries if query.query_id not in found.queries]
    facts: dict[str, Json] = {
        "retrieved_pairs": found.pairs,
        "queries_without_candidates": len(bare),
        **({"queries_not_drawn": len(kept) - len(chosen)} if len(kept) > len(chosen) else {}),
        "hits_merged": ids.merged,
        "hits_left_out": ids.left_out,
        **({"indexes": found.facts} if found.facts else {}),
    }
    if len(positives):
        facts["legacy"] = {"positives": len(positives), "joined": found.joined}
    notes = [*found.notes, *_notes(bare)]
    dropped = found.pairs - (found.rows - found.joined)
    return Report(len(queries) + len(corpus), found.rows, dropped, facts=facts, notes=notes)


def _positives(config: Config, context: Context, queries: pl.DataFrame) -> pl.DataFrame:
    """Return the known positives that join the pools of these queries, sorted; none unless `pool.legacy` is set."""
    if not legacy.joins(config, context):
        return frame("qrels").select("query_id", "doc_id")
    known = context.legacy_positives().select("query_id", "doc_id").sort("query_id", "doc_id")
    return known.join(queries, on="query_id", how="semi", maintain_order="left")


@dataclass
class PoolTables:
    """What the tables of pools hold."""

    rows: int = 0
    pairs: int = 0
    """Retrieved pairs, in a pool or not."""
    joined: int = 0
    """Pairs that are in a pool as known positives alone."""
    queries: set[str] = field(default_factory=set)
    """Those with a pool."""
    facts: dict[str, Json] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Notes of the retrievers on their searches."""


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

    Known `positives` (query_id, doc_id) that are not chosen join the pool without a rank.
    """
    written = PoolTables()
    with TemporaryDirectory(prefix=".lists-", dir=out) as beside:
        found: dict[str, _Kept] = {}
        for number, retriever in enumerate(retrievers):
            blocks = followed(retriever, corpus, queries, config.depth, ids, progress)
            found[retriever.name] = _Kept(Path(beside, str(number)), blocks)
            if facts := getattr(retriever, "facts", None):
                written.facts[retriever.name] = facts
            written.notes += getattr(retriever, "notes", ())
        asked = pl.Series([query.query_id for query in queries], dtype=pl.String)
        names = Names(asked.sort(), pl.Series(sorted(found)), ids.names)
        with TableWriter(out, "rankings") as rankings, TableWriter(out, "pool") as pools:
            label = StepLabel("choosing pools", "queries")
            progress(label, len(queries), 0)
            done = 0
            for last, lists in _blocks([found[name] for name in names.retrievers], asked.arg_sort().to_numpy()):
                rankings.extend(names.rankings(lists))
                chosen, pairs = names.chosen(lists, config.size, config.method)
                if positives is not None:
                    here = names.queries[done:last].implode()
                    whole = with_positives(chosen, positives.filter(pl.col("query_id").is_in(here)))
                    written.joined += len(whole) - len(chosen)
                    chosen, done = whole, last
                pools.extend(chosen)
                written.pairs += pairs
                written.queries.update(chosen["query_id"].unique())
                progress(label, len(queries), last)
            progress(label, len(queries), len(queries))
        written.rows = pools.rows
    return written


def _grow(
    config: Config,
    before: ParentVersion,
    corpus: Corpus,
    queries: Sequence[Query],
    ids: IdMapping,
    context: Context,
    positives: pl.DataFrame,
) -> PoolTables:
    """Write the rankings and the pool of an earlier version with those of the systems that came later."""
    written, depth = PoolTables(), max(config.depth, before.depth)
    parts = [parent.table(context.run, "rankings")]
    for name in before.added:
        each = build.retriever(context, name)
        found = [*ranked(each, corpus, queries, depth, ids, context.progress)]
        if not sum(map(len, found)):
            raise DataError(
                f"retrievers.{name}: found no document for any of {len(queries):,} queries of the run; give a ranking "
                "whose query ids are the run's"
            )
        parts += found
        if facts := getattr(each, "facts", None):
            written.facts[name] = facts
        written.notes += getattr(each, "notes", ())
    rankings, old = pl.concat(parts).sort("query_id", "retriever", "rank"), parent.table(context.run, "pool")
    later = grown(old, rankings, before.added, before.depth)
    pool = with_positives(later, positives)
    write_table(context.out, "rankings", rankings)
    write_table(context.out, "pool", pool)
    written.rows, written.pairs = len(pool), rankings.select("query_id", "doc_id").n_unique()
    written.queries.update(pool["query_id"].unique())
    written.joined = int((pool["hits"].list.len() == 0).sum())
    written.notes.append(
        f"{len(later) - len(old):,} documents that {', '.join(before.added)} rank within {before.depth} joined the "
        f"{len(old):,} pairs of version {before.version - 1}"
    )
    return written


class _Kept:
    """What one retriever found, in files, so that memory does not grow with the queries."""

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

    def lists(self, asked: Numbers, first: int, number: int) -> RankedLists:
        """Return the lists of the queries `asked`, which are numbered from `first` on, by the retriever `number`."""
        counts = self.counts[asked]
        rows = fusion.runs(self._ends[asked] - counts, counts)
        queries = np.repeat(np.arange(first, first + len(asked)), counts)
        return fusion.lists(queries, number, self._docs[rows], self._scores[rows])


def _mapped(path: Path, kind: type[Any]) -> npt.NDArray[Any]:
    return np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, dtype=kind)


def _blocks(kept: Sequence[_Kept], order: Numbers) -> Iterator[tuple[int, RankedLists]]:
    """Yield the lists of all retrievers in the order of the queries, then of the retrievers, some queries at once.

    The number before them is that of the queries so far.
    """
    ends = np.cumsum(sum(each.counts[order] for each in kept))
    first = 0
    while first < len(order):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + HITS, side="right")))
        parts = [each.lists(order[first:last], first, number) for number, each in enumerate(kept)]
        yield last, fusion.together(parts)
        first = last


def _notes(bare: Sequence[str]) -> list[str]:
    """Return the note on queries without candidates, none if there is no such query."""
    if not bare:
        return []
    have = "query has" if len(bare) == 1 else "queries have"
    return [f"{len(bare):,} {have} no candidates: {', '.join(bare[:NAMED])}{', ...' if len(bare) > NAMED else ''}"]


def fingerprint(config: Config, context: Context) -> Json:
    """Return what identifies each retriever: settings, encoder revision, digest of a run file."""
    before = ParentVersion.load(context.run)
    asked = _retrievers(config, context) if before is None else (build.retriever(context, n) for n in before.added)
    chosen: dict[str, Json] = {} if config.queries is None else {"pool.queries": context.seed}
    chosen |= {"pool.legacy": context.relevant_from} if legacy.joins(config, context) else {}
    return {**{retriever.name: retriever.identity for retriever in asked}, **chosen, **parent.identity(context.run)}


def _retrievers(config: Config, context: Context) -> Iterator[Retriever]:
    return (build.retriever(context, name) for name in config.retrievers)


STAGE = Stage("pool", Config, ("mask", "diversify"), run, fingerprint, head=())
