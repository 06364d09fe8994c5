"""Results of all models and trivial baselines on one task, and their scores on shared resamples."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from curate.commands.evaluate.floors import FloorScore
from curate.commands.evaluate.item_scores import READINGS
from curate.commands.evaluate.scoring import Scored, point
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json
from curate.core.figures import Figure
from curate.stats.bootstrap import from_replicates
from curate.stats.significance import Replicated, figures, replicas
from curate.stats.tally import Floats

EXCHANGED, RESAMPLED = 1_000, 2_000
"""Numbers of resamples: if models are compared by a randomisation test, and if by the resamples themselves."""


@dataclass(frozen=True)
class Board:
    """One task with the results of models, in the order in which they were named, and of baselines."""

    task: EvaluationTask
    scored: Sequence[Scored]
    floors: Sequence[FloorScore] = ()
    seed: int = 7
    lead: str = READINGS[0]
    """Leading score: the way of scoring contested pairs by which models are ranked and compared."""

    @property
    def ranked(self) -> list[Scored]:
        """Return the models by leading score, best first."""
        return sorted(self.scored, key=lambda scored: (-self.led(scored), scored.model))

    def led(self, scored: Scored) -> float:
        """Return a model's leading score; for mteb's way of scoring contested pairs this is mteb's own main score."""
        return scored.main if self.lead == READINGS[0] else point(self.task.scorer, scored.values, self.lead)

    @property
    def every(self) -> list[Scored]:
        """Return the models in order, then the trivial baselines."""
        return [*self.scored, *(floor.scored for floor in self.floors)]

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
        replicate_scores = replicas(self.scores(self.every, self.lead), self.items, self.seed, self.replicates)
        return (
            replicate_scores - np.nanmean(replicate_scores, axis=0) + self.points
            if self.task.scorer.centred
            else replicate_scores
        )

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

    def beside(self) -> list[dict[str, Json]]:
        """Return further measures of models, then of baselines, with intervals if the measure has one."""
        rows: list[dict[str, Json]] = []
        for scored in self.every:
            replicated_by_name = self.task.scorer.beside(scored.values)
            estimates = (
                figures(list(replicated_by_name.values()), self.items, self.seed, self.replicates)
                if replicated_by_name
                else []
            )
            counts = {name: Figure(count) for name, count in self.task.scorer.counted(scored.values).items()}
            all_figures = {**dict(zip(replicated_by_name, estimates, strict=True)), **counts}
            rows.append({name: figure.to_json() for name, figure in all_figures.items()})
        return rows
