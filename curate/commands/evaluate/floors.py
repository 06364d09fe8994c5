"""Floors and shortcuts of a task, scored as models are: what a score is worth without meaning.

A floor knows nothing of the texts: equal scores for all, the commonest class, random vectors. A shortcut knows their
surface: length, shared characters, a keyword per class, tf-idf. Each gives predictions in the form in which mteb saves
a model's, so that the same scorer makes items of them. They are fitted on the texts that mteb draws for a model.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import isnan
from pathlib import Path
from typing import Any

from curate.commands.evaluate import floors_labels, floors_pairs, floors_rankings
from curate.commands.evaluate.scoring import Scored, point, restored
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import digest
from curate.stats.bootstrap import DIGITS
from curate.system.files import read_json, write_json

VERSION = 3
"""Of what is kept; another one is scored again."""
FLOORS = frozenset({"all-equal", "majority class", "random encoder"})
"""Names of those that know nothing; the others are shortcuts."""
Predictions = Iterator[tuple[str, Any]]
"""Names and predictions, as mteb saves those of a model."""
OF_TYPE: Mapping[str, Callable[[EvaluationTask], Predictions]] = {
    "Classification": floors_labels.of_classification,
    "Clustering": floors_labels.of_clustering,
    "PairClassification": floors_pairs.of_classification,
    "STS": floors_pairs.of_similarity,
    "Retrieval": floors_rankings.of_retrieval,
    "Reranking": floors_rankings.of_reranking,
}
"""What makes the floors, by mteb's type of task."""


@dataclass(frozen=True)
class FloorScore:
    """A floor or shortcut, and what it did on a task."""

    name: str
    scored: Scored

    @property
    def sort(self) -> str:
        """Return `floor` or `shortcut`."""
        return "floor" if self.name in FLOORS else "shortcut"


def floors(task: EvaluationTask, folder: Path) -> list[FloorScore]:
    """Return the floors and shortcuts of a task; empty for a type that has none.

    `folder` holds what was scored before, by the digest of the task's content and what computes them.
    """
    make = OF_TYPE.get(task.kind.mteb.type)
    if make is None:
        return []
    used = [version(name) for name in ("mteb", "scikit-learn", "numpy")]
    path = folder / f"{digest(['floors', VERSION, task.content, task.kind.mteb.type, task.measure, *used])}.json"
    if not path.is_file():
        every = [_scored(task, name, saved) for name, saved in make(task)]
        found = [asdict(each) for each in every if not isnan(each.main)]  # nothing varies: no correlation
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, {"floors": found})
    kept = [restored(row) for row in read_json(path)["floors"]]
    return [FloorScore(each.model, each) for each in kept]


def _scored(task: EvaluationTask, name: str, saved: Any) -> Scored:  # noqa: ANN401 - as mteb saves it
    found = task.scorer.items(saved, task, task.data)
    main = round(point(task.scorer, found["values"]), DIGITS)
    return Scored(name, "", "", None, main, {}, None, **found)
