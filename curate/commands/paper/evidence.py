"""Evidence for a paper in a run's folder: exported tasks, agreement, people's checks, an audit, an evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from curate.core import safe_yaml
from curate.core.errors import DataError
from curate.pipeline.stage import Context
from curate.review.showing import Column, columns
from curate.system.files import read_json, sha256
from curate.tables.exporters import mteb_tasks

Figures = Mapping[str, Any]
WORDS = Path(__file__).with_name("words.yaml")
LANGUAGES = ("en", "zh")


def words(language: str) -> dict[str, Any]:
    """Return heads, captions and axes in a language, which is one of `LANGUAGES`."""
    found: dict[str, dict[str, Any]] = safe_yaml.parse(safe_yaml.read(WORDS))
    return found[language]


@dataclass(frozen=True)
class ExportedTask:
    """One task of the export: its folder, what mteb is told of it, and its Parquet files."""

    folder: Path
    mteb: Figures
    files: Mapping[tuple[str, str], Path]
    """(configuration, split) -> file, in the order of the README."""

    @property
    def name(self) -> str:
        """Return the name that mteb knows the task by."""
        return str(self.mteb["name"])


@dataclass(frozen=True)
class PaperEvidence:
    """A run whose panel has voted; everything behind that may be missing."""

    context: Context
    exported: bool = True
    """Whether the export is that of today's labels."""

    @cached_property
    def agreed(self) -> Figures:
        """Return the content of agreement.json."""
        return read_json(self.context.folder("consensus") / "agreement.json")

    @cached_property
    def published(self) -> Figures | None:
        """Return the counts of the published labels; None where the stage `resolve` has not run."""
        report = self.context.report("resolve")
        found: Any = report.facts.get("counts") if report else None
        return found if isinstance(found, Mapping) else None

    @cached_property
    def checks(self) -> Sequence[Column]:
        """Return what people who read samples say of the panel's and of the published labels."""
        return columns(self.context.run, self.context.folder("resolve"))

    @cached_property
    def audit(self) -> Figures | None:
        """Return the audit of the labels that the set came with; None if there was none."""
        return self._written("audit", "audit.json")

    @cached_property
    def tasks(self) -> list[ExportedTask]:
        """Return the tasks of the export; none if it is missing, out of date or without mteb's format."""
        folder = self.context.folder("export") / "mteb"
        return (
            [_task(task_folder) for task_folder in mteb_tasks.task_folders(folder)]
            if self.exported and folder.is_dir()
            else []
        )

    @cached_property
    def evaluation(self) -> Figures | None:
        """Return what `curate evaluate` wrote last; None if it did not."""
        return self._written("evaluation", "evaluation.json")

    @cached_property
    def scored(self) -> list[Figures]:
        """Return the figures of the tasks that were scored on today's export."""
        now = {task.name: sha256(task.folder / "README.md") for task in self.tasks}
        return [each for each in self._evaluated if each.get("card") == now.get(each["name"], "")]

    @property
    def outdated(self) -> list[str]:
        """Return the tasks whose scores are of another export."""
        known = {each["name"] for each in self.scored}
        return [each["name"] for each in self._evaluated if each["name"] not in known]

    @property
    def _evaluated(self) -> list[Figures]:
        return [each for each in self.evaluation["tasks"] if each["scores"]] if self.evaluation else []

    def _written(self, *parts: str) -> Figures | None:
        path = self.context.run.joinpath(*parts)
        return read_json(path) if path.is_file() else None


def _task(folder: Path) -> ExportedTask:
    """Return an exported task; DataError if a file of it was edited or is missing."""
    front = mteb_tasks.front_matter(folder)
    try:
        mteb_tasks.need_unedited(folder, front)
    except ValueError as error:
        raise DataError(str(error)) from error
    files = {
        (config["config_name"], item["split"]): folder / item["path"]
        for config in front["configs"]
        for item in config["data_files"]
    }
    return ExportedTask(folder, front["mteb"], files)
