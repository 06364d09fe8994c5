"""Evaluate: score models on a folder's tasks by mteb, compare them, and write what was found.

Out, in a folder: `evaluation.json` (every figure), `README.md` (the tables), `queries.parquet` (every query and model),
`tops.parquet` (the first ten documents), a bar chart per task and scatters; `results`, as mteb's cache has them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from curate.commands.evaluate import averages, corrected, figures, mteb_results, page, provenance, query_sources, tasks
from curate.commands.evaluate import speed as passes
from curate.commands.evaluate.board import Board
from curate.commands.evaluate.figures import lead
from curate.commands.evaluate.floors import floors
from curate.commands.evaluate.mteb_models import BASELINES, EvaluatedModel, named
from curate.commands.evaluate.scoring import score_all
from curate.commands.evaluate.tasks import EvaluationTask, imported
from curate.core.config import Json
from curate.core.errors import UserError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, quiet
from curate.pipeline.stage import home
from curate.runs.outputs import free_place
from curate.stats.bootstrap import FEW
from curate.system.files import write_json, write_table, write_text


@dataclass(frozen=True)
class EvaluationOptions:
    """What a user wants to know."""

    folder: Path
    models: Sequence[str] = ()
    legacy: Sequence[str] = ()
    """Folders, or names of tasks that mteb knows, to compare the order of the models with."""
    baselines: bool = True
    """Whether BM25 and the offline encoders are scored too."""
    device: str | None = None
    out: Path | None = None
    """Where it is written; `evaluation` in the run folder without it, else `evaluation/NAME`."""
    reviews: Path | None = None
    """Run whose samples correct the scores; without it that of the folder."""
    seed: int = 7
    floors: bool = True
    """Whether what a score is worth without meaning is scored too."""
    compared: averages.ComparisonOptions = field(default_factory=averages.ComparisonOptions)
    dtype: str = "auto"
    """Precision that weights are loaded in."""
    dims: Sequence[int] = ()
    """Widths that vectors are cut to: each is scored as a further model."""
    speed: int | None = None
    """Queries of a speed pass; without it what this machine measured last is shown."""


def evaluate(
    order: EvaluationOptions, tell: Callable[[str], None] = lambda _line: None, progress: Progress = quiet
) -> dict[str, Any]:
    """Return all figures as plain values, and write them; `tell` hears of every model and task that is scored.

    What was scored before is taken from `evaluations` in the home folder: the same content, model, precision and mteb.
    """
    if order.out is not None:
        free_place(order.out, ["evaluation.json"])
    run = provenance.run_of(order.folder)
    names = [*order.models, *(BASELINES if order.baselines else ())]
    if not names:
        raise UserError("evaluate: found no model; name some with --models, or leave out --no-baselines")
    with waiting(progress, StepLabel("loading mteb")):
        imported()
    reviews = corrected.score_reviews(_reviewed(order.reviews) or run)
    asked = named(names, provenance.definitions(run), order.device, progress, order.dtype, tell)
    new = tasks.in_folder(order.folder)
    old = [task for source in order.legacy for task in tasks.legacy(source)]
    compared = averages.prepared(order.compared, asked, [*new, *old], order.dims)
    kinds = {task.kind.mteb.type for task in new}
    every = [*new, *(task for task in old if task.kind.mteb.type in kinds)]
    done = score_all(asked, every, order.dims, home() / "evaluations", tell, progress)
    models = done.models
    scored = [Board(task, mine, lead=lead(task, [each.model for each in mine])) for task, mine in done.on(every)]
    known = [_with_floors(board, order, progress) for board in scored[: len(new)] if board.scored]
    before = scored[len(new) :]
    with waiting(progress, StepLabel("testing differences")):
        found: dict[str, Any] = {
            "models": _made_by(models, new),
            "families": provenance.of_family([model.name for model in models], new, run),
            "tasks": [figures.of_task(board, order.seed, reviews, compared.against) for board in known],
            "legacy": [
                figures.of_legacy(_only(one, other), _only(other, one), order.seed)
                for one in known
                for other in before
                if other.task.kind.mteb.type == one.task.kind.mteb.type
            ],
            "missed": provenance.missed(run),
        }
        kind_of = {task.name: task.kind.mteb.type for task in new}
        boards = [*known, *(board for board in before if board.scored)]
        found |= averages.figures(compared, names, boards, kind_of, order.seed)
    whole = [model for model in models if model.width is None]  # widths are cut out of kept vectors: no speed
    speeds = passes.of_tasks(whole, new, order.speed, order.seed, home() / "evaluations" / "speed", progress)
    found["tasks"] = [{**task, "speed": speeds.get(task["name"])} for task in found["tasks"]]
    unmatched = sorted({task.source for task in old if task.kind.mteb.type not in kinds})
    found["notes"] = [*_circular(models, new), *_notes(found, unmatched), *corrected.unread(reviews)]
    found["notes"] += [
        *averages.notes(compared, found, models),
        *(note for speed in speeds.values() for note in passes.notes(speed)),
        *done.notes,
    ]
    out = order.out or (run / "evaluation" if run else Path("evaluation") / order.folder.resolve().name)
    found["notes"] += mteb_results.write(out, done.results(every, home() / "evaluations"))
    _write(out, found, known)
    return {**found, "folder": str(out)}


def _write(out: Path, found: dict[str, Any], known: Sequence[Board]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "evaluation.json", found)
    figures.per_query(known).write_parquet(out / "queries.parquet")
    if not (first := figures.tops(known)).is_empty():
        write_table(out, "tops", first)
    for name, text in page.files(found).items():
        write_text(out / name, text)


def _reviewed(folder: Path | None) -> Path | None:
    """Return the run of --reviews; UserError if it is none."""
    if folder is not None and (run := provenance.run_of(folder)) is None:
        raise UserError(f"--reviews {folder}: found no run there, expected a run folder with a sample that people read")
    return None if folder is None else run


def _with_floors(board: Board, order: EvaluationOptions, progress: Progress) -> Board:
    """Return a board with the floors and shortcuts of its task, if any model was scored."""
    if not order.floors or not board.scored:
        return board
    with waiting(progress, StepLabel(f"scoring floors, {board.task.name}")):
        return replace(board, floors=floors(board.task, home() / "evaluations"), seed=order.seed)


def _only(board: Board, other: Board) -> Board:
    """Return a board with the models that the other has too; both hold them in the order they were named in."""
    there = {each.model for each in other.scored}
    return replace(board, scored=[each for each in board.scored if each.model in there], floors=())


def _made_by(models: Sequence[EvaluatedModel], new: Sequence[EvaluationTask]) -> list[Json]:
    parts = provenance.roles([model.name for model in models], new)
    return [
        {
            "model": model.name,
            "revision": model.revision,
            "baseline": model.name in BASELINES,
            "roles": parts[model.name],
            "circular": any(provenance.circular(model.name, task) for task in new),
        }
        for model in models
    ]


def _circular(models: Sequence[EvaluatedModel], new: Sequence[EvaluationTask]) -> list[str]:
    """Return who mined or wrote what a task holds, a sentence per task; those who judged are told of all tasks."""
    parts = {task.name: {model.name: provenance.circular(model.name, task) for model in models} for task in new}
    told = {
        task: [f"{name} ({' and '.join(roles)})" for name, roles in some.items() if set(roles) - {"judge"}]
        for task, some in parts.items()
    }
    return [
        f"circular: {task}: {', '.join(names)} had a part in its making; such a model scores otherwise than it deserves"
        for task, names in told.items()
        if names
    ]


def _notes(found: dict[str, Any], unmatched: Sequence[str]) -> list[str]:
    """Return what must be known before a figure is used."""
    notes = []
    if judged := [each["model"] for each in found["models"] if "judge" in each["roles"]]:
        notes.append(
            f"circular: {', '.join(judged)} judged this benchmark: the labels are partly their own, and their "
            "scores prove nothing"
        )
    notes += provenance.family_notes(found["families"])
    notes += [each for task in found["tasks"] for each in _not_above(task)]
    notes += [warning for task in found["tasks"] for warning in corrected.warnings(task["name"], task["levels"])]
    notes += query_sources.notes(found["tasks"])
    notes += [
        f"{task['name']}: {task['queries']} {task['unit']}, under {FEW}: these intervals are too narrow"
        for task in found["tasks"]
        if task["queries"] < FEW
    ]
    notes += [
        f"{each['new']} and {each['old']}: the orders of {each['models']} models are not compared; that takes "
        f"{each['fewest']}, and says little even then"
        for each in found["legacy"]
        if each["models"] < each["fewest"]
    ]
    notes += [f"{source}: no task of the same kind to compare with" for source in unmatched]
    return notes


def _not_above(task: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence on the models that do not beat the best floor or shortcut of a task."""
    against = task["against_floors"]
    if against and (low := [each["model"] for each in against["models"] if not each["above"]]):
        yield (
            f"{task['name']}: {', '.join(low)} not above the {against['sort']} `{against['best']}` "
            f"({100 * against['score']:.2f}) by a paired 95 % interval: such a score shows nothing"
        )
