"""The reading of doubt by which models are ordered and compared, and how alike the readings order them.

Stock tools count contested pairs as not relevant, which was the worst of ten ways to order systems where judges often
disagree. So the gain of the median grade leads where it is known; else condensed scores, unless a model had a part in
the pool or the panel, for then it decides what is condensed away. No reading of nDCG is a level: see `corrected`.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from curate.commands.evaluate.board import Board
from curate.commands.evaluate.item_scores import MEDIAN, READINGS
from curate.commands.evaluate.scoring import point
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json
from curate.stats.rank_correlation import tau_ap, tau_b

STOCK, CONDENSED, _ = READINGS
ORDERED = (STOCK, CONDENSED, MEDIAN)
DIGITS = 6


def lead(task: EvaluationTask, models: Sequence[str]) -> str:
    """Return the reading by which a task's models are ordered: median, else condensed, else stock."""
    if not task.verdicts or task.gains:
        return STOCK
    if MEDIAN in task.readings:
        return MEDIAN
    return STOCK if any(name in names for names in task.parts.values() for name in models) else CONDENSED


def orders(board: Board) -> list[Json]:
    """Return tau-b and tau_AP of the models' orders under every two readings of `ORDERED`, the first taken as given.

    Scores are those of the same queries. Empty for one model, and for a task without pairs in doubt or with gains.
    """
    known = [name for name in ORDERED if name in board.task.readings]
    if not board.task.verdicts or board.task.gains or len(board.scored) < 2:
        return []
    scores = {name: _scores(board, name) for name in known}
    return [_alike(one, other, scores[one], scores[other]) for one, other in combinations(known, 2)]


def _alike(one: str, other: str, first: Mapping[str, float], second: Mapping[str, float]) -> Json:
    """Return tau-b and tau_AP; neither where one of the two orders nothing, as all its scores are one."""
    alike = tau_b(first, second)
    above = None if alike is None else tau_ap(first, second)
    return {"one": one, "other": other, "tau_b": _round(alike), "tau_ap": _round(above)}


def _scores(board: Board, reading: str) -> Mapping[str, float]:
    return {each.model: round(point(board.task.scorer, each.values, reading), DIGITS) for each in board.scored}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
