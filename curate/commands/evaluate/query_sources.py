"""Separate scores on synthetic and real queries, and rank correlation of the two.

Synthetic queries are listed in `sources.parquet` next to the tasks of an export. Rankings are compared by Kendall's
tau-b and by tau_AP; the interval of tau-b resamples real and synthetic queries, with fixed models.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from curate.commands.evaluate.board import Board
from curate.core.config import Json
from curate.pipeline.facts import TABLE
from curate.stats.bootstrap import DIGITS, FEW, from_replicates
from curate.stats.rank_correlation import kendall, tau_ap
from curate.stats.significance import replicas
from curate.stats.tally import Floats
from curate.view.page_tables import ranged, table

REAL, SYNTHETIC = "real", "synthetic"
Figures = Mapping[str, Any]


def apart(board: Board, seed: int) -> dict[str, Json] | None:
    """Return scores on real and on synthetic queries, and their rank correlation; None without synthetic queries."""
    export = board.task.folder.parent / f"{TABLE}.parquet" if board.task.folder and board.task.scorer.single else None
    written = set(pl.read_parquet(export)["query_id"]) if export is not None and export.is_file() else set[str]()
    queries = board.scored[0].queries
    indices_by_source = {
        REAL: [index for index, name in enumerate(queries) if name not in written],
        SYNTHETIC: [index for index, name in enumerate(queries) if name in written],
    }
    if not indices_by_source[SYNTHETIC]:
        return None
    sides = {
        side: _scores(board, indices, seed + salt)
        for salt, (side, indices) in enumerate(indices_by_source.items())
        if indices
    }
    figures = {
        side: [
            from_replicates(*point_and_draws, len(indices_by_source[side])).to_json()
            for point_and_draws in zip(points.tolist(), drawn.T, strict=True)
        ]
        for side, (points, drawn) in sides.items()
    }
    return {
        "queries": {side: len(indices) for side, indices in indices_by_source.items()},
        "scores": [
            {
                "model": scored.model,
                **{side: figures[side][index] if side in figures else None for side in indices_by_source},
            }
            for index, scored in enumerate(board.scored)
        ],
        "order": _order([scored.model for scored in board.scored], sides, min(map(len, indices_by_source.values()))),
    }


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


def _order(models: Sequence[str], sides: Mapping[str, tuple[Floats, Floats]], fewest: int) -> dict[str, Json] | None:
    """Return tau-b and tau_AP of the rankings by real and by synthetic queries; None if tau-b is undefined."""
    if len(sides) < 2:
        return None
    (real, real_drawn), (synthetic, synthetic_drawn) = sides[REAL], sides[SYNTHETIC]
    correlation = float(kendall(real, synthetic))
    if np.isnan(correlation):
        return None
    ap_correlation = tau_ap(*(dict(zip(models, points.tolist(), strict=True)) for points in (real, synthetic)))
    return {
        "tau_b": from_replicates(correlation, kendall(real_drawn, synthetic_drawn), fewest).to_json(),
        "tau_ap": None if ap_correlation is None else round(ap_correlation, DIGITS),
        "models": len(models),
    }


def section(task: Figures) -> Iterator[str]:
    """Yield the section on synthetic and real queries; nothing for a task without synthetic queries."""
    sources = task.get("sources")
    if not sources:
        return
    counts, order = sources["queries"], sources["order"]
    yield "\n### Synthetic and real queries\n"
    yield f"{counts[SYNTHETIC]:,} queries were written by a model, {counts[REAL]:,} were not.\n"
    yield table(
        [
            {
                "model": model["model"],
                "real queries": ranged(model[REAL]),
                "synthetic queries": ranged(model[SYNTHETIC]),
            }
            for model in sources["scores"]
        ]
    )
    if order:
        yield f"\nHow alike both order the models (1: alike, -1: reversed): {_correlations(order)}."


def _correlations(order: Figures) -> str:
    return f"tau-b of {order['models']} models {ranged(order['tau_b'], 1)}, tau_AP {order['tau_ap']:.2f}"


def notes(tasks: Sequence[Figures]) -> Iterator[str]:
    """Yield a sentence per task with synthetic queries."""
    for task in tasks:
        if not (sources := task.get("sources")):
            continue
        counts, order = sources["queries"], sources["order"]
        name, share = task["name"], f"{counts[SYNTHETIC]:,} of {sum(counts.values()):,} queries are synthetic"
        if not counts[REAL]:
            yield f"{name}: all queries are synthetic; nothing shows that real ones put the models in the same order"
        elif order is None:
            yield f"{name}: {share}; real or synthetic ones do not tell the models apart, so no orders are compared"
        else:
            warning = f"; under {FEW} of one kind, so the interval is too narrow" if min(counts.values()) < FEW else ""
            yield f"{name}: {share}; orders by real and by synthetic ones: {_correlations(order)}{warning}"
