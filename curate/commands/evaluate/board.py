"""One task with what every model and floor did on it, and their scores on the same resampled items."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from curate.commands.evaluate.floors import FloorScore
from curate.commands.evaluate.item_scores import READINGS
from curate.commands.evaluate.scoring import Scored, point
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json
from curate.stats.bootstrap import Figure, from_replicates
from curate.stats.replicated import Replicated, figures, replicas
from curate.stats.tally import Floats

EXCHANGED, RESAMPLED = 1_000, 2_000
"""Resamples, where a randomisation test tells models apart, and where the resamples themselves do."""


@dataclass(frozen=True)
class Board:
    """One task and what every model did on it, in the order in which they were named."""

    task: EvaluationTask
    scored: Sequence[Scored]
    floors: Sequence[FloorScore] = ()
    seed: int = 7
    lead: str = READINGS[0]
    """The reading by which models are ordered and compared."""

    @property
    def ranked(self) -> list[Scored]:
        """Return the best model first, by the reading that leads."""
        return sorted(self.scored, key=lambda each: (-self.led(each), each.model))

    def led(self, scored: Scored) -> float:
        """Return a score in the reading that leads; mteb's own where that is stock."""
        return scored.main if self.lead == READINGS[0] else point(self.task.scorer, scored.values, self.lead)

    @property
    def every(self) -> list[Scored]:
        """Return the models as they were named, and then the floors."""
        return [*self.scored, *(floor.scored for floor in self.floors)]

    @property
    def items(self) -> int:
        """Return how many items are resampled."""
        return self.task.scorer.size(self.scored[0].values)

    @property
    def replicates(self) -> int:
        """Return how often they are."""
        return EXCHANGED if self.task.scorer.exchanged else RESAMPLED

    def scores(self, some: Sequence[Scored], reading: str = READINGS[0]) -> list[Replicated]:
        """Return what scores some models, or floors, on resampled items."""
        return [self.task.scorer.score(each.values, reading) for each in some]

    @cached_property
    def drawn(self) -> Floats:
        """Return what the leading reading scores on resampled items, shape (replicates, models and then floors)."""
        found = replicas(self.scores(self.every, self.lead), self.items, self.seed, self.replicates)
        return found - np.nanmean(found, axis=0) + self.points if self.task.scorer.centred else found

    @property
    def points(self) -> Floats:
        """Return the scores on the items themselves, in the same order."""
        return np.array([point(self.task.scorer, each.values, self.lead) for each in self.every])

    def figures(self, reading: str) -> list[Figure]:
        """Return the score of every model and then of every floor, with its interval, in one reading of doubt."""
        if reading != self.lead:
            return figures(self.scores(self.every, reading), self.items, self.seed, self.replicates)
        return [from_replicates(*each, self.items) for each in zip(self.points.tolist(), self.drawn.T, strict=True)]

    def beside(self) -> list[dict[str, Json]]:
        """Return by model and then floor the further figures of its scorer, with intervals where they have some."""
        found: list[dict[str, Json]] = []
        for each in self.every:
            named = self.task.scorer.beside(each.values)
            shown = figures(list(named.values()), self.items, self.seed, self.replicates) if named else []
            plain = {name: Figure(value) for name, value in self.task.scorer.counted(each.values).items()}
            both = {**dict(zip(named, shown, strict=True)), **plain}
            found.append({name: figure.shown() for name, figure in both.items()})
        return found
