"""Separate scores on synthetic and real queries, and rank correlation of the two.

Synthetic queries are listed in `sources.parquet` next to the tasks of an export. Rankings are compared by Kendall's
tau-b and by tau_AP; the interval of tau-b resamples real and synthetic queries, with fixed models.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from curate.commands.evaluate.board import Board
from curate.core.figures import Figure, Record, figure
from curate.pipeline.facts import TABLE
from curate.stats.bootstrap import DIGITS, FEW, from_replicates
from curate.stats.rank_correlation import kendall, tau_ap
from curate.stats.significance import replicas
from curate.stats.tally import Floats
from curate.view.page_tables import table
from curate.view.record_words import RecordWords


class SourceCounts(Record, schema_name="query_counts"):
    """Queries by their source."""

    real: int = figure("queries that no model wrote")
    synthetic: int = figure("queries that a model wrote")


class SourceScores(Record, schema_name="score_by_source"):
    """Scores of one model by the source of the queries; None without queries of the source."""

    model: str = figure("name of the model")
    real: Figure | None = figure("score on real queries", digits=2, percent=True)
    synthetic: Figure | None = figure("score on synthetic queries", digits=2, percent=True)


class SourceOrder(Record, schema_name="query_order"):
    """Correlation of the rankings by real and by synthetic queries."""

    tau_b: Figure = figure("Kendall's tau-b; its interval resamples real and synthetic queries", digits=2)
    tau_ap: float | None = figure("tau_AP of the order by synthetic queries against that by real queries", digits=2)
    models: int = figure("models in the ranking")


class QuerySources(Record):
    """Scores on synthetic and on real queries apart."""

    queries: SourceCounts = figure("numbers of real and synthetic queries")
    scores: tuple[SourceScores, ...] = figure("a row per model")
    order: SourceOrder | None = figure(
        "rank correlation; null without both sources, or if all models tie on one of them"
    )


def apart(board: Board) -> QuerySources | None:
    """Return scores on real and on synthetic queries, and their rank correlation; None without synthetic queries."""
    export = board.task.folder.parent / f"{TABLE}.parquet" if board.task.folder and board.task.scorer.single else None
    written = set(pl.read_parquet(export)["query_id"]) if export is not None and export.is_file() else set[str]()
    queries = board.scored[0].queries
    real = [index for index, name in enumerate(queries) if name not in written]
    synthetic = [index for index, name in enumerate(queries) if name in written]
    if not synthetic:
        return None
    sides = [
        _scores(board, indices, board.seed + salt) if indices else None
        for salt, indices in enumerate((real, synthetic))
    ]
    estimates = [
        [from_replicates(*scores, len(indices)) for scores in zip(side[0].tolist(), side[1].T, strict=True)]
        if side
        else [None] * len(board.scored)
        for side, indices in zip(sides, (real, synthetic), strict=True)
    ]
    models = [scored.model for scored in board.scored]
    return QuerySources(
        queries=SourceCounts(len(real), len(synthetic)),
        scores=tuple(SourceScores(*row) for row in zip(models, *estimates, strict=True)),
        order=_order(models, sides[0], sides[1], min(len(real), len(synthetic))),
    )


def _scores(board: Board, indices: Sequence[int], seed: int) -> tuple[Floats, Floats]:
    """Return the models' scores on some queries, shape (models,), and on resamples of these, (replicates, models)."""
    replicated = [
        board.task.scorer.score(
            {reading: [column[index] for index in indices] for reading, column in scored.values.items()}, board.lead
        )
        for scored in board.scored
    ]
    points = np.array([float(score(np.ones((1, len(indices))))[0]) for score in replicated])
    return points, replicas(replicated, len(indices), seed, board.replicates)


def _order(
    models: Sequence[str],
    real_scores: tuple[Floats, Floats] | None,
    synthetic_scores: tuple[Floats, Floats] | None,
    fewest: int,
) -> SourceOrder | None:
    """Return tau-b and tau_AP of the rankings by real and by synthetic queries; None if tau-b is undefined."""
    if not real_scores or not synthetic_scores:
        return None
    (real, real_drawn), (synthetic, synthetic_drawn) = real_scores, synthetic_scores
    correlation = float(kendall(real, synthetic))
    if np.isnan(correlation):
        return None
    ap_correlation = tau_ap(*(dict(zip(models, points.tolist(), strict=True)) for points in (real, synthetic)))
    return SourceOrder(
        tau_b=from_replicates(correlation, kendall(real_drawn, synthetic_drawn), fewest),
        tau_ap=None if ap_correlation is None else round(ap_correlation, DIGITS),
        models=len(models),
    )


def section(sources: QuerySources | None, say: RecordWords) -> Iterator[str]:
    """Yield the section on synthetic and real queries; nothing without synthetic queries."""
    if not sources:
        return
    yield say("sources", sources.queries)
    yield table([say.cells("source_scores", model) for model in sources.scores])
    if sources.order:
        yield say("source_order", order=say("source_correlations", sources.order))


def notes(sources_by_task: Mapping[str, QuerySources | None]) -> Iterator[str]:
    """Yield a sentence per task with synthetic queries."""
    say = RecordWords("evaluate/evaluate")
    for name, sources in sources_by_task.items():
        if not sources:
            continue
        counts, order = sources.queries, sources.order
        share = f"{counts.synthetic:,} of {counts.real + counts.synthetic:,} queries are synthetic"
        if not counts.real:
            yield f"{name}: all queries are synthetic; nothing shows that real ones put the models in the same order"
        elif order is None:
            yield f"{name}: {share}; real or synthetic ones do not tell the models apart, so no orders are compared"
        else:
            few = min(counts.real, counts.synthetic) < FEW
            warning = f"; under {FEW} of one kind, so the interval is too narrow" if few else ""
            yield f"{name}: {share}; orders by real and by synthetic ones: {say('source_correlations', order)}{warning}"
