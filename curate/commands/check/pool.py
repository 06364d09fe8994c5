"""Quality of a run's pool: unique contributions of retrievers, saturation, missed documents, coverage of run files.

Computed from the tables of a finished run; nothing is sent. The figures are also written to `checks/pool.json` of the
run folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import polars as pl

from curate.commands.check import missed
from curate.core.config import Json, plain
from curate.core.errors import UserError
from curate.core.protocols import PaidProgress, quiet
from curate.core.records import FILTERED
from curate.panel.voting import PAIR
from curate.pipeline.configs import PoolConfig
from curate.pipeline.facts import MADE_FROM, heuristic, label_stage, made_from
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.runs import rankings as coverage
from curate.runs import rankings as deeper
from curate.runs import rankings as run_files
from curate.runs import rankings as unjudged
from curate.system.corpus import TableCorpus
from curate.system.files import write_json


@dataclass(frozen=True)
class PoolOptions:
    """Additional inputs of a pool check."""

    runs: Sequence[Path] = ()
    """Rankings of other systems: TREC runs, or mteb's predictions."""
    subset: str | None = None
    split: str | None = None
    below: Sequence[Path] = ()
    """Files of graded random pairs from outside the pool."""
    depth: int | None = None
    """Rank down to which a retriever counts as having found a document; None for the depth by `rankings.depths`."""


def check(run: Path, asked: PoolOptions | None = None, progress: PaidProgress = quiet) -> dict[str, Json]:
    """Return all figures of a run's pool as JSON types, and write them to `checks/pool.json`."""
    options = asked or PoolOptions()
    pipeline = Pipeline.load(run / "pipeline.yaml")
    context = Context(run=run, out=run, home=home(), seed=pipeline.head.seed, progress=progress)
    stage = label_stage(run)
    pool, rankings = context.read("pool", "pool"), context.read("pool", "rankings")
    verdicts, qrels = context.read(stage, "verdicts"), context.read(stage, "qrels")
    _refuse_unjudged(run, pool, verdicts)
    depths = coverage.depths(rankings, coverage.ranked_hits(pool))
    if options.depth is not None:
        depths = depths.with_columns(depth=pl.lit(options.depth, pl.Int64))
    founders = coverage.founders(pool, qrels, depths)
    retrievers = rankings["retriever"].unique().sort().to_list()
    others = run_files.rankings(context, options.runs, options.subset, options.split)
    systems = coverage.lists(pl.concat([rankings, others]))
    relevant = coverage.labels(qrels)
    seed = context.seed
    unranked = [coverage.LEGACY] if len(coverage.ranked_hits(pool)) < len(pool) else []
    deep = founders.filter(pl.col("by").list.len() == 0)
    result: dict[str, Json] = {
        MADE_FROM: made_from(context, "pool", stage),
        "labels": stage,
        "heuristic": heuristic(context),
        "queries": pool["query_id"].n_unique(),
        "queries_with_a_relevant_document": len(relevant),
        "relevant": len(founders),
        "beyond_depth": len(deep),
        "depth": {
            "low": cast("Json", depths["depth"].min()),
            "median": cast("Json", depths["depth"].median()),
            "high": cast("Json", depths["depth"].max()),
        },
        "leave_one_out": [
            plain(coverage.leave_out(systems, relevant, founders, name, seed)) for name in retrievers + unranked
        ],
        "capture": plain(
            missed.capture(coverage.caught(founders, retrievers), founders["query_id"].to_list(), retrievers, seed)
        ),
        "below": [plain(estimate) for estimate in missed.estimates(run, options.below, pool, rankings, qrels)],
        **_by_depth(run, coverage.ranked_hits(pool), qrels, cast("PoolConfig", pipeline.sections["pool"]), seed),
        "systems": _systems(systems, verdicts, relevant, retrievers, seed),
    }
    (run / "checks").mkdir(exist_ok=True)
    write_json(run / "checks" / "pool.json", result)
    return result


def _refuse_unjudged(run: Path, pool: pl.DataFrame, verdicts: pl.DataFrame) -> None:
    n_unjudged = len(pool.join(verdicts, on=PAIR, how="anti"))
    if n_unjudged or len(pool) != len(verdicts):
        raise UserError(
            f"{run}: found {len(pool):,} pairs in the pool and {len(verdicts):,} verdicts, of which {n_unjudged:,} "
            "pairs have none; expected one per pair; run `curate judge` and `curate consensus` first"
        )


def _by_depth(run: Path, pool: pl.DataFrame, qrels: pl.DataFrame, config: PoolConfig, seed: int) -> dict[str, Json]:
    pairs = deeper.marked(pool, qrels)
    documents = len(TableCorpus(run / FILTERED))
    late = deeper.unsaturated(pairs)
    open_ = [query for query in late if query.pool < documents]
    return {
        "by_position": [plain(band) for band in deeper.bands(pairs, seed)],
        "cumulated": cast("Json", deeper.curve(pairs)),
        "unsaturated": [plain(query) for query in open_],
        "whole_corpus_in_the_pool": len(late) - len(open_),
        "deepen": {"size": 2 * config.size, "depth": 2 * config.depth} if open_ else None,
    }


def _systems(
    systems: coverage.Rankings,
    verdicts: pl.DataFrame,
    relevant: coverage.Relevant,
    retrievers: Sequence[str],
    seed: int,
) -> list[Json]:
    verdict_by_pair: Mapping[tuple[str, str], str] = {
        (query, doc): verdict for query, doc, verdict in verdicts.select(*PAIR, "verdict").iter_rows()
    }
    coverages = {
        name: plain(unjudged.covered(name, lists, verdict_by_pair, relevant, seed)) for name, lists in systems.items()
    }
    return [{**cast("dict[str, Json]", figures), "pooled": name in retrievers} for name, figures in coverages.items()]
