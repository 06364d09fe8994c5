"""Results of all models and trivial baselines on one task, and their scores on shared resamples."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from curate.commands.evaluate.item_scores import READINGS
from curate.commands.evaluate.scoring import Scored, point
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.figures import Figure, Record, figure
from curate.core.records import TABLES
from curate.stats.bootstrap import DIGITS, from_replicates
from curate.stats.significance import Replicated, figures, needed, replicas
from curate.stats.tally import Floats

SEED = 7
EXCHANGED, RESAMPLED = 1_000, 2_000
"""Numbers of resamples: if models are compared by a randomisation test, and if by the resamples themselves."""


@dataclass(frozen=True)
class Board:
    """One task with the results of models, in the order in which they were named, and of baselines."""

    task: EvaluationTask
    scored: Sequence[Scored]
    floors: Sequence[Scored] = ()
    seed: int = SEED
    lead: str = READINGS[0]
    """Leading score: the way of scoring contested pairs by which models are ranked and compared."""

    @property
    def ranked(self) -> list[Scored]:
        """Return the models by leading score, best first."""
        return self.ordered(self.scored)

    def ordered(self, rows: Sequence[Scored]) -> list[Scored]:
        """Return models or baselines by leading score, best first."""
        return sorted(rows, key=lambda scored: (-self.led(scored), scored.model))

    def led(self, scored: Scored) -> float:
        """Return a model's leading score; for mteb's way of scoring contested pairs this is mteb's own main score."""
        return scored.main if self.lead == READINGS[0] else point(self.task.scorer, scored.values, self.lead)

    @property
    def every(self) -> list[Scored]:
        """Return the models in order, then the trivial baselines."""
        return [*self.scored, *self.floors]

    @property
    def items(self) -> int:
        """Return the number of resampled items."""
        return self.task.scorer.size(self.scored[0].values)

    @property
    def replicates(self) -> int:
        """Return the number of resamples."""
        return EXCHANGED if self.task.scorer.exchanged else RESAMPLED

    def scores(self, scored_models: Sequence[Scored], reading: str = READINGS[0]) -> list[Replicated]:
        """Return, per model or baseline, its score as a function of the weights of resampled items."""
        return [self.task.scorer.score(scored.values, reading) for scored in scored_models]

    @cached_property
    def drawn(self) -> Floats:
        """Return leading scores on resampled items, shape (replicates, models + baselines)."""
        return self._drawn(self.scores(self.every, self.lead), self.points)

    def _drawn(self, scores: Sequence[Replicated], points: Floats) -> Floats:
        replicate_scores = replicas(scores, self.items, self.seed, self.replicates)
        return (
            replicate_scores - np.nanmean(replicate_scores, axis=0) + points
            if self.task.scorer.centred
            else replicate_scores
        )

    def compared(self) -> tuple[Floats, Floats]:
        """Return the headline of models, then of baselines: on all items, and on resampled ones (see `drawn`)."""
        if self.task.scorer.headline is None:
            return self.points, self.drawn
        scores = [self.task.scorer.compared(scored.values, self.lead) for scored in self.every]
        points = np.array([float(score(np.ones((1, self.items)))[0]) for score in scores])
        return points, self._drawn(scores, points)

    @property
    def points(self) -> Floats:
        """Return the leading scores on all items: of models, then of baselines."""
        return np.array([point(self.task.scorer, scored.values, self.lead) for scored in self.every])

    def figures(self, reading: str) -> list[Figure]:
        """Return the scores of models, then of baselines, with intervals, for one way of scoring contested pairs."""
        if reading != self.lead:
            return figures(self.scores(self.every, reading), self.items, self.seed, self.replicates)
        return [
            from_replicates(*point_and_draws, self.items)
            for point_and_draws in zip(self.points.tolist(), self.drawn.T, strict=True)
        ]

    def beside(self) -> list[dict[str, Figure]]:
        """Return further measures of models, then of baselines, with intervals if the measure has one."""
        rows = []
        for scored in self.every:
            replicated_by_name = self.task.scorer.beside(scored.values)
            estimates = (
                figures(list(replicated_by_name.values()), self.items, self.seed, self.replicates)
                if replicated_by_name
                else []
            )
            counts = {name: Figure(count) for name, count in self.task.scorer.counted(scored.values).items()}
            rows.append({**dict(zip(replicated_by_name, estimates, strict=True)), **counts})
        return rows


# Models against the strongest trivial baseline of a task.


class FloorDistance(Record, schema_name="distance"):
    """Distance of a model from the best trivial baseline."""

    model: str = figure("name of the model")
    value: float | None = figure("score less that of the best baseline")
    low: float | None = figure("lower bound of the 95 % interval, on shared resamples")
    high: float | None = figure("upper bound")
    above: bool = figure("whether the interval is above 0")
    smallest: float | None = figure("minimum detectable distance with these items", digits=2, percent=True)


class FloorComparison(Record, schema_name="against"):
    """Models against the best trivial baseline."""

    measure: str | None = figure("measure that is compared; null for the main one, in the leading reading")
    best: str = figure("name of the best baseline")
    sort: str = figure("floor or shortcut")
    score: float = figure("score of the best baseline", digits=2, percent=True)
    models: tuple[FloorDistance, ...] = figure("a row per model, best first")

    @property
    def in_measure(self) -> str:
        """Return the measure as an addition to the score; empty for the main measure."""
        return f", {self.measure}" if self.measure else ""


def against_floors(board: Board) -> FloorComparison | None:
    """Return the best baseline, and every model's difference from it; None without baselines."""
    if not board.floors:
        return None
    points, drawn = board.compared()
    column = len(board.scored) + int(np.nan_to_num(points[len(board.scored) :], nan=-np.inf).argmax())
    best = board.every[column]
    rows = []
    for index, scored in enumerate(board.scored):
        differences = drawn[:, index] - drawn[:, column]
        difference = from_replicates(float(points[index] - points[column]), differences, board.items)
        defined = differences[~np.isnan(differences)]
        deviation = float(defined.std()) * math.sqrt(board.items) if len(defined) else 0.0  # of one item
        rows.append(
            FloorDistance(
                model=scored.model,
                value=difference.value,
                low=difference.low,
                high=difference.high,
                above=difference.low is not None and difference.low > 0,
                smallest=round(needed(0.0, deviation, board.items)[1], DIGITS) if len(defined) else None,
            )
        )
    rows.sort(key=lambda row: (-(row.value or 0.0), row.model))
    score = round(float(points[column]), DIGITS)
    return FloorComparison(board.task.scorer.headline, best.model, str(best.floor), score, tuple(rows))


# Tables of an evaluation.


def per_query(boards: Sequence[Board]) -> pl.DataFrame:
    """Return one row per task, query and model: scores per way of scoring, rank of the first relevant document."""
    tables = []
    for board in boards:
        for scored in board.scored:
            if not board.task.scorer.single:
                continue
            columns: Mapping[str, object] = {
                "task": [board.task.name] * len(scored.queries),
                "query_id": scored.queries,
                "model": [scored.model] * len(scored.queries),
                **{reading: scored.values[reading] for reading in board.task.readings},
                "first_relevant": pl.Series(scored.first, dtype=pl.Int64),
            }
            tables.append(pl.DataFrame(columns))
    return pl.concat(tables, how="diagonal").sort("task", "query_id", "model") if tables else pl.DataFrame()


def tops(boards: Sequence[Board]) -> pl.DataFrame:
    """Return the table `tops`: the top ten documents of every model for every query of retrieval tasks.

    Only for tasks labelled by the panel's verdicts on documents, because no run judged the queries of other tasks.
    """
    rows = [
        (board.task.name, query, scored.model, rank, doc)
        for board in boards
        if board.task.kind.judged
        for scored in board.scored
        for query, top in zip(scored.queries, scored.top, strict=False)  # empty where nothing was searched
        for rank, doc in enumerate(top, start=1)
    ]
    return pl.DataFrame(rows, TABLES["tops"], orient="row")
