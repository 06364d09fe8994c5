"""The Python of one exported task, in the place and form in which mteb's repository keeps its tasks."""

import ast
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from curate.commands.ready.evidence import CUT, ReadyEvidence, ReadyPoint
from curate.core.config import Json, parse_yaml
from curate.system.files import read_json, sha256, write_text
from curate.system.resources import template
from curate.tables.exporters.card import environment
from curate.tables.exporters.mteb import META, RESULTS, SETTINGS, load_task, quiet
from curate.tables.exporters.mteb_tasks import OLD

FILE = "commands/ready/pull_request.yaml"
TEMPLATE = "commands/ready/task.py.j2"
_DATASET = ("path", "revision")


@dataclass(frozen=True)
class HubPlace:
    """Where the texts of a task lie for everybody; a placeholder that nobody can load until a person says it."""

    path: str
    revision: str

    @property
    def known(self) -> bool:
        """Return whether a person put in both."""
        return not {self.path, self.revision} & {*placeholders().values()}


@dataclass(frozen=True)
class TaskSource:
    """One task of an export, by the YAML block of its README."""

    front: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return mteb's name of the task."""
        return str(self.front["mteb"]["name"])

    @property
    def type(self) -> str:
        """Return mteb's type of the task."""
        return str(self.front["mteb"]["type"])

    @property
    def class_name(self) -> str:
        """Return the name in one word of ASCII letters and digits, such as ClinicRetrieval."""
        words = re.findall("[A-Za-z0-9]+", self.name)
        joined = "".join(word[0].upper() + word[1:] for word in words)
        return joined if joined[:1].isalpha() else f"Task{joined}"

    @property
    def module(self) -> str:
        """Return the name of its file without the ending, such as clinic_retrieval."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.class_name).lower()

    @property
    def folder(self) -> str:
        """Return its folder in mteb's repository, by type and language."""
        type_ = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.type).lower()
        code = str(self.front["mteb"]["eval_langs"][0]).partition("-")[0]
        return f"mteb/tasks/{type_}/{rules()['languages'].get(code, code)}"

    @property
    def path(self) -> str:
        """Return where its file lies in mteb's repository."""
        return f"{self.folder}/{self.module}.py"

    def text(self, hub: HubPlace) -> str:
        """Return the file; a field that nobody stated is left out."""
        said = self.front.get("abstask") or {"class": OLD[self.type]}
        module, _, base = str(said["class"]).rpartition(".")
        return (
            environment()
            .from_string(template(TEMPLATE))
            .render(
                module=module,
                base=base,
                name=self.class_name,
                hub=hub,
                fields={name: _literal(value) for name, value in self._fields()},
                attributes=said.get("attributes") or {},
            )
        )

    def _fields(self) -> Iterator[tuple[str, Json]]:
        given = {**self.front["mteb"], "modalities": ["text"], "eval_splits": ["test"]}
        yield from ((name, given.pop(name)) for name in rules()["fields"] if name in given)
        yield from given.items()


def _literal(value: Json) -> str:
    """Return a value in Python; text of several lines, as BibTeX is, between three quotation marks."""
    if isinstance(value, str) and "\n" in value and '"""' not in value and "\\" not in value:
        return f'"""\n{value.strip()}\n"""'
    return repr(value)


def rules() -> Mapping[str, Any]:
    """Return folders, the order of fields, and mteb's checklist."""
    found: dict[str, Any] = parse_yaml(template(FILE))
    return found


def placeholders() -> Mapping[str, str]:
    """Return what stands for path and revision until a person uploaded the texts."""
    found: dict[str, str] = rules()["placeholders"]
    return found


def hub_place(file: Path) -> HubPlace:
    """Return path and revision that a person put into a file written before; placeholders where there are none."""
    said: dict[str, str] = {}
    if file.is_file():
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):  # a file that was broken by hand says nothing
            tree = ast.Module([], [])
        said = next((found for node in ast.walk(tree) if (found := _dataset(node))), {})
    return HubPlace(**{name: said.get(name) or placeholders()[name] for name in _DATASET})


def _dataset(node: ast.AST) -> dict[str, str]:
    if not (isinstance(node, ast.keyword) and node.arg == "dataset" and isinstance(node.value, ast.Dict)):
        return {}
    pairs = zip(node.value.keys, node.value.values, strict=True)
    return {
        str(key.value): value.value
        for key, value in pairs
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


# Descriptive statistics of an exported task, by mteb's own method of its class; nothing is written by mteb.

Statistics = Mapping[str, Mapping[str, Any]]
FOLDER = "mteb/descriptive_stats"


def of_folder(folder: Path) -> Statistics:
    """Return split -> figures of one exported task."""
    task = load_task(folder)
    quiet()
    task.load_data()
    return of_task(task)


def of_task(task: Any) -> Statistics:  # noqa: ANN401 - mteb has no types
    """Return split -> figures of a loaded task: of the splits that are scored, and of that classifiers learn on."""
    splits = list(task.metadata.eval_splits)
    if (train := _learnt_on(task)) and train not in splits:
        splits.append(train)
    with redirect_stderr(io.StringIO()):  # a progress bar per column, which cannot be switched off
        return {split: task._calculate_descriptive_statistics_from_split(split) for split in splits}  # noqa: SLF001


def _learnt_on(task: Any) -> str | None:  # noqa: ANN401 - mteb has no types
    from mteb.abstasks import AbsTaskClassification

    return str(task.train_split) if isinstance(task, AbsTaskClassification) else None


def place(type_: str, name: str) -> str:
    """Return where mteb's repository has the statistics of a task."""
    return f"{FOLDER}/{type_}/{name}.json"


def as_mteb_writes(found: Statistics) -> str:
    """Return the text of mteb's file."""
    return json.dumps(found, indent=4)


def write(found: Statistics, path: Path) -> None:
    """Write the statistics as mteb does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, as_mteb_writes(found))


# Results of an evaluation of today's export, in mteb's layout, as they go beside a pull request.


@dataclass(frozen=True)
class PublishedResults:
    """Files below `evaluation/results` of a run that are of its tasks as they are exported now."""

    known: ReadyEvidence

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Return path below the folder for the pull request -> text."""
        found: dict[str, str] = {}
        for path, _ in self._current:
            where = f"{RESULTS}/{path.parent.relative_to(self._root).as_posix()}"
            found[f"{where}/{path.name}"] = path.read_text(encoding="utf-8")
            found[f"{where}/{META}"] = (path.parent / META).read_text(encoding="utf-8")
            if (path.parent / SETTINGS).is_file():
                found[f"{where}/{SETTINGS}"] = self._settings(path.parent / SETTINGS)
        return found

    @cached_property
    def models(self) -> Mapping[str, set[str]]:
        """Return task -> names of the models whose results are there, as mteb has them."""
        found: dict[str, set[str]] = {name: set() for name in self.known.tasks}
        for path, result in self._current:
            found[result["task_name"]].add(str(read_json(path.parent / META)["name"]))
        return found

    def lacks(self, model: str) -> list[str]:
        """Return the tasks without a result of a model of `curate evaluate`."""
        return [task for task, names in self.models.items() if not {model, f"curate/{model}"} & names]

    @property
    def unwritten(self) -> list[str]:
        """Return models that were scored on a task, and have no file, in words: scored before such files were kept."""
        rows = [(row["model"], task) for task, score in self.known.scores.items() for row in score["scores"]]
        return [f"{model} on {task}" for model, task in rows if not CUT.search(model) and task in self.lacks(model)]

    @property
    def _root(self) -> Path:
        return self.known.run.folder / "evaluation" / RESULTS

    @cached_property
    def _current(self) -> list[tuple[Path, Mapping[str, Any]]]:
        return list(self._of_this_export())

    def _of_this_export(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        now = dict(zip(self.known.tasks, (sha256(folder / "README.md") for folder in self.known.folders), strict=True))
        for path in sorted(self._root.glob("*/*/*.json")):
            if path.name != META and (path.parent / META).is_file():
                result = read_json(path)
                if now.get(result.get("task_name", "")) == result.get("dataset_revision", ""):
                    yield path, result

    def _settings(self, path: Path) -> str:
        """Return the lines of settings that are of these tasks."""
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return "".join(line for line in lines if line.strip() and json.loads(line).get("task") in self.known.tasks)


# mteb's checklist for a data set that is added: ticked where there is evidence, else with what is open.

WRITE = "WRITE HERE"
"""What stands where only a person can write."""


@dataclass(frozen=True)
class ChecklistItem:
    """One line of mteb's checklist."""

    text: str
    open: str = ""
    """What is open; empty for what is ticked."""
    below: bool = False
    """Whether it is a part of the line above it."""


def items(
    known: ReadyEvidence,
    points: Sequence[ReadyPoint],
    statistics: Mapping[str, Statistics],
    results: PublishedResults,
) -> Iterator[ChecklistItem]:
    """Yield the lines in mteb's order; `points` are all of ours, those of the pull request too."""
    texts = rules()["checklist"]
    yield ChecklistItem(texts["gap"], "only you know it")
    unscored = [name for name in known.tasks if name not in known.scores]
    yield ChecklistItem(texts["runs"], f"no scores of {', '.join(unscored)} as exported now" if unscored else "")
    yield from _models(known, results, texts)
    yield ChecklistItem(texts["difficulty"], _open(points, "neither trivial nor random"))
    yield ChecklistItem(texts["size"].replace("LARGEST", f"{rules()['largest']:,}"), _large(statistics))
    yield ChecklistItem(texts["metadata"], _open(points, "licence", "metadata"))
    yield ChecklistItem(texts["texts"], _open(points, "texts", "lengths"))
    yield ChecklistItem(texts["name"], _open(points, "name"))
    yield ChecklistItem(texts["hub"], _open(points, "hub"))


def _models(known: ReadyEvidence, results: PublishedResults, texts: Mapping[str, str]) -> Iterator[ChecklistItem]:
    lacking = {model: ", ".join(results.lacks(model)) for model in [*rules()["models"], known.rules["random"]]}
    said = {model: f"no result on {tasks}" if tasks else "" for model, tasks in lacking.items()}
    yield ChecklistItem(texts["models"], "as below" if any(said[model] for model in rules()["models"]) else "")
    for model in rules()["models"]:
        yield ChecklistItem(texts["model"].replace("MODEL", model), said[model], below=True)
    random = known.rules["random"]
    yield ChecklistItem(texts["random"].replace("MODEL", random), said[random])


def _open(points: Sequence[ReadyPoint], *names: str) -> str:
    """Return what is open of points of these names, or that begin with one and a colon."""
    meant = [point for point in points if point.name.partition(":")[0] in names]
    said = [f"{each.name.partition(': ')[2]}: {each.found}".removeprefix(": ") for each in meant if each.state != "ok"]
    return "; ".join(said) if meant else f"{', '.join(names)} was not looked at"


def _large(statistics: Mapping[str, Statistics]) -> str:
    """Return which tasks have more examples than mteb thinks enough: queries, or rows where nothing is searched."""
    tests = {task: statistic["test"] for task, statistic in statistics.items()}
    sizes = {task: test.get("num_queries") or test["num_samples"] for task, test in tests.items()}
    most = rules()["largest"]
    large = [f"{task} has {size:,}" for task, size in sizes.items() if size > most]
    return f"{', '.join(large)}; say why, or draw fewer" if large else ""
