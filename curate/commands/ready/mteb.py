"""Files of a pull request to mteb: task modules, descriptive statistics, results, and mteb's checklist."""

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
    """Hub path and revision of a task's data; placeholders until a person has uploaded it and filled in both."""

    path: str
    revision: str

    @property
    def known(self) -> bool:
        """Return whether both path and revision are filled in."""
        return not {self.path, self.revision} & {*placeholders().values()}


@dataclass(frozen=True)
class TaskSource:
    """Python source of the mteb task class of one exported task, from the YAML block of its README (`front`)."""

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
        """Return the class name, in ASCII letters and digits, such as ClinicRetrieval."""
        words = re.findall("[A-Za-z0-9]+", self.name)
        joined = "".join(word[0].upper() + word[1:] for word in words)
        return joined if joined[:1].isalpha() else f"Task{joined}"

    @property
    def module(self) -> str:
        """Return the module name, such as clinic_retrieval."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.class_name).lower()

    @property
    def folder(self) -> str:
        """Return the folder of the module in mteb's repository, by task type and language."""
        type_ = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.type).lower()
        code = str(self.front["mteb"]["eval_langs"][0]).partition("-")[0]
        return f"mteb/tasks/{type_}/{rules()['languages'].get(code, code)}"

    @property
    def path(self) -> str:
        """Return the path of the module in mteb's repository."""
        return f"{self.folder}/{self.module}.py"

    def text(self, hub: HubPlace) -> str:
        """Return the Python source of the module; metadata fields without a value are left out."""
        task_class = self.front.get("abstask") or {"class": OLD[self.type]}
        module, _, base = str(task_class["class"]).rpartition(".")
        fields = {**self.front["mteb"], "modalities": ["text"], "eval_splits": ["test"]}
        return (
            environment()
            .get_template(TEMPLATE)
            .render(
                module=module,
                base=base,
                name=self.class_name,
                hub=hub,
                fields={name: _literal(fields[name]) for name in (*rules()["fields"], *fields) if name in fields},
                attributes=task_class.get("attributes") or {},
            )
        )


def _literal(field_value: Json) -> str:
    """Return a value as a Python literal, in triple quotes if it has several lines (BibTeX)."""
    if isinstance(field_value, str) and "\n" in field_value and '"""' not in field_value and "\\" not in field_value:
        return f'"""\n{field_value.strip()}\n"""'
    return repr(field_value)


def rules() -> Mapping[str, Any]:
    """Return the definitions for a pull request: folders by language, order of fields, mteb's checklist."""
    rules_by_name: dict[str, Any] = parse_yaml(template(FILE))
    return rules_by_name


def placeholders() -> Mapping[str, str]:
    """Return the placeholders of hub path and revision, by name."""
    by_name: dict[str, str] = rules()["placeholders"]
    return by_name


def hub_place(file: Path) -> HubPlace:
    """Return hub path and revision from an existing task module, where a person may have filled them in.

    Placeholders if the file is missing, has a syntax error or lacks them.
    """
    dataset: dict[str, str] = {}
    if file.is_file():
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):  # a module with a syntax error counts as not filled in
            tree = ast.Module([], [])
        dataset = next((keywords for node in ast.walk(tree) if (keywords := _dataset(node))), {})
    return HubPlace(**{name: dataset.get(name) or placeholders()[name] for name in _DATASET})


def _dataset(node: ast.AST) -> dict[str, str]:
    if not (isinstance(node, ast.keyword) and node.arg == "dataset" and isinstance(node.value, ast.Dict)):
        return {}
    pairs = zip(node.value.keys, node.value.values, strict=True)
    return {
        str(key.value): constant.value
        for key, constant in pairs
        if isinstance(key, ast.Constant) and isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    }


# Descriptive statistics of an exported task, computed by mteb's method; mteb writes no file.

Statistics = Mapping[str, Mapping[str, Any]]
FOLDER = "mteb/descriptive_stats"


def of_folder(folder: Path) -> Statistics:
    """Return split -> mteb's descriptive statistics of the exported task in a folder; its data are loaded."""
    task = load_task(folder)
    quiet()
    task.load_data()
    return of_task(task)


def of_task(task: Any) -> Statistics:  # noqa: ANN401 - mteb has no types
    """Return split -> mteb's descriptive statistics, for evaluated splits and a classification task's train split."""
    from mteb.abstasks import AbsTaskClassification

    splits = list(task.metadata.eval_splits)
    if isinstance(task, AbsTaskClassification) and (train := str(task.train_split)) and train not in splits:
        splits.append(train)
    with redirect_stderr(io.StringIO()):  # a progress bar per column, which cannot be switched off
        return {split: task._calculate_descriptive_statistics_from_split(split) for split in splits}  # noqa: SLF001


def place(type_: str, name: str) -> str:
    """Return the path of a task's statistics in mteb's repository."""
    return f"{FOLDER}/{type_}/{name}.json"


def as_mteb_writes(statistics: Statistics) -> str:
    """Return statistics as the text of a JSON file, formatted as mteb writes it."""
    return json.dumps(statistics, indent=4)


def write(statistics: Statistics, path: Path) -> None:
    """Write the statistics to a JSON file, formatted as mteb writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, as_mteb_writes(statistics))


# Results of the current export in mteb's layout, to accompany the pull request.


@dataclass(frozen=True)
class PublishedResults:
    """mteb result files of a run, below `evaluation/results`, with scores on the current export."""

    known: ReadyEvidence

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Return path in the folder of the pull request -> text of the file."""
        text_by_path: dict[str, str] = {}
        for path, _ in self._results:
            folder = f"{RESULTS}/{path.parent.relative_to(self._results_folder).as_posix()}"
            text_by_path[f"{folder}/{path.name}"] = path.read_text(encoding="utf-8")
            text_by_path[f"{folder}/{META}"] = (path.parent / META).read_text(encoding="utf-8")
            if (path.parent / SETTINGS).is_file():
                lines = (path.parent / SETTINGS).read_text(encoding="utf-8").splitlines(keepends=True)
                text_by_path[f"{folder}/{SETTINGS}"] = "".join(
                    line for line in lines if line.strip() and json.loads(line).get("task") in self.known.tasks
                )
        return text_by_path

    @cached_property
    def models(self) -> Mapping[str, set[str]]:
        """Return task -> mteb's names of the models with results."""
        models_by_task: dict[str, set[str]] = {name: set() for name in self.known.tasks}
        for path, result in self._results:
            models_by_task[result["task_name"]].add(str(read_json(path.parent / META)["name"]))
        return models_by_task

    def lacks(self, model: str) -> list[str]:
        """Return the tasks that have no result file of a model, given by its name in `curate evaluate`."""
        return [task for task, names in self.models.items() if not {model, f"curate/{model}"} & names]

    @property
    def unwritten(self) -> list[str]:
        """Return `MODEL on TASK` for scores without a result file, from versions that did not write such files."""
        rows = [(row["model"], task) for task, score in self.known.scores.items() for row in score["scores"]]
        return [f"{model} on {task}" for model, task in rows if not CUT.search(model) and task in self.lacks(model)]

    @property
    def _results_folder(self) -> Path:
        return self.known.run.folder / "evaluation" / RESULTS

    @cached_property
    def _results(self) -> list[tuple[Path, Mapping[str, Any]]]:
        return list(self._exported_results())

    def _exported_results(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        card_digests = dict(
            zip(self.known.tasks, (sha256(folder / "README.md") for folder in self.known.folders), strict=True)
        )
        for path in sorted(self._results_folder.glob("*/*/*.json")):
            if path.name != META and (path.parent / META).is_file():
                result = read_json(path)
                if card_digests.get(result.get("task_name", "")) == result.get("dataset_revision", ""):
                    yield path, result


# mteb's checklist for a new data set: ticked with evidence, else with the open point.

WRITE = "WRITE HERE"
"""Marker of text that only a person can write."""


@dataclass(frozen=True)
class ChecklistItem:
    """One line of mteb's checklist."""

    text: str
    open: str = ""
    """Why the item is open; empty if it is ticked."""
    below: bool = False
    """Whether the item is nested below the previous one."""


def items(
    evidence: ReadyEvidence,
    points: Sequence[ReadyPoint],
    statistics: Mapping[str, Statistics],
    results: PublishedResults,
) -> Iterator[ChecklistItem]:
    """Yield the items of mteb's checklist in its order; `points` include those of the pull request."""
    texts = rules()["checklist"]
    yield ChecklistItem(texts["gap"], "only you know it")
    unscored = [name for name in evidence.tasks if name not in evidence.scores]
    yield ChecklistItem(texts["runs"], f"no scores of {', '.join(unscored)} as exported now" if unscored else "")
    yield from _models(evidence, results, texts)
    yield ChecklistItem(texts["difficulty"], _open_findings(points, "neither trivial nor random"))
    yield ChecklistItem(texts["size"].replace("LARGEST", f"{rules()['largest']:,}"), _large_tasks(statistics))
    yield ChecklistItem(texts["metadata"], _open_findings(points, "licence", "metadata"))
    yield ChecklistItem(texts["texts"], _open_findings(points, "texts", "lengths"))
    yield ChecklistItem(texts["name"], _open_findings(points, "name"))
    yield ChecklistItem(texts["hub"], _open_findings(points, "hub"))


def _models(evidence: ReadyEvidence, results: PublishedResults, texts: Mapping[str, str]) -> Iterator[ChecklistItem]:
    lacking = {model: ", ".join(results.lacks(model)) for model in [*rules()["models"], evidence.rules["random"]]}
    open_by_model = {model: f"no result on {tasks}" if tasks else "" for model, tasks in lacking.items()}
    yield ChecklistItem(texts["models"], "as below" if any(open_by_model[model] for model in rules()["models"]) else "")
    for model in rules()["models"]:
        yield ChecklistItem(texts["model"].replace("MODEL", model), open_by_model[model], below=True)
    random = evidence.rules["random"]
    yield ChecklistItem(texts["random"].replace("MODEL", random), open_by_model[random])


def _open_findings(points: Sequence[ReadyPoint], *names: str) -> str:
    """Return the findings of open points named `NAME` or `NAME: ...` for one of `names`; empty if all are ok."""
    named_points = [point for point in points if point.name.partition(":")[0] in names]
    findings = [
        f"{point.name.partition(': ')[2]}: {point.found}".removeprefix(": ")
        for point in named_points
        if point.state != "ok"
    ]
    return "; ".join(findings) if named_points else f"{', '.join(names)} was not looked at"


def _large_tasks(statistics: Mapping[str, Statistics]) -> str:
    """Return a sentence on tasks with more queries (or rows, if not retrieval) than mteb recommends; empty if none."""
    tests = {task: statistic["test"] for task, statistic in statistics.items()}
    sizes = {task: test.get("num_queries") or test["num_samples"] for task, test in tests.items()}
    most = rules()["largest"]
    large = [f"{task} has {size:,}" for task, size in sizes.items() if size > most]
    return f"{', '.join(large)}; say why, or draw fewer" if large else ""
