"""Every model on every task: one model after the other, so that one is in memory, and what was scored stays scored."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from curate.commands.evaluate import loading, machine
from curate.commands.evaluate.batches import out_of_memory
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.mteb_results import KeptResult
from curate.commands.evaluate.precision import Rows, compared, sampled_rows
from curate.commands.evaluate.scoring import Scored, kept_result, scored, scored_before
from curate.commands.evaluate.tasks import EvaluationTask, Foreign
from curate.commands.evaluate.text_inputs import ROLES
from curate.core.errors import ConfigError
from curate.core.progress import StepLabel, counting, waiting
from curate.core.protocols import Progress
from curate.retrieval.vectors.precision import PrecisionCheck

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
        for each in _with_widths(model, able, tasks, widths, folder, done):
            done.models.append(each)
            label = StepLabel(f"scoring {each.name}", "tasks")
            for place in counting(able, progress, label, len(able)):
                task = tasks[place]
                found, kept = scored(each, task, folder, checks.get(task.content))
                tell(f"{task.name}: {each.name} {found.main:.5f}" + (" (scored before)" if kept else ""))
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


def _with_widths(
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
