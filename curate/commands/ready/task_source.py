"""The Python of one exported task, in the place and form in which mteb's repository keeps its tasks."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curate.core.config import Json, parse_yaml
from curate.system.resources import template
from curate.tables.exporters.card import environment
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
