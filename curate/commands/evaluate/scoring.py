"""Scoring of models on tasks by mteb; scores are stored by content, model, precision and mteb version."""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.evaluate import loading, mteb_results
from curate.commands.evaluate import timing as machine
from curate.commands.evaluate.item_scores import READINGS
from curate.commands.evaluate.loading import Rows, compared, out_of_memory, precisions, sampled_rows
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.mteb_results import KeptResult
from curate.commands.evaluate.scorers import Scorer, Values
from curate.commands.evaluate.tasks import EvaluationTask, Foreign, imported
from curate.commands.evaluate.text_inputs import ROLES, SeenTexts
from curate.core.config import Json, digest
from curate.core.errors import ConfigError, RunFailed
from curate.core.progress import StepLabel, counting, waiting
from curate.core.protocols import Progress
from curate.retrieval.vectors.cache import PrecisionCheck
from curate.system.files import read_json, write_json
from curate.tables.exporters.mteb import quiet

VERSION = 3
"""Version of the stored scores; scores of another version are recomputed."""
BATCH = 32
NEAR = 2e-5
"""Maximum difference between curate's mean and mteb's, which is rounded to five digits."""
ASKED = {
    "Encoding queries",
    "Encoding queries and documents",
    "Encoding samples 1",
    "Encoding samples 2",
    "Encoding test samples",
    "Encoding",
}
"""mteb's names of the phases that encode queries, sentences, or texts to be labelled."""
OTHERS = {"accuracy", "f1", "f1_weighted", "v_measure", "ami", "max_ap", "max_f1", "max_accuracy", "cosine_ap"}
"""Measures of mteb that are stored, besides those at 10 and 100 and correlations."""


@dataclass(frozen=True)
class Scored:
    """Scores of one model on one task."""

    model: str
    revision: str
    precision: str
    batch: int | None
    """Largest batch size in use; None if not measured."""
    main: float
    """Main measure, as computed by mteb."""
    metrics: Mapping[str, float]
    """Other measures of mteb."""
    queries_a_second: float | None
    """Queries, or sentences of STS, encoded per second; None if unknown.

    The time of the corpus is excluded if mteb reports it separately.
    """
    queries: list[str]
    """Ids of queries in order; for STS, indices of pairs."""
    values: Mapping[str, list[float]]
    """Way of scoring -> score per query; for other task types, the values of their scorer."""
    first: list[int | None]
    """Rank of the first relevant document per query, None if not found; empty for tasks without retrieval."""
    shown: int = 0
    holes: int = 0
    doubtful: int = 0
    """Numbers of top-ten documents over all queries: total (`shown`), unjudged (`holes`), contested or incomplete."""
    top: Sequence[Sequence[str]] = field(default_factory=list)
    """Ids of the top ten documents per query, best first; empty without a search."""
    width: int | None = None
    """Number of dimensions of the vectors; None for a model without vectors."""
    weights: Sequence[str] = ()
    """Actual precisions of the weights."""
    precision_check: PrecisionCheck | None = None
    """Similarity of the vectors to those in float32; None for models in float32 and for truncated models."""
    machine: str | None = None
    """Digest of the machine on which `queries_a_second` was measured."""
    floor: str | None = None
    """Of a trivial baseline: `floor` if it ignores the texts, `shortcut` if it reads only their surface."""
    inputs: Sequence[SeenTexts] = ()
    """Inputs per role: prompt, maximum length, side of a Router, and the share of truncated texts."""


def scored(
    model: EvaluatedModel, task: EvaluationTask, folder: Path, precision_check: PrecisionCheck | None = None
) -> tuple[Scored, bool]:
    """Return the scores of a model on a task, and whether they were stored before.

    `folder` stores scores by a digest of the task's content, the model, its precision, and mteb's version. RunFailed if
    the mean over single queries differs from mteb's score.
    """
    if stored := scored_before(model, task, folder):
        return stored, True
    scores, files = _score(model, task)
    if precision_check is not None:
        scores = replace(scores, precision_check=precision_check)
    folder.mkdir(parents=True, exist_ok=True)
    path = _path(model, task, folder)
    mteb_results.keep(files, path)  # before the scores, as a model with stored scores is not scored again
    write_json(path, asdict(scores))
    return scores, False


def kept_result(model: EvaluatedModel, task: EvaluationTask, folder: Path) -> mteb_results.KeptResult:
    """Return the stored mteb result of a model on a task."""
    return mteb_results.KeptResult(model.name, task.name, _path(model, task, folder))


def scored_before(model: EvaluatedModel, task: EvaluationTask, folder: Path) -> Scored | None:
    """Return the stored scores of a model on a task; None if there are none."""
    path = _path(model, task, folder)
    if not path.is_file():
        return None
    stored = read_json(path)
    return restored(stored)


def restored(stored: Mapping[str, Any]) -> Scored:
    """Return stored scores as `Scored`; fields that an older version did not store have their default."""
    known = {score_field.name: stored[score_field.name] for score_field in fields(Scored) if score_field.name in stored}
    if check := known.get("precision_check"):
        known["precision_check"] = PrecisionCheck.from_json(check)
    return Scored(**known | {"inputs": [SeenTexts.from_json(text_input) for text_input in known.get("inputs", ())]})


def _path(model: EvaluatedModel, task: EvaluationTask, folder: Path) -> Path:
    who = [model.name, model.revision, model.precision, model.width]
    return folder / f"{digest([VERSION, task.content, task.kind.mteb.type, *who, version('mteb')])}.json"


def _score(model: EvaluatedModel, task: EvaluationTask) -> tuple[Scored, dict[str, str]]:
    """Return scores from the predictions that mteb saves for one task, and the files of mteb's own result."""
    quiet()
    task_data, loaded = task.data, model.loaded
    task.made.rng_state = random.Random(task.made.seed)  # noqa: S311 - mteb's; the last model advanced it
    aside = getattr(loaded, "aside", 0.0)
    getattr(loaded, "seen", {}).clear()
    with tempfile.TemporaryDirectory() as folder:
        result = imported().evaluate(
            loaded,
            task.made,
            cache=None,
            co2_tracker=False,
            prediction_folder=folder,
            show_progress_bar=False,
            encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
        )
        saved = read_json(Path(folder) / task.made.prediction_file_name)
    split = task.made.metadata.eval_splits[0]
    task_result = result.task_results[0]
    mteb_scores = next(row for row in task_result.scores[split] if row["hf_subset"] == task.subset)
    item_fields = task.scorer.items(saved[task.subset][split], task, task_data)
    seconds = sum(
        phase["end"] - phase["start"] for phase in task_result.evaluation_phases or () if phase["name"] in ASKED
    )
    seconds -= getattr(loaded, "aside", 0.0) - aside
    n_texts = task.scorer.texts * len(item_fields["queries"])
    model_scores = Scored(
        model=model.name,
        revision=model.revision,
        precision=model.precision,
        batch=getattr(loaded, "size", None),
        main=float(mteb_scores[task.measure]),
        metrics={name: metric for name, metric in mteb_scores.items() if _is_stored(name, metric)},
        queries_a_second=round(n_texts / seconds, 3) if seconds > 0 and model.width is None else None,
        machine=machine.identity().id,
        width=getattr(loaded, "dim", None),
        weights=precisions(loaded),
        inputs=list(getattr(loaded, "seen", {}).values()),
        **item_fields,
    )
    _check_score(model_scores, task)
    return model_scores, mteb_results.files_of(task_result, model, {"batch_size": model_scores.batch or BATCH})


def _check_score(model_scores: Scored, task: EvaluationTask) -> None:
    ours = point(task.scorer, model_scores.values)
    if not abs(ours - model_scores.main) <= NEAR:
        raise RunFailed(
            f"{task.name}, {model_scores.model}: mteb says {task.measure} {model_scores.main:.5f}, and the scores of "
            f"single queries make {ours:.5f}; expected the same; nothing was kept"
        )


def point(scorer: Scorer, values: Values, reading: str = READINGS[0]) -> float:
    """Return the main measure over all items, for one way of scoring."""
    return float(scorer.score(values, reading)(np.ones((1, scorer.size(values))))[0])


def _is_stored(name: str, metric: Json) -> bool:
    """Return whether a measure of mteb is stored: those at 10 and 100, correlations, and `OTHERS`."""
    is_common = name.endswith(("_at_10", "_at_100", "pearson", "spearman")) and not name.startswith("nauc")
    return (is_common or name in OTHERS) and isinstance(metric, float)


# All models on all tasks: one model after the other, so that only one is in memory.

Tell = Callable[[str], None]


@dataclass
class ScoredRound:
    """Scores of all models, including truncated ones, in the order in which they were named."""

    models: list[EvaluatedModel] = field(default_factory=list)
    by_task: list[list[Scored]] = field(default_factory=list)
    """The models' scores per task, in the order of the tasks."""
    notes: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    """Models with a score from another machine; their queries per second are not shown."""

    def on(self, tasks: Sequence[EvaluationTask]) -> Iterator[tuple[EvaluationTask, list[Scored]]]:
        """Yield every task with the models' scores."""
        return zip(tasks, self.by_task, strict=True)

    def results(self, tasks: Sequence[EvaluationTask], folder: Path) -> Iterator[KeptResult]:
        """Yield mteb's stored results, last task first: of two tasks with the same name, the first is written last."""
        model_by_name = {model.name: model for model in self.models}
        for task, task_scores in reversed(list(self.on(tasks))):
            yield from (kept_result(model_by_name[score.model], task, folder) for score in task_scores)


def score_all(
    models: Sequence[EvaluatedModel],
    tasks: Sequence[EvaluationTask],
    widths: Sequence[int],
    folder: Path,
    tell: Tell,
    progress: Progress,
) -> ScoredRound:
    """Return the scores of every model on every task that it supports; stored scores are reused.

    `tell` is called for each model and task.
    """
    scored_round = ScoredRound(by_task=[[] for _ in tasks])
    for model in models:
        able = [index for index, task in enumerate(tasks) if model.has_vectors or not task.scorer.vectors]
        if unable := [task.name for index, task in enumerate(tasks) if index not in able]:
            scored_round.notes.append(f"{model.name}: has no vectors, so no score on {', '.join(unable)}")
        checks = _checks(model, [tasks[index] for index in able], folder, progress)
        for cut_model in _cut_models(model, able, tasks, widths, folder, scored_round):
            scored_round.models.append(cut_model)
            label = StepLabel(f"scoring {cut_model.name}", "tasks")
            for index in counting(able, progress, label, len(able)):
                task = tasks[index]
                scores, was_stored = scored(cut_model, task, folder, checks.get(task.content))
                tell(f"{task.name}: {cut_model.name} {scores.main:.5f}" + (" (scored before)" if was_stored else ""))
                if scores.queries_a_second is not None and scores.machine != machine.identity().id:
                    scored_round.elsewhere.append(scores.model)
                    scores = replace(scores, queries_a_second=None)
                scored_round.by_task[index].append(scores)
                scored_round.notes += _routes(scores, task)
        model.release()
    if scored_round.elsewhere:
        scored_round.notes.append(
            f"queries per second are not shown of {', '.join(dict.fromkeys(scored_round.elsewhere))}: scored on "
            "another machine, or before the machine was kept; --speed measures all models on this one"
        )
    return scored_round


def widths_of(text: str | None) -> list[int]:
    """Return the widths of the option --dims, such as 768,512,256; ConfigError for anything else."""
    if text is None:
        return []
    numbers = [number.strip() for number in text.split(",") if number.strip()]
    if not numbers or not all(number.isascii() and number.isdigit() and int(number) > 0 for number in numbers):
        raise ConfigError(
            f"--set dims={text}: expected numbers of coordinates from 1, separated by commas, as in 512,256"
        )
    return list(dict.fromkeys(map(int, numbers)))


def _cut_models(
    model: EvaluatedModel,
    able: Sequence[int],
    tasks: Sequence[EvaluationTask],
    widths: Sequence[int],
    folder: Path,
    scored_round: ScoredRound,
) -> Iterator[EvaluatedModel]:
    """Yield a model; after it was scored and its width is known, yield its truncated models."""
    if widths and any(scored_before(model, tasks[index], folder) is None for index in able):
        model.remember()
    yield model
    full_width = next((scored_round.by_task[index][-1].width for index in able), None)
    if not widths or full_width is None:
        return
    if too_wide := [str(width) for width in widths if width >= full_width]:
        scored_round.notes.append(
            f"{model.name}: has vectors of {full_width} coordinates and is not scored at {', '.join(too_wide)}"
        )
    yield from (model.cut(width) for width in widths if width < full_width)


def _checks(
    model: EvaluatedModel, tasks: Sequence[EvaluationTask], folder: Path, progress: Progress
) -> Mapping[str, PrecisionCheck]:
    """Return content -> similarity of a model to its float32 copy, on texts of every task without stored scores.

    The copy is freed before the model is loaded, so both are never in memory together.
    """
    to_score = [task for task in tasks if scored_before(model, task, folder) is None]
    if model.exact is None or not to_score:
        return {}
    with waiting(progress, StepLabel(f"encoding in float32, {model.name}")):
        exact = _float32_vectors(model, to_score)
    loading.collected()
    if not exact:
        return {}
    plain = model.loaded.plain
    with waiting(progress, StepLabel(f"comparing {model.precision} with float32, {model.name}")):
        return {
            task.content: compared(
                model.name, model.precision, task.name, sampled_rows(plain, task), exact[task.content]
            )
            for task in to_score
        }


def _float32_vectors(model: EvaluatedModel, tasks: Sequence[EvaluationTask]) -> dict[str, Rows]:
    """Return task content -> vectors of the float32 copy; computed on the CPU if the copy does not fit on the GPU.

    {} for a model without vectors.
    """
    assert model.exact is not None
    first = (model.device or "").split(",")[0] or None
    try:
        return _rows(model.exact(first), tasks)
    except Exception as error:
        if first in (None, "cpu") or not out_of_memory(error):
            raise
    loading.collected()
    return _rows(model.exact("cpu"), tasks)


def _rows(copy: Foreign, tasks: Sequence[EvaluationTask]) -> dict[str, Rows]:
    if not loading.makes_vectors(copy):
        return {}
    return {task.content: sampled_rows(copy, task) for task in tasks}


def _routes(scores: Scored, task: EvaluationTask) -> Iterator[str]:
    """Yield a note if a model with separate query and document encoders is scored on sentences, which have no role."""
    for text_input in scores.inputs:
        if text_input.route and text_input.role == ROLES[""]:
            what = "both sentences" if task.kind.mteb.type == "STS" else "all sentences"
            yield (
                f"{task.name}: {scores.model} encodes {what} by its {text_input.route} side, the route of texts "
                "without a role; the other side is not scored there"
            )
