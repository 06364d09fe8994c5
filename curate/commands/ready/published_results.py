"""Results of an evaluation of today's export, in mteb's layout, as they go beside a pull request."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from curate.commands.ready.difficulty import CUT
from curate.commands.ready.evidence import ReadyEvidence
from curate.system.files import read_json, sha256
from curate.tables.exporters.mteb import META, RESULTS, SETTINGS


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
        rows = [(row["model"], task) for task, found in self.known.scores.items() for row in found["scores"]]
        return [f"{model} on {task}" for model, task in rows if not CUT.search(model) and task in self.lacks(model)]

    @property
    def _root(self) -> Path:
        return self.known.run.folder / "evaluation" / RESULTS

    @cached_property
    def _current(self) -> list[tuple[Path, Mapping[str, Any]]]:
        return list(self._of_this_export())

    def _of_this_export(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        now = dict(zip(self.known.tasks, (sha256(each / "README.md") for each in self.known.folders), strict=True))
        for path in sorted(self._root.glob("*/*/*.json")):
            if path.name != META and (path.parent / META).is_file():
                result = read_json(path)
                if now.get(result.get("task_name", "")) == result.get("dataset_revision", ""):
                    yield path, result

    def _settings(self, path: Path) -> str:
        """Return the lines of settings that are of these tasks."""
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return "".join(line for line in lines if line.strip() and json.loads(line).get("task") in self.known.tasks)
