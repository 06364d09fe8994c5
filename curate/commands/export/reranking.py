"""What a reranker is given: its candidates, how the panel agrees on them, and a query set of its own."""

from collections.abc import Collection

import polars as pl

from curate.commands.export import Config
from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.scale import Scale
from curate.panel.agreement_figures import measure
from curate.panel.voting import PAIR
from curate.pipeline.stage import Context
from curate.system.files import frame
from curate.tables.exporters.ids import PublishedIds
from curate.tables.exporters.labels import candidates


def drawn(
    config: Config, context: Context, verdicts: pl.DataFrame, ids: PublishedIds
) -> tuple[pl.DataFrame, list[str]]:
    """Return a reranker's candidates and the queries that have too few negatives; none where none are asked for.

    Draws are by the published ids, so that a reader of the export can repeat them.
    """
    if not config.rerank.enabled:
        return frame("qrels"), []
    pool = ids.of(context.read("pool", "pool"))
    chosen, short = candidates(ids.of(verdicts), pool, config.rerank, context.seed, context.scale)
    if ids.key is None:
        return chosen, short
    back = PublishedIds.by(ids.key.rename({"old_id": "new_id", "new_id": "old_id"}))
    return back.of(chosen), back.of(pl.DataFrame({"query_id": short}, {"query_id": pl.String}))["query_id"].to_list()


def need_retrieval(benchmark: Benchmark, config: Config, short: Collection[str]) -> None:
    """Raise DataError if a query set of reranking's own takes every query that has enough negatives for it."""
    left = benchmark.of_retrieval().queries.filter(~pl.col("query_id").is_in(list(short))).height
    if benchmark.apart and not left:
        most = benchmark.candidates["query_id"].n_unique()
        raise DataError(
            f"export.rerank.queries: found {most:,} queries with a positive and {config.rerank.negatives} negatives, "
            f"expected more than {config.rerank.queries:,}, for those of reranking are in no retrieval task; "
            f"take fewer (half are {most // 2:,}), or let both share their queries: --set export.rerank.queries=null"
        )


def mix(chosen: pl.DataFrame, verdicts: pl.DataFrame, scale: Scale) -> dict[str, Json]:
    """Return how many rerank negatives have each best grade, best first, those that occur."""
    negatives = verdicts.join(chosen.filter(pl.col("score") == 0), on=["query_id", "doc_id"], how="semi")
    given = [[vote["grade"] for vote in votes if vote["grade"]] for votes in negatives["votes"]]
    best = [min(grades, key=scale.place) for grades in given if grades]
    return {grade: count for grade in scale.labels if (count := best.count(grade))}


def agreement(context: Context, chosen: pl.DataFrame, panel: list[str]) -> dict[str, Json] | None:
    """Return the panel's agreement on a reranker's candidates, as `consensus` measures it; None without candidates."""
    if chosen.is_empty():
        return None
    return measure(
        context.read("judge", "ratings").join(chosen, on=PAIR, how="semi"),
        panel,
        context.seed,
        context.scale,
        progress=context.progress,
    )
