"""Folder of a pull request to mteb: the description, with steps left to a person, and the files to add."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any

from curate.commands.ready import mteb as mteb_checklist
from curate.commands.ready import mteb as statistics
from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint
from curate.commands.ready.mteb import (
    HubPlace,
    PublishedResults,
    Statistics,
    TaskSource,
    hub_place,
    placeholders,
    rules,
)
from curate.runs.outputs import free_place
from curate.system.files import read_json, write_json, write_text
from curate.tables.exporters.card import environment

TEMPLATE = "commands/ready/PULL_REQUEST.md.j2"
NAME = "PULL_REQUEST.md"


@dataclass(frozen=True)
class PullRequest:
    """Description of a pull request to mteb, in Markdown, and the data that it is written from."""

    known: ReadyEvidence
    points: Sequence[ReadyPoint]
    """Points of the run's checklist."""
    sources: Mapping[str, TaskSource]
    """Folder of a task -> its source."""
    hubs: Mapping[str, HubPlace]
    """Task -> path and revision of its data on the hub."""
    statistics: Mapping[str, Statistics]
    out: Path

    @cached_property
    def results(self) -> PublishedResults:
        """Return the result files that the pull request contains."""
        return PublishedResults(self.known)

    @cached_property
    def own_points(self) -> list[ReadyPoint]:
        """Return the two points of a pull request: upload and name."""
        return [self._hub(), self._name()]

    def _hub(self) -> ReadyPoint:
        not_uploaded = [source for source in self.sources.values() if not self.hubs[source.name].known]
        if not not_uploaded:
            return ReadyPoint("hub", "ok", "every task names a path and a revision")
        files = ", ".join(source.path for source in not_uploaded)
        finding = f"path and revision are placeholders until the texts are uploaded, in {files}"
        return ReadyPoint("hub", "not ok", finding, self._uploads[0])

    def _name(self) -> ReadyPoint:
        from mteb.get_tasks import _TASKS_REGISTRY

        names_taken = [
            name  # a task that is loaded from a folder has another module
            for name in self.known.tasks
            if str(getattr(_TASKS_REGISTRY.get(name), "__module__", "")).startswith("mteb.tasks.")
        ]
        if not names_taken:
            return ReadyPoint("name", "ok", "mteb has no task of these names")
        finding = (
            f"mteb has a task named {', '.join(names_taken)}; give the run another name, which is that of its tasks"
        )
        return ReadyPoint("name", "not ok", finding, self.known.command("name"))

    @property
    def _uploads(self) -> list[str]:
        """Return an upload command for every task that is not on the hub."""
        mteb = self.known.run.folder / "export" / "mteb"
        return [
            f"hf upload ORGANISATION/{source.name} {quote(str(mteb / folder))} . --repo-type dataset"
            for folder, source in self.sources.items()
            if not self.hubs[source.name].known
        ]

    def text(self) -> str:
        """Return the description in Markdown."""
        every = [*self.points, *self.own_points]
        trust = [point for point in self.points if point.name in rules()["trust"]]
        return (
            environment()
            .get_template(TEMPLATE)
            .render(
                name=self.known.run.pipeline.head.name,
                write=mteb_checklist.WRITE,
                tasks=[{**source.front["mteb"], "path": source.path} for source in self.sources.values()],
                trust=[{"point": point.name, "": point.state, "found": point.found} for point in trust],
                statistics={
                    task: [
                        {"split": split, "figure": name.replace("_", " "), "value": _shown(figure)}
                        for split, figures in figures_by_split.items()
                        for name, figure in figures.items()
                        if figure is not None
                    ]
                    for task, figures_by_split in self.statistics.items()
                },
                scores=list(self._scores()),
                unwritten=self.results.unwritten,
                items=list(mteb_checklist.items(self.known, every, self.statistics, self.results)),
                open=[point for point in every if point.state != "ok" and point.name != "hub"],
                uploads=self._uploads,
                imports=list(self._imports()),
                results=bool(self.results.files),
                again=self.again,
            )
        )

    @property
    def again(self) -> str:
        """Return the command that writes the folder again."""
        return f"curate ready {quote(str(self.known.run.folder))} --out {quote(str(self.out))}"

    def _scores(self) -> Iterator[dict[str, str]]:
        """Yield a row per model, with its score per task in points of 100."""
        models = self.known.evaluation["models"] if self.known.evaluation else []
        roles = {model["model"]: model["roles"] for model in models}
        rows: dict[str, dict[str, str]] = {}
        for task, score in self.known.scores.items():
            for row in score["scores"]:
                role = " and ".join(roles.get(row["model"], ())) or "none"
                cells = rows.setdefault(row["model"], {"model": row["model"], "part in the making": role})
                cells[f"{task} ({score['measure']})"] = f"{100 * row['main']:.2f}"
        yield from rows.values()

    def _imports(self) -> Iterator[str]:
        """Yield the import lines to add to mteb's repository, with their files, so that mteb loads the tasks."""
        import mteb

        repository = Path(str(mteb.__file__)).parent.parent
        for source in self.sources.values():
            new = "" if (repository / source.folder / "__init__.py").is_file() else ", which is new"
            line = f"from .{source.module} import {source.class_name}"
            yield f"`{line}` into `{source.folder}/__init__.py`{new}, and the name into its `__all__`"
            if new:
                above, _, last = source.folder.rpartition("/")
                yield f"`from .{last} import *` into `{above}/__init__.py`"


def _shown(figure: Any) -> str:  # noqa: ANN401 - mteb has no types
    if isinstance(figure, dict) and set(figure) == {"count"}:
        return _shown(figure["count"])
    if isinstance(figure, dict):
        return "; ".join(f"{str(key).replace('_', ' ')} {_shown(entry)}" for key, entry in figure.items())
    return f"{figure:.1f}" if isinstance(figure, float) else str(figure)


# Write the folder; files that a person edited are preserved.

RECORD = ".curate.json"
"""File with path -> SHA-256 of every written file; hub path and revision count as placeholders (see `_digest`)."""


@dataclass
class WrittenFolder:
    """Result of writing the folder: written files, and files that were not replaced since a person had edited them."""

    folder: Path
    points: list[ReadyPoint]
    """Points of the pull request."""
    files: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    """Files that a person edited; the new text is written next to each, with `.new` before the suffix."""


def write(evidence: ReadyEvidence, points: list[ReadyPoint], out: Path) -> WrittenFolder:
    """Write the folder of the pull request; UserError if it contains files that `curate ready` did not write."""
    recorded = _recorded_files(out)
    sources = {folder: TaskSource(front) for folder, front in evidence.fronts.items()}
    hubs = {source.name: hub_place(out / source.path) for source in sources.values()}
    export = evidence.run.folder / "export" / "mteb"
    statistics_by_task = {source.name: statistics.of_folder(export / folder) for folder, source in sources.items()}
    request = PullRequest(evidence, points, sources, hubs, statistics_by_task, out)
    texts = {NAME: request.text(), **dict(_task_files(sources, hubs, statistics_by_task)), **request.results.files}
    written = WrittenFolder(out, request.own_points)
    paths = {source.path: hubs[source.name] for source in sources.values()}
    _remove_stale(out, recorded, {*texts}, paths)
    for path, text in texts.items():
        _write_text(written, path, text, recorded, paths.get(path))
    write_json(out / RECORD, {path: _digest(text, paths.get(path)) for path, text in texts.items()})
    return written


def _task_files(
    sources: Mapping[str, TaskSource],
    hubs: Mapping[str, HubPlace],
    statistics_by_task: Mapping[str, statistics.Statistics],
) -> Iterator[tuple[str, str]]:
    for source in sources.values():
        yield source.path, source.text(hubs[source.name])
        yield statistics.place(source.type, source.name), statistics.as_mteb_writes(statistics_by_task[source.name])


def _recorded_files(out: Path) -> dict[str, str]:
    """Return path -> digest of the files written before; UserError for a folder with other files."""
    if (out / RECORD).is_file():
        return {
            path: digest
            for path, digest in read_json(out / RECORD).items()
            if not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
        }
    free_place(out)
    return {}


def _digest(text: str, hub: HubPlace | None) -> str:
    """Return the SHA-256 of a text with hub path and revision replaced by placeholders: filling them in is no edit."""
    if hub:
        text = text.replace(f'"{hub.path}"', f'"{placeholders()["path"]}"')
        text = text.replace(f'"{hub.revision}"', f'"{placeholders()["revision"]}"')
    return sha256(text.encode()).hexdigest()


def _is_unedited(path: Path, recorded: str | None, hub: HubPlace | None) -> bool:
    """Return whether a file is unchanged since it was written, except for hub path and revision."""
    return recorded is not None and _digest(path.read_text(encoding="utf-8", errors="replace"), hub) == recorded


def _remove_stale(
    out: Path, recorded_by_path: Mapping[str, str], current: set[str], hubs: Mapping[str, HubPlace]
) -> None:
    """Remove unedited files of an earlier call that are not `current`, such as results of an earlier export."""
    for path, recorded in recorded_by_path.items():
        if path not in current and (out / path).is_file() and _is_unedited(out / path, recorded, hubs.get(path)):
            (out / path).unlink()


def _write_text(
    written: WrittenFolder, path: str, text: str, recorded: Mapping[str, str], hub: HubPlace | None
) -> None:
    target = written.folder / path
    if target.is_file() and not _is_unedited(target, recorded.get(path), hub):
        written.edited.append(path)
        target = target.with_name(f"{target.stem}.new{target.suffix}")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, text)
    written.files.append(target.relative_to(written.folder).as_posix())
