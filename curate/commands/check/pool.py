"""Quality of a run's pool: unique contributions of retrievers, saturation, missed documents, coverage of run files.

Computed from the tables of a finished run; nothing is sent. The figures are also written to `checks/pool.json` of the
run folder.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import polars as pl

from curate.commands.check import missed
from curate.commands.check.missed import Below, Capture
from curate.core.errors import UserError
from curate.core.figures import Record, figure
from curate.core.protocols import PaidProgress, quiet
from curate.core.records import FILTERED
from curate.panel.voting import PAIR
from curate.pipeline.configs import PoolConfig
from curate.pipeline.facts import heuristic, label_stage, made_from
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.runs import rankings
from curate.runs.checks import CHECKS
from curate.runs.rankings import Band, Covered, Late, LeftOut
from curate.system.corpus import TableCorpus


class PoolDepth(Record, schema_name="depth"):
    """Depth to which the pool contains the rankings of all retrievers, over queries."""

    low: int = figure("least of all queries")
    median: float = figure("median of all queries", digits=1)
    high: int = figure("greatest of all queries")


class Deepen(Record):
    """Settings that double the pool."""

    size: int = figure("pool.size")
    depth: int = figure("pool.depth")


class PoolFigures(Record, schema_name="pool"):
    """What each retriever contributes to the pool, what the pool lacks, and how far systems are judged."""

    made_from: str | None = figure(
        "identifies the tables that it saw, so that the figures are not shown as those of others"
    )
    labels: str = figure("stage whose labels count")
    heuristic: bool = figure("whether heuristics alone judged")
    queries: int = figure("queries with a pool")
    queries_with_a_relevant_document: int = figure("queries on which nDCG is measured")
    relevant: int = figure("relevant pairs")
    beyond_depth: int = figure("relevant pairs below the depth")
    depth: PoolDepth = figure("rank down to which the pool holds all rankings, over queries")
    leave_one_out: tuple[LeftOut, ...] = figure("a row per retriever")
    capture: Capture | None = figure(
        "capture-recapture estimates; null with one retriever, or without a relevant document"
    )
    below: tuple[Below, ...] = figure("estimates from graded samples outside the pool")
    by_position: tuple[Band, ...] = figure("relevant pairs by position in the pool")
    cumulated: tuple[int, ...] = figure("relevant pairs up to each position")
    unsaturated: tuple[Late, ...] = figure(
        "queries that still yield relevant documents in the last fifth of their pool"
    )
    whole_corpus_in_the_pool: int = figure("more of them whose pool is the whole corpus")
    deepen: Deepen | None = figure("settings that deepen the pool")
    systems: tuple[Covered, ...] = figure("coverage by verdicts, a row per system")


def check(
    run: Path,
    run_files: Sequence[Path] = (),
    *,
    subset: str | None = None,
    split: str | None = None,
    below: Sequence[Path] = (),
    depth: int | None = None,
    progress: PaidProgress = quiet,
) -> PoolFigures:
    """Return all figures of a run's pool, and write them to `checks/pool.json`.

    `run_files` are rankings of other systems, `below` files of graded random pairs from outside the pool. `depth` is
    the rank down to which a retriever counts as having found a document, by default that of `rankings.depths`.
    """
    pipeline = Pipeline.load(run / "pipeline.yaml")
    context = Context(run=run, out=run, home=home(), seed=pipeline.head.seed, progress=progress)
    stage, seed = label_stage(run), context.seed
    pool, ranking_table = context.read("pool", "pool"), context.read("pool", "rankings")
    verdicts, qrels = context.read(stage, "verdicts"), context.read(stage, "qrels")
    _refuse_unjudged(run, pool, verdicts)
    ranked_pool = rankings.ranked_hits(pool)
    depths = rankings.depths(ranking_table, ranked_pool)
    if depth is not None:
        depths = depths.with_columns(depth=pl.lit(depth, pl.Int64))
    founders = rankings.founders(pool, qrels, depths)
    retrievers = ranking_table["retriever"].unique().sort().to_list()
    other_rankings = rankings.rankings(context, run_files, subset, split)
    systems = rankings.lists(pl.concat([ranking_table, other_rankings]))
    relevant = rankings.labels(qrels)
    unranked = [rankings.LEGACY] if len(ranked_pool) < len(pool) else []
    pairs = rankings.marked(ranked_pool, qrels)
    documents = len(TableCorpus(run / FILTERED))
    late = rankings.unsaturated(pairs)
    open_ = tuple(query for query in late if query.pool < documents)
    config = cast("PoolConfig", pipeline.sections["pool"])
    figures = PoolFigures(
        made_from=made_from(context, "pool", stage),
        labels=stage,
        heuristic=heuristic(context),
        queries=pool["query_id"].n_unique(),
        queries_with_a_relevant_document=len(relevant),
        relevant=len(founders),
        beyond_depth=len(founders.filter(pl.col("by").list.len() == 0)),
        depth=PoolDepth(*depths.select(low=pl.min("depth"), median=pl.median("depth"), high=pl.max("depth")).row(0)),
        leave_one_out=tuple(
            rankings.leave_out(systems, relevant, founders, name, seed) for name in retrievers + unranked
        ),
        capture=missed.capture(rankings.caught(founders, retrievers), founders["query_id"].to_list(), retrievers, seed),
        below=tuple(missed.estimates(run, below, pool, ranking_table, qrels)),
        by_position=tuple(rankings.bands(pairs, seed)),
        cumulated=tuple(rankings.curve(pairs)),
        unsaturated=open_,
        whole_corpus_in_the_pool=len(late) - len(open_),
        deepen=Deepen(2 * config.size, 2 * config.depth) if open_ else None,
        systems=tuple(_systems(systems, verdicts, relevant, retrievers, seed)),
    )
    CHECKS["pool"].write(run, figures.to_json())
    return figures


def _refuse_unjudged(run: Path, pool: pl.DataFrame, verdicts: pl.DataFrame) -> None:
    n_unjudged = len(pool.join(verdicts, on=PAIR, how="anti"))
    if n_unjudged or len(pool) != len(verdicts):
        raise UserError(
            f"{run}: found {len(pool):,} pairs in the pool and {len(verdicts):,} verdicts, of which {n_unjudged:,} "
            "pairs have none; expected one per pair; run `curate judge` and `curate consensus` first"
        )


def _systems(
    systems: rankings.Rankings,
    verdicts: pl.DataFrame,
    relevant: rankings.Relevant,
    retrievers: Sequence[str],
    seed: int,
) -> Iterator[Covered]:
    verdict_by_pair = {(query, doc): verdict for query, doc, verdict in verdicts.select(*PAIR, "verdict").iter_rows()}
    for name, lists in systems.items():
        covered = rankings.covered(name, lists, verdict_by_pair, relevant, seed)
        yield replace(covered, pooled=name in retrievers)
