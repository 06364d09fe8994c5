"""Models against the best floor or shortcut of a task: one that is not above it has shown nothing."""

import math
from typing import Any

import numpy as np

from curate.commands.evaluate.board import Board
from curate.stats.bootstrap import DIGITS, from_replicates
from curate.stats.significance import needed
from curate.stats.tally import Floats


def against_floors(board: Board) -> dict[str, Any] | None:
    """Return the best floor and every model's distance from it; None without floors.

    `above` says whether the 95 % interval of the distance, on the same resampled items, lies above 0. `smallest` is the
    distance that these items would show in 80 of 100 cases.
    """
    if not board.floors:
        return None
    best = max(board.floors, key=lambda floor: board.led(floor.scored))
    column = len(board.scored) + list(board.floors).index(best)
    points = board.points
    rows: list[dict[str, Any]] = []
    for place, scored in enumerate(board.scored):
        apart = board.drawn[:, place] - board.drawn[:, column]
        found = from_replicates(float(points[place] - points[column]), apart, board.items)
        rows.append(
            {
                "model": scored.model,
                **found.shown(),
                "above": found.low is not None and found.low > 0,
                "smallest": _smallest(apart, board.items),
            }
        )
    rows.sort(key=lambda row: (-row["value"], row["model"]))
    return {"best": best.name, "sort": best.sort, "score": round(board.led(best.scored), DIGITS), "models": rows}


def _smallest(apart: Floats, items: int) -> float | None:
    defined = apart[~np.isnan(apart)]
    return round(needed(0.0, float(defined.std()) * math.sqrt(items), items)[1], DIGITS) if len(defined) else None
