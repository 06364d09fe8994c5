"""Write the folder for a pull request to mteb, and leave in it what a person wrote."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath

from curate.commands.ready import statistics
from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint
from curate.commands.ready.pull_request import NAME, PullRequest
from curate.commands.ready.task_source import HubPlace, TaskSource, hub_place, placeholders
from curate.runs.outputs import free_place
from curate.system.files import read_json, write_json, write_text

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
