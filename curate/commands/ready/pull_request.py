"""The text of a pull request to mteb, and what a person still has to do before it is sent."""

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
from curate.system.resources import template
from curate.tables.exporters.card import environment

TEMPLATE = "commands/ready/PULL_REQUEST.md.j2"
NAME = "PULL_REQUEST.md"


@dataclass(frozen=True)
class PullRequest:
    """All that the text is made of."""

    known: ReadyEvidence
    points: Sequence[ReadyPoint]
    """Of the checklist of a run."""
    sources: Mapping[str, TaskSource]
    """Folder of a task -> its Python."""
    hubs: Mapping[str, HubPlace]
    """Task -> where its texts are for everybody."""
    statistics: Mapping[str, Statistics]
    out: Path

    @cached_property
    def results(self) -> PublishedResults:
        """Return the results that go with it."""
        return PublishedResults(self.known)

    @cached_property
    def own_points(self) -> list[ReadyPoint]:
        """Return the points that a pull request alone has: upload and name."""
        return [self._hub(), self._name()]

    def _hub(self) -> ReadyPoint:
        away = [source for source in self.sources.values() if not self.hubs[source.name].known]
        if not away:
            return ReadyPoint("hub", "ok", "every task names a path and a revision")
        files = ", ".join(source.path for source in away)
        said = f"path and revision are placeholders until the texts are uploaded, in {files}"
        return ReadyPoint("hub", "not ok", said, self._uploads[0])

    def _name(self) -> ReadyPoint:
        from mteb.get_tasks import _TASKS_REGISTRY

        theirs = [name for name in self.known.tasks if _of_mteb(_TASKS_REGISTRY.get(name))]
        if not theirs:
            return ReadyPoint("name", "ok", "mteb has no task of these names")
        said = f"mteb has a task named {', '.join(theirs)}; give the run another name, which is that of its tasks"
        return ReadyPoint("name", "not ok", said, self.known.command("name"))

    @property
    def _uploads(self) -> list[str]:
        """Return the command that uploads each task which is on no hub."""
        mteb = self.known.run.folder / "export" / "mteb"
        return [
            f"hf upload ORGANISATION/{source.name} {quote(str(mteb / folder))} . --repo-type dataset"
            for folder, source in self.sources.items()
            if not self.hubs[source.name].known
        ]

    def text(self) -> str:
        """Return the Markdown."""
        every = [*self.points, *self.own_points]
        trust = [point for point in self.points if point.name in rules()["trust"]]
        return (
            environment()
            .from_string(template(TEMPLATE))
            .render(
                name=self.known.run.pipeline.head.name,
                write=mteb_checklist.WRITE,
                tasks=[{**source.front["mteb"], "path": source.path} for source in self.sources.values()],
                trust=[{"point": each.name, "": each.state, "found": each.found} for each in trust],
                statistics={task: list(_rows(statistic)) for task, statistic in self.statistics.items()},
                scores=list(self._scores()),
                unwritten=self.results.unwritten,
                items=list(mteb_checklist.items(self.known, every, self.statistics, self.results)),
                open=[each for each in every if each.state != "ok" and each.name != "hub"],
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
        made = self.known.evaluation["models"] if self.known.evaluation else []
        roles = {each["model"]: each["roles"] for each in made}
        rows: dict[str, dict[str, str]] = {}
        for task, score in self.known.scores.items():
            for row in score["scores"]:
                part = " and ".join(roles.get(row["model"], ())) or "none"
                shown = rows.setdefault(row["model"], {"model": row["model"], "part in the making": part})
                shown[f"{task} ({score['measure']})"] = f"{100 * row['main']:.2f}"
        yield from rows.values()

    def _imports(self) -> Iterator[str]:
        """Yield which line goes into which file of mteb's repository, so that mteb finds the tasks."""
        import mteb

        there = Path(str(mteb.__file__)).parent.parent
        for source in self.sources.values():
            new = "" if (there / source.folder / "__init__.py").is_file() else ", which is new"
            line = f"from .{source.module} import {source.class_name}"
            yield f"`{line}` into `{source.folder}/__init__.py`{new}, and the name into its `__all__`"
            if new:
                above, _, last = source.folder.rpartition("/")
                yield f"`from .{last} import *` into `{above}/__init__.py`"


def _of_mteb(task: object) -> bool:
    """Return whether a registered task is one of mteb's, and not of a folder that was loaded."""
    return str(getattr(task, "__module__", "")).startswith("mteb.tasks.")


def _rows(found: Statistics) -> Iterator[dict[str, str]]:
    """Yield a row per figure of every split; what a task has none of is left out."""
    for split, figures in found.items():
        for name, value in figures.items():
            if value is not None:
                yield {"split": split, "figure": name.replace("_", " "), "value": _shown(value)}


def _shown(value: Any) -> str:  # noqa: ANN401 - mteb has no types
    if isinstance(value, dict) and set(value) == {"count"}:
        return _shown(value["count"])
    if isinstance(value, dict):
        return "; ".join(f"{str(key).replace('_', ' ')} {_shown(each)}" for key, each in value.items())
    return f"{value:.1f}" if isinstance(value, float) else str(value)


# Write the folder for a pull request to mteb, and leave in it what a person wrote.

RECORD = ".curate.json"
"""Path -> SHA-256 of every file as it was written, path and revision on the hub apart."""


@dataclass
class WrittenFolder:
    """What was written, and what was left for a person's sake."""

    folder: Path
    points: list[ReadyPoint]
    """Points that a pull request alone has."""
    files: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    """Files that somebody edited: the new text lies beside each, under a name with `.new` in it."""


def write(known: ReadyEvidence, points: list[ReadyPoint], out: Path) -> WrittenFolder:
    """Write the folder; UserError if it holds something that `curate ready` did not write."""
    before = _recorded(out)
    sources = {folder: TaskSource(front) for folder, front in known.fronts.items()}
    hubs = {source.name: hub_place(out / source.path) for source in sources.values()}
    found = {source.name: statistics.of_folder(_place(known, folder)) for folder, source in sources.items()}
    request = PullRequest(known, points, sources, hubs, found, out)
    texts = {NAME: request.text(), **dict(_of_tasks(sources, hubs, found)), **request.results.files}
    done = WrittenFolder(out, request.own_points)
    paths = {source.path: hubs[source.name] for source in sources.values()}
    _clear(out, before, {*texts}, paths)
    for path, text in texts.items():
        _put(done, path, text, before, paths.get(path))
    write_json(out / RECORD, {path: _digest(text, paths.get(path)) for path, text in texts.items()})
    return done


def _place(known: ReadyEvidence, folder: str) -> Path:
    return known.run.folder / "export" / "mteb" / folder


def _of_tasks(
    sources: Mapping[str, TaskSource], hubs: Mapping[str, HubPlace], found: Mapping[str, statistics.Statistics]
) -> Iterator[tuple[str, str]]:
    for source in sources.values():
        yield source.path, source.text(hubs[source.name])
        yield statistics.place(source.type, source.name), statistics.as_mteb_writes(found[source.name])


def _recorded(out: Path) -> dict[str, str]:
    """Return what was written here before."""
    if (out / RECORD).is_file():
        return {path: digest for path, digest in read_json(out / RECORD).items() if _below(path)}
    free_place(out)
    return {}


def _below(path: str) -> bool:
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts


def _digest(text: str, hub: HubPlace | None) -> str:
    """Return the digest of a text, with placeholders for path and revision that a person puts into a task's file."""
    if hub:
        text = text.replace(f'"{hub.path}"', f'"{placeholders()["path"]}"')
        text = text.replace(f'"{hub.revision}"', f'"{placeholders()["revision"]}"')
    return sha256(text.encode()).hexdigest()


def _own(path: Path, recorded: str | None, hub: HubPlace | None) -> bool:
    """Return whether a file is as it was written."""
    return recorded is not None and _digest(path.read_text(encoding="utf-8", errors="replace"), hub) == recorded


def _clear(out: Path, before: Mapping[str, str], kept: set[str], hubs: Mapping[str, HubPlace]) -> None:
    """Remove files of before that are no more, such as results of an older export, unless somebody edited them."""
    for path, recorded in before.items():
        if path not in kept and (out / path).is_file() and _own(out / path, recorded, hubs.get(path)):
            (out / path).unlink()


def _put(done: WrittenFolder, path: str, text: str, before: Mapping[str, str], hub: HubPlace | None) -> None:
    target = done.folder / path
    if target.is_file() and not _own(target, before.get(path), hub):
        done.edited.append(path)
        target = target.with_name(f"{target.stem}.new{target.suffix}")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, text)
    done.files.append(target.relative_to(done.folder).as_posix())
