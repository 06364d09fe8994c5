"""The tasks of this folder for mteb 2.26 or later: it needs no other program, and no network.

With the folder on Python's path `import tasks` registers them, and `mteb.get_task(NAME)` finds them; `tasks.load()`
returns them. What mteb must know of a task stands in the README.md of its folder.
"""

import hashlib
import importlib
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

LARGEST = 1_000_000
"""Bytes of a README that are read."""
DEEPEST = 20
"""How many lists and mappings may stand in one another in its YAML block."""

_NAMED = re.compile(r"-([0-9a-f]{16})\.parquet$")


def load(folder: str | Path | None = None) -> list[Any]:
    """Return the tasks of a folder, or of the one that this file is in, ready for `mteb.evaluate(..., cache=None)`.

    ValueError if a file's content is not what its name says: `datasets` would load an edited file from its cache.
    """
    return [task_class(each)() for each in task_folders(Path(folder or Path(__file__).parent))]


def task_folders(folder: Path) -> list[Path]:
    """Return the folders of tasks below a folder, in the order in which its README names them, then by name."""
    there = [each.parent for each in sorted(folder.glob("*/README.md")) if _is_task(each.parent)]
    readme = folder / "README.md"
    named = readme.read_text(encoding="utf-8", errors="replace") if readme.is_file() else ""
    places = {each: named.find(f"]({each.name}/README.md)") for each in there}
    return sorted(there, key=lambda each: (places[each] < 0, places[each]))


def _is_task(folder: Path) -> bool:
    try:
        front_matter(folder)
    except ValueError:
        return False
    return True


def register(folder: str | Path | None = None) -> list[str]:
    """Make the tasks known to `mteb.get_task` and return their names; a task of the same name is replaced."""
    from mteb.get_tasks import _TASKS_REGISTRY

    found = [type(task) for task in load(folder)]
    _TASKS_REGISTRY.update({each.metadata.name: each for each in found})
    return [each.metadata.name for each in found]


def task_class(folder: Path) -> Any:  # noqa: ANN401 - mteb has no types
    """Return the class of one task's folder. Its revision is the README's digest, which names every file's content."""
    from mteb.abstasks.task_metadata import TaskMetadata

    front = front_matter(folder)
    need_unedited(folder, front)
    revision = hashlib.sha256((folder / "README.md").read_bytes()).hexdigest()
    dataset = {"path": str(folder.resolve()), "revision": revision}
    metadata = TaskMetadata(dataset=dataset, eval_splits=["test"], **front["mteb"])
    base, attributes = _abstask(folder, front)
    return type("Exported", (base,), {**attributes, "metadata": metadata})


OLD = {"Retrieval": "retrieval.AbsTaskRetrieval", "Reranking": "retrieval.AbsTaskRetrieval", "STS": "sts.AbsTaskSTS"}
"""mteb's class by type of task, of READMEs that do not name one: those of version 0.1."""


def _abstask(folder: Path, front: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return mteb's class of a task and the attributes that it gets; ValueError unless the class is one of mteb's."""
    said = front.get("abstask") or {"class": OLD.get(front["mteb"].get("type", ""), ""), "attributes": {}}
    named = str(said["class"]) if isinstance(said, dict) and "class" in said else ""
    if not re.fullmatch(r"[a-z_]+(\.[a-z_]+)*\.AbsTask[A-Za-z]+", named):
        raise ValueError(f"{folder / 'README.md'}: abstask.class: found {named!r}, expected a class of mteb.abstasks")
    module, _, name = named.rpartition(".")
    attributes = {str(key): value for key, value in (said.get("attributes") or {}).items()}
    if wrong := [key for key in attributes if not re.fullmatch(r"[a-z][a-z_]*", key) or key == "metadata"]:
        raise ValueError(f"{folder / 'README.md'}: abstask.attributes: {wrong[0]!r} is no attribute of a task")
    return getattr(importlib.import_module(f"mteb.abstasks.{module}"), name), attributes


def front_matter(folder: Path) -> dict[str, Any]:
    """Return the YAML block of a task's README; ValueError if it has no key `mteb`."""
    readme = folder / "README.md"
    with readme.open("rb") if readme.is_file() else io.BytesIO() as stream:
        parts = stream.read(LARGEST).decode("utf-8", "replace").split("---\n", 2)
    front = _yaml(parts[1]) if len(parts) == 3 and not parts[0] else None
    if not isinstance(front, dict) or not isinstance(front.get("mteb"), dict):
        raise ValueError(  # noqa: TRY004 - what is wrong is the text
            f"{readme}: no YAML block with a key `mteb`; give a folder that the exporter `mteb` wrote"
        )
    return front


def _yaml(text: str) -> object:
    """Return what a block holds; None for what is no YAML, has aliases or is too deep."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            begins = isinstance(event, yaml.CollectionStartEvent)
            depth += begins - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
                return None
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError):  # of int() too
        return None


def need_unedited(folder: Path, front: dict[str, Any]) -> None:
    """Raise ValueError unless every file that a README names is there, with the content that its name says."""
    for path in data_files(front):
        named = _NAMED.search(path)
        if not (folder / path).is_file():
            raise ValueError(f"{folder / path}: the README names this file and it is missing; export again")
        with (folder / path).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if named and not found.startswith(named[1]):
            raise ValueError(
                f"{folder / path}: its content is not what its name says, so somebody edited it; export again"
            )


def data_files(front: dict[str, Any]) -> Sequence[str]:
    """Return the files that a README names, in order."""
    try:
        return [str(item["path"]) for config in front["configs"] for item in config["data_files"]]
    except (KeyError, TypeError) as error:
        raise ValueError("the YAML block of the README names no files; export again") from error


if __name__ == "tasks":
    register()
