"""`curate evaluate`: scores of models on a benchmark with mteb, with significance tests.

Output files: `evaluation.json` (all figures), `README.md` (tables), `queries.parquet` (scores per query and model),
`tops.parquet` (top ten documents), bar charts and scatter plots; `results`, in the layout of mteb's cache.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from curate.commands.evaluate import (
    averages,
    corrected,
    correlation,
    figures,
    mteb_results,
    page,
    page_sections,
    provenance,
    query_sources,
    tasks,
)
from curate.commands.evaluate import speed as passes
from curate.commands.evaluate.board import SEED, Board, per_query, tops
from curate.commands.evaluate.correlation import LegacyComparison
from curate.commands.evaluate.figures import EvaluationFigures, ScoredModel, TaskFigures, lead
from curate.commands.evaluate.floors import floors
from curate.commands.evaluate.mteb_models import BASELINES, EvaluatedModel, named
from curate.commands.evaluate.scoring import score_all, widths_of
from curate.commands.evaluate.tasks import EvaluationTask, imported
from curate.core.errors import UserError
from curate.core.progress import StepLabel, waiting
from curate.pipeline.stage import home
from curate.runs.command import Command, Names, argument, option, setting
from curate.runs.outputs import free_place
from curate.stats.bootstrap import FEW
from curate.system.files import write_json, write_table, write_text
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table


class EvaluateCommand(Command):
    """Score models.

    With mteb, and with tests of which differences between them are significant. On graded labels nDCG@10 is given with
    linear and with exponential gain, and with the mean of the judges' gains.
    """

    words = "evaluate"
    examples = ("evaluate runs/demo --models e5,minilm", "evaluate runs/demo --models ./my-model --against e5")

    folder: Path = argument("A run folder, an export, its folder mteb, or one task's folder.")
    others: Names = argument("More models, as after --models.", (), metavar="[MODEL]...")
    models: Names = option(
        "bm25, an encoder, a folder, or the name of a model; separated by commas.",
        (),
        flag="--models,-m",
        metavar="NAMES",
    )
    legacy: Names = option(
        "Folder or mteb task whose ranking of the models is compared with this one.", (), metavar="SET"
    )
    baselines: bool = option("Score BM25 and the offline encoders too.", True)
    floors: bool = option("Score what needs no meaning too: length, shared characters, a keyword per class.", True)
    reviews: Path | None = setting(
        "Run whose reviewed sample (--for-scores) corrects the scores; default: the folder's.", None
    )
    average: tuple[str, ...] = option(
        "Group of tasks to average; several groups are compared.", (), metavar="NAME=TASK,TASK"
    )
    results: tuple[Path, ...] = option(
        "Folder of mteb results, whose models are compared without queries.", (), metavar="FOLDER"
    )
    against: str | None = option(
        "Model to test every other one against, with Holm over these pairs alone.", None, metavar="MODEL"
    )
    device: str | None = option("Several separated by commas; default: every GPU.", None, metavar="cpu|cuda|cuda:1")
    speed: bool = option("Time the models in turn on the queries, search apart.", False)
    out: Path | None = option("Folder to write to; default: `evaluation` in the run.", None, metavar="FOLDER")
    dtype: str = setting("auto (bfloat16 where the GPU has it), float32, bfloat16 or float16.", "auto")
    dims: str | None = setting("Widths such as 768,512,256: vectors are cut to them and scored again.", None)
    speed_queries: int = setting("Queries that --speed takes.", 1000, ge=1)

    def result(self) -> Result[EvaluationFigures]:
        """Return the scores of every model, and the tests of their differences."""
        figures = evaluate(self)
        return Result(figures, _text(figures), figures.notes)


def _text(figures: EvaluationFigures) -> Iterator[str]:
    say = RecordWords("evaluate/evaluate")
    yield as_table(page.overview(figures, say, bold="*"))
    yield say("points")
    for task in figures.tasks:
        yield from _task(task, say)
    for comparison in figures.legacy:
        rho = say("rho", comparison.spearman) if comparison.spearman else say("no_rho")
        yield say("legacy", comparison, rho=rho)
    yield from (page_sections.average_line(group, say) for group in figures.averages)
    for order in figures.orders:
        yield from (say("order", order, sentence=sentence) for sentence in page_sections.correlations(order, say))
    yield from figures.notes
    yield say("folder", figures)


def _task(task: TaskFigures, say: RecordWords) -> Iterator[str]:
    yield say("told_apart", task, neighbours=len(task.enough.neighbours), told_apart=task.enough.told_apart)
    if task.levels:
        scores = ", ".join(say("level", model) for model in task.levels.models if model.precision_at_10)
        yield say("levels", task, scores=scores or say("no_model"))
    elif task.verdicts and task.judged:
        yield say("no_level", task)
    if against := task.against_floors:
        above = sum(model.above for model in against.models)
        counts = {"above": above, "models": len(against.models)}
        yield say("above_floors", task, against, **counts, measure=against.in_measure)
    if task.speed:
        yield say("task_speed", task)
        yield as_table(page_sections.speed_overview(task.speed, say))
        yield from page_sections.speed_ratios(task.speed, say)
        yield page_sections.speed_machine(task.speed, say)


def evaluate(command: EvaluateCommand) -> EvaluationFigures:
    """Return all figures of an evaluation, and write its files; `tell` is called for every scored model and task.

    Scores of equal content, model, precision and mteb version are read from `evaluations` in the home folder.
    """
    if command.out is not None:
        free_place(command.out, ["evaluation.json"])
    run, progress, stored = provenance.run_of(command.folder), command.progress, home() / "evaluations"
    if not (names := [*command.models, *command.others, *(BASELINES if command.baselines else ())]):
        raise UserError("evaluate: found no model; name some with --models, or leave out --no-baselines")
    widths = widths_of(command.dims)
    with waiting(progress, StepLabel("loading mteb")):
        imported()
    reviews = corrected.score_reviews(_reviewed(command.reviews) or run)
    models_to_score = _models(command, names, run)
    new = tasks.in_folder(command.folder)
    old = [task for source in command.legacy for task in tasks.legacy(source)]
    compared = averages.prepared(
        command.average, command.results, command.against, models_to_score, [*new, *old], widths
    )
    kind_of = {task.name: task.kind.mteb.type for task in new}
    all_tasks = [*new, *(task for task in old if task.kind.mteb.type in kind_of.values())]
    result = score_all(models_to_score, all_tasks, widths, stored, command.tell, progress)
    models = result.models
    scored = [Board(task, rows, lead=lead(task, [row.model for row in rows])) for task, rows in result.on(all_tasks)]
    boards = [_with_floors(board, command) for board in scored[: len(new)] if board.scored]
    old_boards = scored[len(new) :]
    with waiting(progress, StepLabel("testing differences")):
        of_tasks = [figures.of_task(board, reviews, compared.against) for board in boards]
        legacy = _legacy(boards, old_boards)
        across = averages.figures(compared, names, [*boards, *(old for old in old_boards if old.scored)], kind_of, SEED)
    # Truncated models have no speed of their own: their vectors are cut from stored ones.
    full_width = [model for model in models if model.width is None]
    queries = command.speed_queries if command.speed else None
    speeds = passes.of_tasks(full_width, new, queries, SEED, stored / "speed", progress)
    out = command.out or (run / "evaluation" if run else Path("evaluation") / command.folder.resolve().name)
    summary = EvaluationFigures(
        models=_model_rows(models, new),
        families=provenance.of_family([model.name for model in models], new, run),
        tasks=tuple(replace(task, speed=speeds.get(task.name)) for task in of_tasks),
        legacy=legacy,
        missed=provenance.missed(run),
        **across._asdict(),
        notes=(),
        folder=str(out),
    )
    unmatched = sorted({task.source for task in old if task.kind.mteb.type not in kind_of.values()})
    notes = [
        *_circular_warnings(models, new),
        *_notes(summary, unmatched),
        *corrected.unread(reviews),
        *averages.notes(compared, across, models),
        *(note for speed in speeds.values() for note in passes.notes(speed)),
        *result.notes,
        *mteb_results.write(out, result.results(all_tasks, stored)),
    ]
    summary = replace(summary, notes=tuple(notes))
    _write(out, summary, boards)
    return summary


def _models(command: EvaluateCommand, names: Sequence[str], run: Path | None) -> list[EvaluatedModel]:
    return named(
        names,
        provenance.definitions(run),
        command.device,
        command.progress,
        command.dtype,
        command.tell,
        provenance.allowed_hosts(run),
        provenance.retrievers(run),
    )


def _legacy(boards: Sequence[Board], old_boards: Sequence[Board]) -> tuple[LegacyComparison, ...]:
    return tuple(
        correlation.of_legacy(_restricted(board, old_board), _restricted(old_board, board))
        for board in boards
        for old_board in old_boards
        if old_board.task.kind.mteb.type == board.task.kind.mteb.type
    )


def _write(out: Path, summary: EvaluationFigures, boards: Sequence[Board]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "evaluation.json", summary.to_json("folder"))
    per_query(boards).write_parquet(out / "queries.parquet")
    if not (first := tops(boards)).is_empty():
        write_table(out, "tops", first)
    for name, text in page.files(summary).items():
        write_text(out / name, text)


def _reviewed(folder: Path | None) -> Path | None:
    """Return the run folder given as `reviews`, or None; UserError if it is no run."""
    if folder is not None and (run := provenance.run_of(folder)) is None:
        raise UserError(f"reviews: {folder}: found no run there, expected a run folder with a sample that people read")
    return None if folder is None else run


def _with_floors(board: Board, command: EvaluateCommand) -> Board:
    """Return the board with the trivial baselines of its task; unchanged without a scored model."""
    if not command.floors or not board.scored:
        return board
    with waiting(command.progress, StepLabel(f"scoring floors, {board.task.name}")):
        return replace(board, floors=floors(board.task, home() / "evaluations"))


def _restricted(board: Board, reference: Board) -> Board:
    """Return the board with only those models that the reference board has as well, in the same order."""
    models = {scored.model for scored in reference.scored}
    return replace(board, scored=[scored for scored in board.scored if scored.model in models], floors=())


def _model_rows(models: Sequence[EvaluatedModel], new: Sequence[EvaluationTask]) -> tuple[ScoredModel, ...]:
    roles = provenance.roles([model.name for model in models], new)
    return tuple(
        ScoredModel(
            model=model.name,
            revision=model.revision,
            baseline=model.name in BASELINES,
            roles=tuple(roles[model.name]),
            circular=any(provenance.circular(model.name, task) for task in new),
        )
        for model in models
    )


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


def _notes(summary: EvaluationFigures, unmatched: Sequence[str]) -> list[str]:
    """Return notes on the interpretation of the figures."""
    notes = []
    if judged := [model.model for model in summary.models if "judge" in model.roles]:
        notes.append(
            f"circular: {', '.join(judged)} judged this benchmark: the labels are partly their own, and their "
            "scores are biased upwards"
        )
    notes += provenance.family_notes(summary.families)
    notes += [sentence for task in summary.tasks for sentence in _floor_warnings(task)]
    notes += [warning for task in summary.tasks for warning in corrected.warnings(task.name, task.levels)]
    notes += query_sources.notes({task.name: task.sources for task in summary.tasks})
    notes += [
        f"{task.name}: {task.queries} {task.unit}, under {FEW}: these intervals are too narrow"
        for task in summary.tasks
        if task.queries < FEW
    ]
    notes += [
        f"{comparison.new} and {comparison.old}: the orders of {comparison.models} models are not compared; "
        f"that takes {comparison.fewest}, and says little even then"
        for comparison in summary.legacy
        if comparison.models < comparison.fewest
    ]
    notes += [f"{source}: no task of the same kind to compare with" for source in unmatched]
    return notes


def _floor_warnings(task: TaskFigures) -> Iterator[str]:
    """Yield a sentence on the models that do not exceed the best trivial baseline of a task."""
    against = task.against_floors
    if against and (low := [model.model for model in against.models if not model.above]):
        yield (
            f"{task.name}: {', '.join(low)} not above the {against.sort} `{against.best}` "
            f"({100 * against.score:.2f}{against.in_measure}) by a paired 95 % interval: such a score shows nothing"
        )
