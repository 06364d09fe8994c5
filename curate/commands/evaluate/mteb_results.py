"""Results in mteb's own layout: `results/MODEL__NAME/REVISION/TASK.json` with `model_meta.json` beside it.

mteb's cache writes them when a model is scored. They are kept beside our scores as they are, and written into the
folder of an evaluation, which `mteb.ResultCache(FOLDER).load_results()` reads.
"""

import json
import math
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.parameters import ModelParameters, of_meta
from curate.commands.evaluate.tasks import EvaluationTask, Foreign, imported
from curate.core.errors import UserError
from curate.system.files import read_json, write_json, write_text
from curate.tables.exporters.mteb import META, RESULTS, SETTINGS

_LOCAL = "local"
_UNSAFE = re.compile(r"[^\w.-]+")
"""What a name of a folder is to be free of."""


@dataclass(frozen=True)
class KeptResult:
    """Where the result of one model on one task is kept."""

    model: str
    task: str
    scores: Path
    """File of our scores; mteb's lies beside it."""

    @property
    def file(self) -> Path:
        """Return the file that holds what mteb wrote."""
        return self.scores.with_suffix(".mteb.json")


def files_of(result: Foreign, model: EvaluatedModel, encode_kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Return path below `results` -> text, of what mteb's cache writes of a task's result."""
    from mteb.cache import ResultCache

    with tempfile.TemporaryDirectory() as place:
        ResultCache(place).save_to_cache(result, _meta(model), encode_kwargs=encode_kwargs)
        root = Path(place) / RESULTS
        files = sorted(path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _meta(model: EvaluatedModel) -> Foreign:
    """Return mteb's metadata of a model, by which its results are filed.

    A model that mteb does not know has the identity of its weights for a revision, so that two of a name stay apart.
    What a precision or a width changes is an experiment, as mteb has it; float32 is what mteb takes for granted.
    """
    meta = model.loaded.mteb_model_meta
    special = dict(meta.experiment_kwargs or {})
    if special.get("model_kwargs") == {"dtype": "float32"}:
        del special["model_kwargs"]
    if model.width is not None:
        special["first_coordinates"] = model.width
    revision = _UNSAFE.sub("_", model.revision)[:80] if meta.revision == _LOCAL else meta.revision
    return meta.model_copy(update={"experiment_kwargs": special or None, "revision": revision})


def keep(files: Mapping[str, str], scores: Path) -> None:
    """Keep what mteb wrote beside the file of our scores."""
    write_json(KeptResult("", "", scores).file, dict(files))


def write(out: Path, kept: Iterable[KeptResult]) -> list[str]:
    """Write kept results below `out`, and return a note on those of before version 0.2, which kept none.

    Results of other models and tasks that lie there are left alone, as mteb's cache does.
    """
    lacking = []
    for each in kept:
        if not each.file.is_file():
            lacking.append(each)
            continue
        for path, text in read_json(each.file).items():
            target = out / RESULTS / path
            target.parent.mkdir(parents=True, exist_ok=True)
            write_text(target, _merged(target, text) if target.name == SETTINGS else text)
    return _missing(lacking)


def _merged(path: Path, text: str) -> str:
    """Return lines of settings with those of other tasks that are there already."""
    new = text.splitlines()
    tasks = {_task(line) for line in new}
    before = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    lines = [line for line in before if _task(line) not in tasks]
    return "".join(f"{line}\n" for line in [*lines, *new])


def _task(line: str) -> object:
    try:
        found = json.loads(line)
    except ValueError:  # of another program: it stays as it is
        return None
    return found.get("task") if isinstance(found, dict) else None


def _missing(lacking: Sequence[KeptResult]) -> list[str]:
    if not lacking:
        return []
    which = ", ".join(f"{each.model} on {each.task}" for each in lacking)
    files = " ".join(str(each.scores) for each in lacking)
    why = "scored by a version of curate that kept none"
    return [f"no results file for mteb of {which}: {why}; to have them scored again, delete {files} and evaluate again"]


# Scores of further models from existing mteb result folders: MODEL/REVISION/TASK.json with a model_meta.json beside.

LAYOUT = "MODEL/REVISION/TASK.json, as mteb writes below `results`"
UNKNOWN = "dataset revision not available"
"""What mteb gives for the revision of results from before version 1.11 that name none."""


@dataclass(frozen=True)
class ExpectedTask:
    """What a result must be of, to be compared with others; None where any will do."""

    name: str
    measure: str | None = None
    splits: Sequence[str] | None = None
    subsets: Sequence[str] | None = None
    revision: str | None = None
    latest: str | None = None
    """Version of the data that mteb has now; results of an older one can be compared with each other all the same."""


@dataclass(frozen=True)
class ResultModel:
    """One revision of one model, with its score per task."""

    name: str
    revision: str
    scores: Mapping[str, float]
    parameters: ModelParameters


@dataclass(frozen=True)
class LeftOutResult:
    """A file, or a revision of a model, that is not used, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class _Result:
    version: str | None
    """Of the data; None where the file does not tell."""
    values: Mapping[str, Sequence[float]]
    """Subset -> score of each split."""

    @property
    def mean(self) -> float:
        return float(fmean(value for each in self.values.values() for value in each))


@dataclass
class _Candidate:
    name: str
    revision: str
    meta: Mapping[str, Any]
    latest: float = 0.0
    results: dict[str, _Result] = field(default_factory=dict)
    """Task -> what was read of it."""


def expected(task: EvaluationTask) -> ExpectedTask:
    """Return what results of a task that is scored here must be of."""
    made = task.made
    return ExpectedTask(task.name, task.measure, made.metadata.eval_splits, made.hf_subsets, made.metadata.revision)


def expected_by_name(name: str) -> ExpectedTask:
    """Return what mteb says of a task that is not scored here; nothing of one that it does not know."""
    try:
        made = imported().get_task(name)
    except KeyError:
        return ExpectedTask(name)
    return ExpectedTask(name, None, made.metadata.eval_splits, made.hf_subsets, latest=made.metadata.revision)


def task_names(folders: Sequence[Path]) -> list[str]:
    """Return the tasks that the folders hold results of; UserError for a folder without any."""
    return sorted({file.stem for folder in folders for file, _ in _files(folder)})


def read(folders: Sequence[Path], tasks: Sequence[ExpectedTask]) -> tuple[list[ResultModel], list[LeftOutResult]]:
    """Return the models of the folders with their scores on these tasks, and what was left out.

    Of several revisions of a model the one with most of the tasks counts, then the one evaluated last: scores of two
    revisions are never mixed.
    """
    wanted, left = {task.name: task for task in tasks}, list[LeftOutResult]()
    found: dict[tuple[str, str], _Candidate] = {}
    for file, name in (file for folder in folders for file in _files(folder) if file[0].stem in wanted):
        _add(found, file, name, wanted, left)
    for task in wanted.values():
        mine = [each for each in found.values() if task.name in each.results]
        _one_version(task, mine, left)
        _same_subsets(task, [each for each in mine if task.name in each.results], left)
    models = []
    for name in sorted({each.name for each in found.values()}):
        of_model = [each for each in found.values() if each.name == name and each.results]
        of_model.sort(key=lambda each: (-len(each.results), -each.latest, each.revision))
        left += [
            LeftOutResult(f"{name}, revision {each.revision}", "another revision of the model") for each in of_model[1:]
        ]
        for best in of_model[:1]:
            scores = {task: result.mean for task, result in sorted(best.results.items())}
            models.append(ResultModel(name, best.revision, scores, of_meta({"name": name, **best.meta})))
    return models, left


def notes(left: Sequence[LeftOutResult]) -> Iterator[str]:
    """Yield a sentence per reason, with how many files it kept out and the first of them."""
    for reason, count in Counter(each.reason for each in left).items():
        first = next(each.file for each in left if each.reason == reason)
        yield f"--results: left out {first}{f' and {count - 1} more' if count > 1 else ''}: {reason}"


def _files(folder: Path) -> list[tuple[Path, str]]:
    """Return the result files, with the model's folder name, of a folder of models, of mteb's cache, or of one model.

    mteb before 1.0 wrote no folder per revision.
    """
    if not folder.is_dir():
        raise UserError(f"--results {folder}: not a folder; expected {LAYOUT}")
    for place in (folder / "results", folder):
        if any(place.glob(f"*/{META}")):
            found = [(file, place.resolve().name) for file in place.glob("*/*.json")]
        else:
            found = [(file, file.parent.parent.name) for file in place.glob("*/*/*.json")]
            found += [(file, file.parent.name) for file in place.glob("*/*.json")]
        if results := sorted(each for each in found if each[0].name != META):
            return results
    raise UserError(f"--results {folder}: found no results; expected {LAYOUT}")


def _add(
    found: dict[tuple[str, str], _Candidate],
    file: Path,
    folder: str,
    wanted: Mapping[str, ExpectedTask],
    left: list[LeftOutResult],
) -> None:
    from mteb.results import TaskResult

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of main scores that old files lack; `_score` gives the reason
            result: Foreign = TaskResult.from_disk(file)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        left.append(LeftOutResult(str(file), f"not a result that mteb can read ({type(error).__name__})"))
        return
    task = wanted.get(result.task_name)
    known = _result(result, task) if task else f"a result of {result.task_name} under another name"
    if task is None or isinstance(known, str):
        left.append(LeftOutResult(str(file), str(known)))
        return
    meta = _stored_meta(file.parent, left)
    name, revision = str(meta.get("name") or folder.replace("__", "/")), str(meta.get("revision") or file.parent.name)
    mine = found.setdefault((name, revision), _Candidate(name, revision, meta))
    mine.results.setdefault(task.name, known)
    mine.latest = max(mine.latest, result.date.timestamp() if result.date else 0.0)


def _stored_meta(folder: Path, left: list[LeftOutResult]) -> Mapping[str, Any]:
    path = folder / META
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    if not any(each.file == str(path) for each in left):
        left.append(LeftOutResult(str(path), "not JSON of a model; its name is taken from the folder's"))
    return {}


def _result(result: Foreign, task: ExpectedTask) -> _Result | str:
    """Return the scores of all subsets and splits; else why there are none that can be compared."""
    version = None if result.dataset_revision in {UNKNOWN, "", None} else str(result.dataset_revision)
    if task.revision and version not in {task.revision, None}:
        return f"another version of {task.name}'s data (expected {task.revision[:12]})"
    splits = list(task.splits or ())
    if not splits:
        splits = [*result.scores] if len(result.scores) == 1 else ["test"]
    rows = {split: {row["hf_subset"]: row for row in result.scores.get(split, ())} for split in splits}
    subsets = list(task.subsets or dict.fromkeys(subset for row in rows.values() for subset in row)) or ["any"]
    for split, some in rows.items():
        if missing := [subset for subset in subsets if subset not in some]:
            return f"no score of {task.name} for the subset {missing[0]} of the split {split}"
    measure = task.measure or "main_score"
    values = {subset: [row[subset].get(measure) for row in rows.values()] for subset in subsets}
    if not all(_is_score(value) for each in values.values() for value in each):
        return f"no {measure} between -1 and 1 for {task.name}"
    return _Result(version, values)


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and abs(value) <= 1


def _one_version(task: ExpectedTask, found: Sequence[_Candidate], left: list[LeftOutResult]) -> None:
    """Keep one version of the data where any will do: that of most models, of equals the one that mteb has now."""
    if task.revision is not None:
        return
    versions = Counter(each.results[task.name].version for each in found)
    del versions[None]  # a file that does not tell is compared with all
    most = max(versions, key=lambda version: (versions[version], version == task.latest, version or ""), default=None)
    for model in found:
        if model.results[task.name].version not in {most, None}:
            reason = f"another version of {task.name}'s data than most models have ({most})"
            _leave(model, task, reason, left)


def _same_subsets(task: ExpectedTask, found: Sequence[_Candidate], left: list[LeftOutResult]) -> None:
    """Keep the same subsets of all models where nobody says which belong to a task: those that most models have."""
    if task.subsets is not None:
        return
    sets = Counter(frozenset(each.results[task.name].values) for each in found)
    most = max(sets, key=lambda each: (sets[each], len(each), sorted(each)), default=frozenset[str]())
    for model in found:
        result = model.results[task.name]
        if missing := sorted(most - {*result.values}):
            _leave(model, task, f"no score of {task.name} for the subset {missing[0]}, which most models have", left)
        else:
            model.results[task.name] = replace(result, values={each: result.values[each] for each in sorted(most)})


def _leave(model: _Candidate, task: ExpectedTask, reason: str, left: list[LeftOutResult]) -> None:
    del model.results[task.name]
    left.append(LeftOutResult(f"{model.name}, revision {model.revision}", reason))
