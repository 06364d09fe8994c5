"""Scores of base and trained models on the test set and on legacy tasks by mteb, compared query by query."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.evaluate import tasks
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.scoring import Scored, scored
from curate.commands.evaluate.tasks import EvaluationTask
from curate.commands.evaluate.text_inputs import probe
from curate.commands.train.loading import TrainModels
from curate.core.errors import DataError
from curate.core.figures import Figure, Record, figure
from curate.core.protocols import Encoder
from curate.pipeline.stage import home
from curate.retrieval.encoders.dense import Config, DenseEncoder
from curate.stats.bootstrap import averages
from curate.stats.significance import compare, mean, means
from curate.system.extras import needed

Foreign = Any
"""Objects of mteb, which are untyped here."""
KINDS = ("Retrieval", "Reranking")
PER_QUERY = "stock"
"""Key of the values whose mean over queries is mteb's score."""


def test_tasks(folder: Path) -> list[EvaluationTask]:
    """Return an export's retrieval and reranking tasks.

    DataError without any, or for a task without a positive label.
    """
    if not folder.is_dir():
        raise DataError(
            f"--test {folder}: there is no such folder; give a run or an export in MTEB layout (a task that mteb knows "
            "by name is scored beside it with --legacy)"
        )
    with needed("curate train"):
        import datasets
    datasets.disable_progress_bars()
    suitable = [task for task in tasks.in_folder(folder) if task.kind.mteb.type in KINDS]
    if not suitable:
        raise DataError(
            f"--test {folder}: found no task of retrieval or reranking, expected one; give an export in MTEB layout"
        )
    for task in suitable:
        if not any(gain > 0 for labels in task.data["relevant_docs"].values() for gain in labels.values()):
            raise DataError(f"--test {folder}: {task.name} has no qrels above 0, expected labels to score against")
    return suitable


def asked(task: EvaluationTask) -> list[str]:
    """Return the texts of a task's queries."""
    return list(task.data["queries"]["text"])


class TaskGain(Record, schema_name="score"):
    """Scores of base and trained models on a task."""

    task: str = figure("name of the task")
    kind: str = figure("type of the task, as mteb names it")
    measure: str = figure("main measure of the task")
    base: float = figure("score of the model for comparison", digits=2, percent=True)
    trained: float = figure("score of the trained models, mean over seeds", digits=2, percent=True)
    seeds: tuple[float, ...] = figure("score of each seed's model")
    rows: int = figure("scored queries or items")
    difference: Figure | None = figure("trained less base per query, with a 95 % interval", digits=2, percent=True)
    p: float | None = figure("p-value of a paired randomisation test", digits=4)
    smallest: float | None = figure("minimum detectable difference with these queries")


class ModelScores:
    """Scores of models on some tasks; each model is scored once per task."""

    def __init__(self, models: TrainModels, scoring: Sequence[EvaluationTask]) -> None:
        self.models, self.tasks = models, scoring

    def of(self, name: str, source: str, *, documents: Encoder | None) -> list[Scored]:
        """Return a model's scores on every task; `documents`, if given, encodes the documents in place of the model."""
        config = Config(model=source, max_length=self.models.settings.max_length)
        revision = DenseEncoder(name, config).revision
        revision += "-train" if documents is None else f"-{documents.revision}"
        model = EvaluatedModel(name, revision, lambda: _for_mteb(self.models.load(source), name, documents))
        return [scored(model, task, home() / "evaluations")[0] for task in self.tasks]


def _for_mteb(model: Foreign, name: str, documents: Encoder | None) -> Foreign:
    """Return a model with mteb's interface; with `documents`, that encoder encodes the documents.

    Query vectors are cached by prompt and text, because tasks of one test set share queries.
    """
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.model_meta import ModelMeta

    cached: dict[tuple[str, str], Foreign] = {}
    with warnings.catch_warnings():  # mteb calls itself and sentence-transformers by old names
        warnings.simplefilter("ignore")
        plain = SentenceTransformerEncoderWrapper(model)

    class CachingEncoder(SentenceTransformerEncoderWrapper):  # type: ignore[misc]
        def encode(
            self, inputs: Foreign, *, task_metadata: Foreign, prompt_type: Foreign = None, **kwargs: Foreign
        ) -> Foreign:
            texts, role = list(inputs.dataset["text"]), getattr(prompt_type, "value", None)
            if documents is not None and role == "document":
                return documents.encode(texts, "document")
            prompt_identity = str(probe(plain, task_metadata, prompt_type).identity)
            keys = [(prompt_identity, text) for text in texts]
            if any(key not in cached for key in keys):
                rows = super().encode(inputs, task_metadata=task_metadata, prompt_type=prompt_type, **kwargs)
                cached.update(zip(keys, np.asarray(rows), strict=True))
            return np.stack([cached[key] for key in keys])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapper = CachingEncoder(model)
    wrapper.mteb_model_meta = ModelMeta.create_empty({"name": f"curate/{name}", "revision": "local"})
    return wrapper


def compared(base: Scored, trained: Sequence[Scored], task: EvaluationTask, seed: int) -> TaskGain:
    """Return a task's scores of base and trained models, with a paired test for retrieval and reranking."""
    test: dict[str, Any] = {"difference": None, "p": None, "smallest": None}
    if task.kind.mteb.type in KINDS:
        before = np.array(base.values[PER_QUERY])
        after = np.asarray(np.mean([score.values[PER_QUERY] for score in trained], axis=0), dtype=np.float64)
        (difference,) = averages([after - before], seed)
        (pair,) = compare(["base", "trained"], [means(before), means(after)], mean, seed)
        test = {"difference": difference, "p": round(pair.p, 5), "smallest": round(pair.smallest, 5)}
    return TaskGain(
        task=task.name,
        kind=task.kind.mteb.type,
        measure=task.measure,
        base=base.main,
        trained=float(np.mean([score.main for score in trained])),
        seeds=tuple(score.main for score in trained),
        rows=len(base.queries),
        **test,
    )
