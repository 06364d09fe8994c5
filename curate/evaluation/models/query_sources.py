"""Scores on synthetic and on real queries apart, and how far both put the models in one order.

Which queries a model wrote stands in `sources.parquet` beside the tasks of an export. The rank correlation is Kendall's
tau-b over the models; its interval resamples the queries of either side, the models stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.evaluation.models.board import Board
from curate.evaluation.models.page_tables import ranged, table
from curate.stages.facts.synthetic_queries import TABLE
from curate.stats.bootstrap import FEW, from_replicates
from curate.stats.rank_correlation import kendall
from curate.stats.replicated import Replicated, figures, replicas

REAL, SYNTHETIC = "real", "synthetic"
Figures = Mapping[str, Any]


def apart(board: Board, seed: int) -> dict[str, Json] | None:
    """Return the scores by source of the queries, and tau-b of both orders; None where no query is synthetic."""
    written = _written(board)
    if not written or not board.task.scorer.single:
        return None
    queries = board.scored[0].queries
    places = {
        REAL: [at for at, name in enumerate(queries) if name not in written],
        SYNTHETIC: [at for at, name in enumerate(queries) if name in written],
    }
    if not places[SYNTHETIC]:
        return None
    sides = {side: _scorers(board, some) for side, some in places.items() if some}
    shown = {side: figures(scorers, len(places[side]), seed, board.replicates) for side, scorers in sides.items()}
    return {
        "queries": {side: len(some) for side, some in places.items()},
        "scores": [
            {
                "model": each.model,
                **{side: shown[side][at].shown() if side in shown else None for side in (REAL, SYNTHETIC)},
            }
            for at, each in enumerate(board.scored)
        ],
        "tau_b": _order(sides, places, board.replicates, seed),
    }


def _written(board: Board) -> frozenset[str]:
    """Return the ids of the queries that a model wrote, as the export of the task lists them."""
    path = board.task.folder.parent / f"{TABLE}.parquet" if board.task.folder else None
    return frozenset(pl.read_parquet(path)["query_id"]) if path is not None and path.is_file() else frozenset()


def _scorers(board: Board, places: Sequence[int]) -> list[Replicated]:
    """Return what scores each model on resampled queries out of some of them."""
    found = []
    for each in board.scored:
        values = {reading: [column[at] for at in places] for reading, column in each.values.items()}
        found.append(board.task.scorer.score(values, board.lead))
    return found


def _order(
    sides: Mapping[str, Sequence[Replicated]], places: Mapping[str, Sequence[int]], replicates: int, seed: int
) -> dict[str, Json] | None:
    """Return tau-b of the orders by real and by synthetic queries; None without both, or where it is not defined."""
    if len(sides) < 2:
        return None
    points = [
        np.array([float(score(np.ones((1, len(places[side]))))[0]) for score in scorers])
        for side, scorers in sides.items()
    ]
    drawn = [
        replicas(scorers, len(places[side]), seed + salt, replicates)
        for salt, (side, scorers) in enumerate(sides.items())
    ]
    value = float(kendall(points[0], points[1]))
    if np.isnan(value):
        return None
    fewest = min(len(some) for some in places.values())
    return {**from_replicates(value, kendall(drawn[0], drawn[1]), fewest).shown(), "models": len(points[0])}


def section(task: Figures) -> Iterator[str]:
    """Yield the part of the page; nothing for a task without synthetic queries."""
    found = task.get("sources")
    if not found:
        return
    counts, tau = found["queries"], found["tau_b"]
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
    if tau:
        yield f"\nThe orders of the {tau['models']} models agree by Kendall's tau-b {ranged(tau, 1)}."


def notes(tasks: Sequence[Figures]) -> Iterator[str]:
    """Yield what must be known of scores on synthetic queries, a sentence per task."""
    for task in tasks:
        if not (found := task.get("sources")):
            continue
        counts, tau = found["queries"], found["tau_b"]
        name, some = task["name"], f"{counts[SYNTHETIC]:,} of {sum(counts.values()):,} queries are synthetic"
        if not counts[REAL]:
            yield f"{name}: all queries are synthetic; nothing shows that real ones put the models in the same order"
        elif tau is None:
            yield f"{name}: {some}; the orders of the models by either kind are not compared, for they are not defined"
        else:
            few = f"; under {FEW} of one kind, so the interval is too narrow" if min(counts.values()) < FEW else ""
            yield f"{name}: {some}; tau-b of the orders by real and by synthetic ones {ranged(tau, 1)}{few}"
