"""Scores on synthetic and on real queries apart, and how far both put the models in one order.

Which queries a model wrote stands in `sources.parquet` beside the tasks of an export. The orders are compared by
Kendall's tau-b and by tau_AP; the interval of tau-b resamples the queries of either side, the models stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from curate.commands.evaluate.board import Board
from curate.core.config import Json
from curate.pipeline.synthetic_queries import TABLE
from curate.stats.bootstrap import DIGITS, FEW, from_replicates
from curate.stats.rank_correlation import kendall, tau_ap
from curate.stats.replicated import replicas
from curate.stats.tally import Floats
from curate.view.page_tables import ranged, table

REAL, SYNTHETIC = "real", "synthetic"
Figures = Mapping[str, Any]


def apart(board: Board, seed: int) -> dict[str, Json] | None:
    """Return the scores by source of the queries, and how alike both order the models; None without synthetic ones."""
    written = _written(board) if board.task.scorer.single else frozenset()
    queries = board.scored[0].queries
    places = {
        REAL: [at for at, name in enumerate(queries) if name not in written],
        SYNTHETIC: [at for at, name in enumerate(queries) if name in written],
    }
    if not places[SYNTHETIC]:
        return None
    sides = {side: _scores(board, some, seed + salt) for salt, (side, some) in enumerate(places.items()) if some}
    figures = {
        side: [from_replicates(*each, len(places[side])).shown() for each in zip(points.tolist(), drawn.T, strict=True)]
        for side, (points, drawn) in sides.items()
    }
    return {
        "queries": {side: len(some) for side, some in places.items()},
        "scores": [
            {"model": each.model, **{side: figures[side][at] if side in figures else None for side in places}}
            for at, each in enumerate(board.scored)
        ],
        "order": _order([each.model for each in board.scored], sides, min(map(len, places.values()))),
    }


def _written(board: Board) -> frozenset[str]:
    """Return the ids of the queries that a model wrote, as the export of the task lists them."""
    path = board.task.folder.parent / f"{TABLE}.parquet" if board.task.folder else None
    return frozenset(pl.read_parquet(path)["query_id"]) if path is not None and path.is_file() else frozenset()


def _scores(board: Board, places: Sequence[int], seed: int) -> tuple[Floats, Floats]:
    """Return the score of each model on some of the queries, and on resamples of them, one row per resample."""
    several = [
        board.task.scorer.score(
            {reading: [column[at] for at in places] for reading, column in each.values.items()}, board.lead
        )
        for each in board.scored
    ]
    points = np.array([float(score(np.ones((1, len(places))))[0]) for score in several])
    return points, replicas(several, len(places), seed, board.replicates)


def _order(models: Sequence[str], sides: Mapping[str, tuple[Floats, Floats]], fewest: int) -> dict[str, Json] | None:
    """Return tau-b and tau_AP of the orders by real and by synthetic queries; None where tau-b is not defined."""
    if len(sides) < 2:
        return None
    (real, real_drawn), (synthetic, synthetic_drawn) = sides[REAL], sides[SYNTHETIC]
    value = float(kendall(real, synthetic))
    if np.isnan(value):
        return None
    above = tau_ap(*(dict(zip(models, points.tolist(), strict=True)) for points in (real, synthetic)))
    return {
        "tau_b": from_replicates(value, kendall(real_drawn, synthetic_drawn), fewest).shown(),
        "tau_ap": None if above is None else round(above, DIGITS),
        "models": len(models),
    }


def section(task: Figures) -> Iterator[str]:
    """Yield the part of the page; nothing for a task without synthetic queries."""
    found = task.get("sources")
    if not found:
        return
    counts, order = found["queries"], found["order"]
    yield "\n### Synthetic and real queries\n"
    yield f"{counts[SYNTHETIC]:,} queries were written by a model, {counts[REAL]:,} were not.\n"
    yield table(
        [
            {
                "model": each["model"],
                "real queries": ranged(each[REAL]),
                "synthetic queries": ranged(each[SYNTHETIC]),
            }
            for each in found["scores"]
        ]
    )
    if order:
        yield f"\nHow alike both order the models (1: alike, -1: reversed): {_alike(order)}."


def _alike(order: Figures) -> str:
    return f"tau-b of {order['models']} models {ranged(order['tau_b'], 1)}, tau_AP {order['tau_ap']:.2f}"


def notes(tasks: Sequence[Figures]) -> Iterator[str]:
    """Yield what must be known of scores on synthetic queries, a sentence per task."""
    for task in tasks:
        if not (found := task.get("sources")):
            continue
        counts, order = found["queries"], found["order"]
        name, some = task["name"], f"{counts[SYNTHETIC]:,} of {sum(counts.values()):,} queries are synthetic"
        if not counts[REAL]:
            yield f"{name}: all queries are synthetic; nothing shows that real ones put the models in the same order"
        elif order is None:
            yield f"{name}: {some}; real or synthetic ones do not tell the models apart, so no orders are compared"
        else:
            few = f"; under {FEW} of one kind, so the interval is too narrow" if min(counts.values()) < FEW else ""
            yield f"{name}: {some}; orders by real and by synthetic ones: {_alike(order)}{few}"
