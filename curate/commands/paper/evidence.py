"""Results in a run folder for a paper's tables: exported tasks, agreement, expert review, audit, evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from curate.core.errors import DataError
from curate.pipeline.stage import Context
from curate.review.showing import Column, columns
from curate.system import resources
from curate.system.files import read_json, sha256
from curate.tables.exporters import mteb_tasks

Figures = Mapping[str, Any]
WORDS = "commands/paper/words.yaml"
LANGUAGES = tuple(resources.translations(WORDS))


def words(language: str) -> dict[str, Any]:
    """Return the column heads, captions and axis labels in a language, one of `LANGUAGES`."""
    words: dict[str, Any] = resources.translations(WORDS)[language]
    return words


@dataclass(frozen=True)
class ExportedTask:
    """One exported task: its folder, its mteb metadata, and its Parquet files."""

    folder: Path
    mteb: Figures
    files: Mapping[tuple[str, str], Path]
    """(configuration, split) -> file, in the order of the README."""

    @property
    def name(self) -> str:
        """Return the task's name in mteb."""
        return str(self.mteb["name"])


@dataclass(frozen=True)
class PaperEvidence:
    """Results of a run that has consensus labels; outputs of later stages may be missing."""

    context: Context
    exported: bool = True
    """Whether the export was written from the current labels."""

    @cached_property
    def agreed(self) -> Figures:
        """Return the content of agreement.json."""
        return read_json(self.context.folder("consensus") / "agreement.json")

    @cached_property
    def published(self) -> Figures | None:
        """Return verdict -> number of pairs of the published labels; None if the stage `resolve` has not run."""
        report = self.context.report("resolve")
        counts: Any = report.facts.get("counts") if report else None
        return counts if isinstance(counts, Mapping) else None

    @cached_property
    def checks(self) -> Sequence[Column]:
        """Return the figures of reviewed samples for the panel's labels, then those for the published ones."""
        return columns(self.context.run, self.context.folder("resolve"))

    @cached_property
    def audit(self) -> Figures | None:
        """Return the audit of the original labels; None if there was none."""
        return self._written_figures("audit", "audit.json")

    @cached_property
    def tasks(self) -> list[ExportedTask]:
        """Return the tasks of the export; [] if it is missing, out of date or without mteb's format."""
        folder = self.context.folder("export") / "mteb"
        return (
            [_exported_task(task_folder) for task_folder in mteb_tasks.task_folders(folder)]
            if self.exported and folder.is_dir()
            else []
        )

    @cached_property
    def evaluation(self) -> Figures | None:
        """Return the last evaluation; None if there was none."""
        return self._written_figures("evaluation", "evaluation.json")

    @cached_property
    def scored(self) -> list[Figures]:
        """Return the figures of the tasks that were scored on the current export."""
        card_digests = {task.name: sha256(task.folder / "README.md") for task in self.tasks}
        return [
            task_figures
            for task_figures in self._scored_tasks
            if task_figures.get("card") == card_digests.get(task_figures["name"], "")
        ]

    @property
    def outdated(self) -> list[str]:
        """Return the names of the tasks whose scores are of an earlier export."""
        current = {task["name"] for task in self.scored}
        return [task["name"] for task in self._scored_tasks if task["name"] not in current]

    @property
    def _scored_tasks(self) -> list[Figures]:
        return [task for task in self.evaluation["tasks"] if task["scores"]] if self.evaluation else []

    def _written_figures(self, *names: str) -> Figures | None:
        path = self.context.run.joinpath(*names)
        return read_json(path) if path.is_file() else None


def _exported_task(folder: Path) -> ExportedTask:
    """Return an exported task; DataError if a file of it was edited or is missing."""
    front = mteb_tasks.front_matter(folder)
    try:
        mteb_tasks.need_unedited(folder, front)
    except ValueError as error:
        raise DataError(str(error)) from error
    files = {
        (config["config_name"], split_files["split"]): folder / split_files["path"]
        for config in front["configs"]
        for split_files in config["data_files"]
    }
    return ExportedTask(folder, front["mteb"], files)
