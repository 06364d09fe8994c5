"""Scores of further models from folders of mteb results: which count, of which revision, and why others do not."""

import json
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from curate.commands.evaluate.parameters import ModelParameters, of_meta
from curate.commands.evaluate.tasks import EvaluationTask, Foreign, imported
from curate.core.errors import UserError
from curate.core.figures import Record, figure
from curate.tables.exporters.mteb import META

LAYOUT = "MODEL/REVISION/TASK.json, as mteb writes below `results`"
UNKNOWN = (None, "", "None", "dataset revision not available")
"""Data revisions that say nothing; mteb writes the last one for results from before version 1.11."""


@dataclass(frozen=True)
class ExpectedTask:
    """Requirements for comparable results: measure, splits, subsets and data revision; None permits any."""

    name: str
    measure: str | None = None
    splits: Sequence[str] | None = None
    subsets: Sequence[str] | None = None
    revision: str | None = None
    latest: str | None = None
    """mteb's current data revision, preferred if several are equally frequent in the results."""
    main: str | None = None
    """mteb's name of the task's main measure; None if mteb has no such task."""


@dataclass(frozen=True)
class ResultModel:
    """A model with its score per task, and the revision of the model that has it."""

    name: str
    revisions: Mapping[str, str]
    scores: Mapping[str, float]
    parameters: ModelParameters

    @property
    def revision(self) -> str:
        """Return the revision, or all of them if tasks have scores of different ones."""
        return ", ".join(dict.fromkeys(self.revisions.values()))

    def of_revision(self, revision: str) -> "ResultModel":
        """Return the model with the scores of one revision."""
        revisions = {task: scored for task, scored in self.revisions.items() if scored == revision}
        return replace(self, revisions=revisions, scores={task: self.scores[task] for task in revisions})


class LeftOutResult(Record, schema_name="left_out"):
    """An excluded result, and the reason."""

    file: str = figure("file of the result, or model and revision")
    reason: str = figure("why it is excluded")


@dataclass(frozen=True)
class _Result:
    version: str | None
    """Revision of the data; None if the file has none."""
    values: Mapping[str, Sequence[float]]
    """Subset -> scores of the splits."""
    stored: Foreign
    """mteb's result, under the task's current name."""

    @property
    def mean(self) -> float:
        return float(fmean(score for split_scores in self.values.values() for score in split_scores))


@dataclass
class _Candidate:
    name: str
    revision: str
    meta: Mapping[str, Any]
    latest: float = 0.0
    results: dict[str, _Result] = field(default_factory=dict)
    """Task -> its result."""


def expected(task: EvaluationTask) -> ExpectedTask:
    """Return the requirements for results that are comparable with a task scored here."""
    mteb_task = task.made
    return ExpectedTask(
        task.name,
        task.measure,
        mteb_task.metadata.eval_splits,
        mteb_task.hf_subsets,
        mteb_task.metadata.revision,
        main=task.measure,
    )


def expected_by_name(name: str) -> ExpectedTask:
    """Return the requirements for a task that is not scored here, from mteb.

    Any result is accepted if mteb has no such task.
    """
    try:
        mteb_task = imported().get_task(name)
    except KeyError:
        return ExpectedTask(name)
    return ExpectedTask(
        name,
        None,
        mteb_task.metadata.eval_splits,
        mteb_task.hf_subsets,
        latest=mteb_task.metadata.revision,
        main=mteb_task.metadata.main_score,
    )


def task_names(folders: Sequence[Path]) -> list[str]:
    """Return the current names of the tasks with results in the folders; UserError for a folder without results."""
    return sorted({_current(file.stem)[0] for folder in folders for file, _ in _files(folder)})


@cache
def _is_task(name: str) -> bool:
    try:
        imported().get_task(name)
    except KeyError:
        return False
    return True


@cache
def _current(name: str) -> tuple[str, str | None]:
    """Return mteb's current name of a task, and the name of the task that supersedes it, if any."""
    from mteb.results.task_result import renamed_tasks

    name = renamed_tasks.get(name, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a task that was renamed
            metadata = imported().get_task(name).metadata
    except KeyError:
        return name, None
    return metadata.name, metadata.superseded_by


def read(folders: Sequence[Path], tasks: Sequence[ExpectedTask]) -> tuple[list[ResultModel], list[LeftOutResult]]:
    """Return the models in the folders with their scores on these tasks, and the excluded files.

    Revisions of a model are joined as mteb joins them: for each task, its main revision, else the one that the latest
    version of mteb evaluated; then the one with most tasks, then the latest.
    """
    task_by_name, left_out = {task.name: task for task in tasks}, list[LeftOutResult]()
    candidates: dict[tuple[str, str], _Candidate] = {}
    for file, model in (named_file for folder in folders for named_file in _files(folder)):
        name, successor = _current(file.stem)
        if name in task_by_name:
            _add_file(candidates, file, model, task_by_name, left_out)
        elif successor in task_by_name:
            left_out.append(LeftOutResult(str(file), f"{name} has other data than {successor}, which supersedes it"))
        elif any(name.startswith(task) for task in task_by_name) and not _is_task(name):
            left_out.append(LeftOutResult(str(file), "its name is that of no task"))
    for task in task_by_name.values():
        with_task = [candidate for candidate in candidates.values() if task.name in candidate.results]
        _one_version(task, with_task, left_out)
        _same_subsets(task, [candidate for candidate in with_task if task.name in candidate.results], left_out)
    return list(_joined([candidate for candidate in candidates.values() if candidate.results], left_out)), left_out


def _joined(candidates: Sequence[_Candidate], left_out: list[LeftOutResult]) -> Iterator[ResultModel]:
    """Yield each model with the scores of the revisions that mteb chooses, by name."""
    from mteb.results import BenchmarkResults, ModelResult

    preferred = sorted(candidates, key=lambda model: (model.name, -len(model.results), -model.latest, model.revision))
    stored = [
        ModelResult.model_construct(
            model_name=candidate.name,
            model_revision=candidate.revision,
            task_results=[result.stored for result in candidate.results.values()],
            experiment_name=None,
            model_meta=None,
        )
        for candidate in preferred
    ]
    joined: Foreign = BenchmarkResults.model_construct(model_results=stored, benchmark=None).join_revisions()
    chosen = {(model.model_name, model.model_revision, result.task_name) for model in joined for result in model}
    for name, revisions in groupby(preferred, lambda candidate: candidate.name):
        results = dict[str, tuple[_Candidate, _Result]]()
        for candidate in revisions:
            for task, result in candidate.results.items():
                if (name, candidate.revision, task) in chosen:
                    results[task] = candidate, result
                else:
                    reason = f"another revision of the model has a score of {task}, which mteb prefers"
                    left_out.append(LeftOutResult(f"{name}, revision {candidate.revision}", reason))
        yield ResultModel(
            name,
            {task: candidate.revision for task, (candidate, _) in sorted(results.items())},
            {task: result.mean for task, (_, result) in sorted(results.items())},
            of_meta({"name": name, **next(iter(results.values()))[0].meta}),
        )


def notes(unused: Sequence[LeftOutResult]) -> Iterator[str]:
    """Yield a sentence per reason, with the number of excluded files and the first of them."""
    for reason, count in Counter(result.reason for result in unused).items():
        first = next(result.file for result in unused if result.reason == reason)
        yield f"--results: left out {first}{f' and {count - 1} more' if count > 1 else ''}: {reason}"


def _files(folder: Path) -> list[tuple[Path, str]]:
    """Return (result file, name of the model's folder) for every result in a folder.

    The folder contains models, is mteb's cache, or belongs to one model. Versions of mteb before 1.0 wrote no folder
    per revision.
    """
    if not folder.is_dir():
        raise UserError(f"--results {folder}: not a folder; expected {LAYOUT}")
    for root in (folder / "results", folder):
        if any(root.glob(f"*/{META}")):
            files = [(file, root.resolve().name) for file in root.glob("*/*.json")]
        else:
            files = [(file, file.parent.parent.name) for file in root.glob("*/*/*.json")]
            files += [(file, file.parent.name) for file in root.glob("*/*.json")]
        if results := sorted(named_file for named_file in files if named_file[0].name != META):
            return results
    raise UserError(f"--results {folder}: found no results; expected {LAYOUT}")


def _add_file(
    candidates: dict[tuple[str, str], _Candidate],
    file: Path,
    folder: str,
    task_by_name: Mapping[str, ExpectedTask],
    left_out: list[LeftOutResult],
) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of missing main scores in old files; `_result` returns the reason
            result: Foreign = _loaded(file)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        left_out.append(LeftOutResult(str(file), f"not a result that mteb can read ({type(error).__name__})"))
        return
    task = task_by_name.get(_current(result.task_name)[0])
    scores_or_reason = _result(result, task) if task else f"a result of {result.task_name} under another name"
    if task is None or isinstance(scores_or_reason, str):
        left_out.append(LeftOutResult(str(file), str(scores_or_reason)))
        return
    meta = _stored_meta(file.parent, left_out)
    name, revision = str(meta.get("name") or folder.replace("__", "/")), str(meta.get("revision") or file.parent.name)
    candidate = candidates.setdefault((name, revision), _Candidate(name, revision, meta))
    if task.name in candidate.results:
        left_out.append(LeftOutResult(str(file), f"a second result of {task.name} by this revision of {name}"))
    candidate.results.setdefault(task.name, scores_or_reason)
    candidate.latest = max(candidate.latest, result.date.timestamp() if result.date else 0.0)


def _loaded(file: Path) -> Foreign:
    """Return mteb's result in a file; a data revision of null, which mteb refuses, is read as not available."""
    from mteb.results import TaskResult

    stored = json.loads(file.read_text(encoding="utf-8"))
    if isinstance(stored, dict) and "dataset_revision" in stored and stored["dataset_revision"] is None:
        return TaskResult.model_validate({**stored, "dataset_revision": UNKNOWN[-1]})
    return TaskResult.from_disk(file)


def _stored_meta(folder: Path, left_out: list[LeftOutResult]) -> Mapping[str, Any]:
    path = folder / META
    if not path.is_file():
        return {}
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        meta = None
    if isinstance(meta, dict):
        return meta
    if not any(result.file == str(path) for result in left_out):
        left_out.append(LeftOutResult(str(path), "not JSON of a model; its name is taken from the folder's"))
    return {}


def _result(result: Foreign, task: ExpectedTask) -> _Result | str:
    """Return the scores by subset and split, or the reason why they are not comparable."""
    version = None if result.dataset_revision in UNKNOWN else str(result.dataset_revision)
    if task.revision and version not in {task.revision, None}:
        return f"another version of {task.name}'s data (expected {task.revision[:12]})"
    splits = list(task.splits or ())
    if not splits:
        splits = [*result.scores] if len(result.scores) == 1 else ["test"]
    rows = {split: {row["hf_subset"]: row for row in result.scores.get(split, ())} for split in splits}
    subsets = list(task.subsets or dict.fromkeys(subset for row in rows.values() for subset in row)) or ["any"]
    for split, rows_by_subset in rows.items():
        if missing := [subset for subset in subsets if subset not in rows_by_subset]:
            return f"no score of {task.name} for the subset {missing[0]} of the split {split}"
    measure = task.measure or "main_score"
    values = {subset: [row[subset].get(measure) for row in rows.values()] for subset in subsets}
    if not all(
        isinstance(score, int | float) and math.isfinite(score) and abs(score) <= 1
        for split_scores in values.values()
        for score in split_scores
    ):
        return f"no {measure} between -1 and 1 for {task.name}"
    return _Result(version, values, result.model_copy(update={"task_name": task.name}))


def _one_version(task: ExpectedTask, candidates: Sequence[_Candidate], left_out: list[LeftOutResult]) -> None:
    """Exclude results of other data revisions than the most frequent one, unless the task requires a revision.

    On ties, mteb's current revision is preferred.
    """
    if task.revision is not None:
        return
    versions = Counter(candidate.results[task.name].version for candidate in candidates)
    del versions[None]  # a file without a version counts as any
    most = max(versions, key=lambda version: (versions[version], version == task.latest, version or ""), default=None)
    for model in candidates:
        if model.results[task.name].version not in {most, None}:
            reason = f"another version of {task.name}'s data than most models have ({most})"
            _leave_out(model, task, reason, left_out)


def _same_subsets(task: ExpectedTask, candidates: Sequence[_Candidate], left_out: list[LeftOutResult]) -> None:
    """Exclude results without the most frequent set of subsets, unless the task requires subsets."""
    if task.subsets is not None:
        return
    sets = Counter(frozenset(candidate.results[task.name].values) for candidate in candidates)
    most = max(
        sets, key=lambda subset_set: (sets[subset_set], len(subset_set), sorted(subset_set)), default=frozenset[str]()
    )
    for model in candidates:
        result = model.results[task.name]
        if missing := sorted(most - {*result.values}):
            _leave_out(
                model, task, f"no score of {task.name} for the subset {missing[0]}, which most models have", left_out
            )
        else:
            model.results[task.name] = replace(
                result, values={subset: result.values[subset] for subset in sorted(most)}
            )


def _leave_out(model: _Candidate, task: ExpectedTask, reason: str, left_out: list[LeftOutResult]) -> None:
    del model.results[task.name]
    left_out.append(LeftOutResult(f"{model.name}, revision {model.revision}", reason))
