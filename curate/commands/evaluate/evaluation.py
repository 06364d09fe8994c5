"""Evaluation of models on a folder's tasks with mteb: scores, comparisons, and output files.

Output files: `evaluation.json` (all figures), `README.md` (tables), `queries.parquet` (scores per query and model),
`tops.parquet` (top ten documents), bar charts and scatter plots; `results`, in the layout of mteb's cache.
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
    """Options of an evaluation."""

    folder: Path
    models: Sequence[str] = ()
    legacy: Sequence[str] = ()
    """Folders, or names of mteb tasks, whose rankings of the models are compared with the new ones."""
    baselines: bool = True
    """Whether BM25 and the offline encoders are scored as well."""
    device: str | None = None
    out: Path | None = None
    """Output folder; default: `evaluation` in the run folder, or `evaluation/NAME` without a run."""
    reviews: Path | None = None
    """Run whose review samples correct the scores; default: the run of `folder`."""
    seed: int = 7
    floors: bool = True
    """Whether trivial baselines are scored as well."""
    compared: averages.ComparisonOptions = field(default_factory=averages.ComparisonOptions)
    dtype: str = "auto"
    """Precision of the weights."""
    dims: Sequence[int] = ()
    """Widths to which vectors are truncated; each width is scored as another model."""
    speed: int | None = None
    """Number of queries in a speed measurement; None: show the last measurement on this machine."""


def evaluate(
    order: EvaluationOptions, tell: Callable[[str], None] = lambda _line: None, progress: Progress = quiet
) -> dict[str, Any]:
    """Return all figures of an evaluation, and write its files; `tell` is called for every scored model and task.

    Scores of equal content, model, precision and mteb version are read from `evaluations` in the home folder.
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
    wanted_models = named(names, provenance.definitions(run), order.device, progress, order.dtype, tell)
    new = tasks.in_folder(order.folder)
    old = [task for source in order.legacy for task in tasks.legacy(source)]
    compared = averages.prepared(order.compared, wanted_models, [*new, *old], order.dims)
    kinds = {task.kind.mteb.type for task in new}
    every = [*new, *(task for task in old if task.kind.mteb.type in kinds)]
    result = score_all(wanted_models, every, order.dims, home() / "evaluations", tell, progress)
    models = result.models
    scored = [Board(task, rows, lead=lead(task, [row.model for row in rows])) for task, rows in result.on(every)]
    new_boards = [_with_floors(board, order, progress) for board in scored[: len(new)] if board.scored]
    old_boards = scored[len(new) :]
    with waiting(progress, StepLabel("testing differences")):
        summary: dict[str, Any] = {
            "models": _model_rows(models, new),
            "families": provenance.of_family([model.name for model in models], new, run),
            "tasks": [figures.of_task(board, order.seed, reviews, compared.against) for board in new_boards],
            "legacy": [
                figures.of_legacy(_restricted(new_board, old_board), _restricted(old_board, new_board), order.seed)
                for new_board in new_boards
                for old_board in old_boards
                if old_board.task.kind.mteb.type == new_board.task.kind.mteb.type
            ],
            "missed": provenance.missed(run),
        }
        kind_of = {task.name: task.kind.mteb.type for task in new}
        boards = [*new_boards, *(board for board in old_boards if board.scored)]
        summary |= averages.figures(compared, names, boards, kind_of, order.seed)
    # Truncated models have no speed of their own: their vectors are cut from stored ones.
    full_width = [model for model in models if model.width is None]
    speeds = passes.of_tasks(full_width, new, order.speed, order.seed, home() / "evaluations" / "speed", progress)
    summary["tasks"] = [{**task, "speed": speeds.get(task["name"])} for task in summary["tasks"]]
    unmatched = sorted({task.source for task in old if task.kind.mteb.type not in kinds})
    summary["notes"] = [*_circular_warnings(models, new), *_notes(summary, unmatched), *corrected.unread(reviews)]
    summary["notes"] += [
        *averages.notes(compared, summary, models),
        *(note for speed in speeds.values() for note in passes.notes(speed)),
        *result.notes,
    ]
    out = order.out or (run / "evaluation" if run else Path("evaluation") / order.folder.resolve().name)
    summary["notes"] += mteb_results.write(out, result.results(every, home() / "evaluations"))
    _write(out, summary, new_boards)
    return {**summary, "folder": str(out)}


def _write(out: Path, all_figures: dict[str, Any], boards: Sequence[Board]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "evaluation.json", all_figures)
    figures.per_query(boards).write_parquet(out / "queries.parquet")
    if not (first := figures.tops(boards)).is_empty():
        write_table(out, "tops", first)
    for name, text in page.files(all_figures).items():
        write_text(out / name, text)


def _reviewed(folder: Path | None) -> Path | None:
    """Return the run folder given as `reviews`, or None; UserError if it is no run."""
    if folder is not None and (run := provenance.run_of(folder)) is None:
        raise UserError(f"reviews: {folder}: found no run there, expected a run folder with a sample that people read")
    return None if folder is None else run


def _with_floors(board: Board, order: EvaluationOptions, progress: Progress) -> Board:
    """Return the board with the trivial baselines of its task; unchanged without a scored model."""
    if not order.floors or not board.scored:
        return board
    with waiting(progress, StepLabel(f"scoring floors, {board.task.name}")):
        return replace(board, floors=floors(board.task, home() / "evaluations"), seed=order.seed)


def _restricted(board: Board, reference: Board) -> Board:
    """Return the board with only those models that the reference board has as well, in the same order."""
    models = {scored.model for scored in reference.scored}
    return replace(board, scored=[scored for scored in board.scored if scored.model in models], floors=())


def _model_rows(models: Sequence[EvaluatedModel], new: Sequence[EvaluationTask]) -> list[Json]:
    roles = provenance.roles([model.name for model in models], new)
    return [
        {
            "model": model.name,
            "revision": model.revision,
            "baseline": model.name in BASELINES,
            "roles": roles[model.name],
            "circular": any(provenance.circular(model.name, task) for task in new),
        }
        for model in models
    ]


def _circular_warnings(models: Sequence[EvaluatedModel], new: Sequence[EvaluationTask]) -> list[str]:
    """Return a sentence per task on models with a role other than judge in it (judges have a separate note)."""
    roles_by_task = {task.name: {model.name: provenance.circular(model.name, task) for model in models} for task in new}
    contributors = {
        task: [f"{name} ({' and '.join(roles)})" for name, roles in roles_by_model.items() if set(roles) - {"judge"}]
        for task, roles_by_model in roles_by_task.items()
    }
    return [
        f"circular: {task}: {', '.join(names)} had a part in its making; such a model scores otherwise than it deserves"
        for task, names in contributors.items()
        if names
    ]


def _notes(all_figures: dict[str, Any], unmatched: Sequence[str]) -> list[str]:
    """Return notes on the interpretation of the figures."""
    notes = []
    if judged := [model["model"] for model in all_figures["models"] if "judge" in model["roles"]]:
        notes.append(
            f"circular: {', '.join(judged)} judged this benchmark: the labels are partly their own, and their "
            "scores prove nothing"
        )
    notes += provenance.family_notes(all_figures["families"])
    notes += [sentence for task in all_figures["tasks"] for sentence in _floor_warnings(task)]
    notes += [warning for task in all_figures["tasks"] for warning in corrected.warnings(task["name"], task["levels"])]
    notes += query_sources.notes(all_figures["tasks"])
    notes += [
        f"{task['name']}: {task['queries']} {task['unit']}, under {FEW}: these intervals are too narrow"
        for task in all_figures["tasks"]
        if task["queries"] < FEW
    ]
    notes += [
        f"{comparison['new']} and {comparison['old']}: the orders of {comparison['models']} models are not compared; "
        f"that takes {comparison['fewest']}, and says little even then"
        for comparison in all_figures["legacy"]
        if comparison["models"] < comparison["fewest"]
    ]
    notes += [f"{source}: no task of the same kind to compare with" for source in unmatched]
    return notes


def _floor_warnings(task: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence on the models that do not exceed the best trivial baseline of a task."""
    against = task["against_floors"]
    if against and (low := [model["model"] for model in against["models"] if not model["above"]]):
        yield (
            f"{task['name']}: {', '.join(low)} not above the {against['sort']} `{against['best']}` "
            f"({100 * against['score']:.2f}) by a paired 95 % interval: such a score shows nothing"
        )
