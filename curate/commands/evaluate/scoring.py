"""One model on one task: scored by stock mteb once, then found by what it was made of."""

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
from curate.commands.evaluate.text_inputs import ROLES
from curate.core.config import Json, digest
from curate.core.errors import ConfigError, RunFailed
from curate.core.progress import StepLabel, counting, waiting
from curate.core.protocols import Progress
from curate.retrieval.vectors.precision import PrecisionCheck
from curate.system.files import read_json, write_json
from curate.tables.exporters.mteb import quiet

VERSION = 3
"""Of what is kept; another one is scored again."""
BATCH = 32
NEAR = 2e-5
"""How far our mean may be from mteb's, which it rounds to five digits."""
ASKED = {
    "Encoding queries",
    "Encoding queries and documents",
    "Encoding samples 1",
    "Encoding samples 2",
    "Encoding test samples",
    "Encoding",
}
"""mteb's names of the phases in which queries, sentences, or texts to be labelled are answered for."""
OTHERS = {"accuracy", "f1", "f1_weighted", "v_measure", "ami", "max_ap", "max_f1", "max_accuracy", "cosine_ap"}
"""Measures that are kept beside those at 10 and 100 and the correlations."""


@dataclass(frozen=True)
class Scored:
    """What one model did on one task."""

    model: str
    revision: str
    precision: str
    batch: int | None
    """Largest batch that fitted, where it was looked for."""
    main: float
    """The measure that counts, as mteb has it."""
    metrics: Mapping[str, float]
    """Other measures of mteb."""
    queries_a_second: float | None
    """Queries, or sentences of STS, over the seconds that they took; the corpus is left out where mteb lets it be."""
    queries: list[str]
    """Ids in order; places of the pairs of STS."""
    values: Mapping[str, list[float]]
    """Score of every query by reading of doubt; of other kinds what their scorer made of the predictions."""
    first: list[int | None]
    """Rank of every query's first relevant document; empty where nothing is retrieved."""
    shown: int = 0
    holes: int = 0
    doubtful: int = 0
    """Documents among the first ten of all queries, and those of them never judged, and in doubt."""
    top: Sequence[Sequence[str]] = field(default_factory=list)
    """Ids of every query's first ten documents, best first; empty where no corpus was searched."""
    width: int | None = None
    """Coordinates of a vector; None for what makes none."""
    weights: Sequence[str] = ()
    """Precisions that the weights were really in."""
    precision_check: Mapping[str, Json] | None = None
    """How near the vectors are to those of float32; None for those of float32, and for widths cut out of others."""
    machine: str | None = None
    """Digest of the machine that scored, to which the queries per second belong."""
    inputs: Sequence[Mapping[str, Json]] = ()
    """Per role: prompt, longest input, side of a Router, and the share of texts that is cut."""


def scored(
    model: EvaluatedModel, task: EvaluationTask, folder: Path, precision_check: PrecisionCheck | None = None
) -> tuple[Scored, bool]:
    """Return what a model did on a task, and whether that was kept from before.

    `folder` holds what was scored before, by the digest of the task's content, the model, its precision, and mteb's
    version. RunFailed if the scores of single queries do not add up to mteb's.
    """
    if kept := scored_before(model, task, folder):
        return kept, True
    found, files = _score(model, task)
    if precision_check is not None:
        found = replace(found, precision_check=precision_check.shown())
    folder.mkdir(parents=True, exist_ok=True)
    path = _path(model, task, folder)
    mteb_results.keep(files, path)  # first: what has scores is not scored again
    write_json(path, asdict(found))
    return found, False


def kept_result(model: EvaluatedModel, task: EvaluationTask, folder: Path) -> mteb_results.KeptResult:
    """Return where mteb's own result of a model that was scored on a task is kept."""
    return mteb_results.KeptResult(model.name, task.name, _path(model, task, folder))


def scored_before(model: EvaluatedModel, task: EvaluationTask, folder: Path) -> Scored | None:
    """Return what a model did on a task when it was scored before; None if it was not."""
    path = _path(model, task, folder)
    if not path.is_file():
        return None
    kept = read_json(path)
    return restored(kept)


def restored(kept: Mapping[str, Any]) -> Scored:
    """Return what was written; what an older version did not write yet has its default."""
    return Scored(**{each.name: kept[each.name] for each in fields(Scored) if each.name in kept})


def _path(model: EvaluatedModel, task: EvaluationTask, folder: Path) -> Path:
    who = [model.name, model.revision, model.precision, model.width]
    return folder / f"{digest([VERSION, task.content, task.kind.mteb.type, *who, version('mteb')])}.json"


def _score(model: EvaluatedModel, task: EvaluationTask) -> tuple[Scored, dict[str, str]]:
    """Run mteb on one task, look at the rankings, or similarities, that it saved, and let it write its result."""
    quiet()
    data, loaded = task.data, model.loaded
    task.made.rng_state = random.Random(task.made.seed)  # noqa: S311 - mteb's, which the last model left elsewhere
    aside = getattr(loaded, "aside", 0.0)
    getattr(loaded, "seen", {}).clear()
    with tempfile.TemporaryDirectory() as place:
        result = imported().evaluate(
            loaded,
            task.made,
            cache=None,
            co2_tracker=False,
            prediction_folder=place,
            show_progress_bar=False,
            encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
        )
        saved = read_json(Path(place) / task.made.prediction_file_name)
    split = task.made.metadata.eval_splits[0]
    whole = result.task_results[0]
    scores = next(row for row in whole.scores[split] if row["hf_subset"] == task.subset)
    found = task.scorer.items(saved[task.subset][split], task, data)
    asked = sum(each["end"] - each["start"] for each in whole.evaluation_phases or () if each["name"] in ASKED)
    asked -= getattr(loaded, "aside", 0.0) - aside
    answered = task.scorer.texts * len(found["queries"])
    made = Scored(
        model=model.name,
        revision=model.revision,
        precision=model.precision,
        batch=getattr(loaded, "size", None),
        main=float(scores[task.measure]),
        metrics={name: value for name, value in scores.items() if _worth(name, value)},
        queries_a_second=round(answered / asked, 3) if asked > 0 and model.width is None else None,
        machine=str(machine.identity()["id"]),
        width=getattr(loaded, "dim", None),
        weights=precisions(loaded),
        inputs=[each.shown() for each in getattr(loaded, "seen", {}).values()],
        **found,
    )
    _agree(made, task)
    return made, mteb_results.files_of(whole, model, {"batch_size": made.batch or BATCH})


def _agree(found: Scored, task: EvaluationTask) -> None:
    ours = point(task.scorer, found.values)
    if not abs(ours - found.main) <= NEAR:
        raise RunFailed(
            f"{task.name}, {found.model}: mteb says {task.measure} {found.main:.5f}, and the scores of single queries "
            f"make {ours:.5f}; expected the same; nothing was kept"
        )


def point(scorer: Scorer, values: Values, reading: str = READINGS[0]) -> float:
    """Return the measure that counts over all items, in one reading."""
    return float(scorer.score(values, reading)(np.ones((1, scorer.size(values))))[0])


def _worth(name: str, value: Json) -> bool:
    """Say whether one of mteb's many measures is kept: those at 10 and 100, correlations, and those of `OTHERS`."""
    kept = name.endswith(("_at_10", "_at_100", "pearson", "spearman")) and not name.startswith("nauc")
    return (kept or name in OTHERS) and isinstance(value, float)


# Every model on every task: one model after the other, so that one is in memory, and what was scored stays scored.

Tell = Callable[[str], None]


@dataclass
class ScoredRound:
    """What all models did: with those that were cut out of others, in the order in which they were named."""

    models: list[EvaluatedModel] = field(default_factory=list)
    by_task: list[list[Scored]] = field(default_factory=list)
    """The models' scores on every task, in the order of the tasks."""
    notes: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    """Models with a score that another machine made, so that their queries per second are not shown."""

    def on(self, tasks: Sequence[EvaluationTask]) -> Iterator[tuple[EvaluationTask, list[Scored]]]:
        """Yield every task with what the models did on it."""
        return zip(tasks, self.by_task, strict=True)

    def results(self, tasks: Sequence[EvaluationTask], folder: Path) -> Iterator[KeptResult]:
        """Yield where mteb's results are kept, the last task's first: of two of a name the first is written last."""
        named = {model.name: model for model in self.models}
        for task, found in reversed(list(self.on(tasks))):
            yield from (kept_result(named[each.model], task, folder) for each in found)


def score_all(
    models: Sequence[EvaluatedModel],
    tasks: Sequence[EvaluationTask],
    widths: Sequence[int],
    folder: Path,
    tell: Tell,
    progress: Progress,
) -> ScoredRound:
    """Score every model on every task that it can do; `tell` hears of each. What `folder` holds is not scored again."""
    done = ScoredRound(by_task=[[] for _ in tasks])
    for model in models:
        able = [place for place, task in enumerate(tasks) if model.has_vectors or not task.scorer.vectors]
        checks = _checks(model, [tasks[place] for place in able], folder, progress)
        for cut_model in _cut_models(model, able, tasks, widths, folder, done):
            done.models.append(cut_model)
            label = StepLabel(f"scoring {cut_model.name}", "tasks")
            for place in counting(able, progress, label, len(able)):
                task = tasks[place]
                found, kept = scored(cut_model, task, folder, checks.get(task.content))
                tell(f"{task.name}: {cut_model.name} {found.main:.5f}" + (" (scored before)" if kept else ""))
                done.by_task[place].append(_of_here(found, done))
                done.notes += _routes(found, task)
        model.release()
    if done.elsewhere:
        done.notes.append(
            f"queries per second are not shown of {', '.join(dict.fromkeys(done.elsewhere))}: scored on another "
            "machine, or before the machine was kept; --speed measures all models on this one"
        )
    return done


def widths_of(text: str | None) -> list[int]:
    """Return the widths of --dims, such as 768,512,256; ConfigError for anything else."""
    if text is None:
        return []
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise ConfigError(f"--dims {text}: expected numbers of coordinates from 1, separated by commas, as in 512,256")
    return list(dict.fromkeys(map(int, parts)))


def _cut_models(
    model: EvaluatedModel,
    able: Sequence[int],
    tasks: Sequence[EvaluationTask],
    widths: Sequence[int],
    folder: Path,
    done: ScoredRound,
) -> Iterator[EvaluatedModel]:
    """Yield a model, and once it was scored, so that its width is known, those that are cut out of it."""
    if widths and any(scored_before(model, tasks[place], folder) is None for place in able):
        model.remember()
    yield model
    whole = next((done.by_task[place][-1].width for place in able), None)
    if not widths or whole is None:
        return
    if wide := [str(width) for width in widths if width >= whole]:
        done.notes.append(f"{model.name}: has vectors of {whole} coordinates and is not scored at {', '.join(wide)}")
    yield from (model.cut(width) for width in widths if width < whole)


def _checks(
    model: EvaluatedModel, tasks: Sequence[EvaluationTask], folder: Path, progress: Progress
) -> Mapping[str, PrecisionCheck]:
    """Compare a model with its float32 copy on texts of every task that is still to be scored, by the task's content.

    The copy goes before the model comes, so both are never in memory together.
    """
    left = [task for task in tasks if scored_before(model, task, folder) is None]
    if model.exact is None or not left:
        return {}
    with waiting(progress, StepLabel(f"encoding in float32, {model.name}")):
        exact = _exact(model, left)
    loading.collected()
    if not exact:
        return {}
    plain = model.loaded.plain
    with waiting(progress, StepLabel(f"comparing {model.precision} with float32, {model.name}")):
        return {
            task.content: compared(
                model.name, model.precision, task.name, sampled_rows(plain, task), exact[task.content]
            )
            for task in left
        }


def _exact(model: EvaluatedModel, tasks: Sequence[EvaluationTask]) -> dict[str, Rows]:
    """Return the float32 copy's vectors by a task's content; on the CPU where the GPU is too small for the copy.

    Empty for a model that has no vectors to compare.
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


def _of_here(found: Scored, done: ScoredRound) -> Scored:
    """Return a score without the queries per second of another machine."""
    if found.queries_a_second is None or found.machine == machine.identity()["id"]:
        return found
    done.elsewhere.append(found.model)
    return replace(found, queries_a_second=None)


def _routes(found: Scored, task: EvaluationTask) -> Iterator[str]:
    """Yield which side of a model of two sides reads sentences, which are neither queries nor documents."""
    for each in found.inputs:
        if each["route"] and each["role"] == ROLES[""]:
            what = "both sentences" if task.kind.mteb.type == "STS" else "all sentences"
            yield (
                f"{task.name}: {found.model} encodes {what} by its {each['route']} side, the route of texts "
                "without a role; the other side is not scored there"
            )
