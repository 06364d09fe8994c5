"""Extend a run: a new run folder, version 2 of it, whose pool holds what later systems find and nobody has judged.

Texts, masking and people's answers are copied; pool, ratings and labels are made again by the same stages and settings.
The ledger holds the ratings of all earlier pairs, so judges are asked about the holes alone.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from curate.ask.quote import Row, quote
from curate.ask.residual_decisions import FILE as RESIDUAL
from curate.core.config import Json, digest
from curate.core.errors import ConfigError, CurateError, UserError
from curate.pipeline import stages
from curate.pipeline.folder import SETTINGS, is_run, newest_when_done, run_id
from curate.pipeline.parent import CHANGES, PARENT, ParentVersion
from curate.pipeline.pipeline import Pipeline
from curate.runs.outputs import free_place
from curate.runs.runner import Run
from curate.system.files import read_json, sha256
from curate.system.run_lock import enough_space, locked
from curate.tables.exporters.ids import KEY

DEPTH = 10
"""Documents of a new system that are judged by default: as many as nDCG@10 looks at."""
AGAIN = ("pool", "judge", "consensus", "resolve", "export", "report", "audit", "train_set")
"""Stages that are not copied, because they depend on the pool."""


@dataclass(frozen=True)
class ExtendOrder:
    """Which systems came later, how deep they are judged, and where the new version goes."""

    files: Sequence[Path] = ()
    """TREC runs, or predictions of mteb; a file's stem names the system."""
    encoders: Sequence[str] = ()
    depth: int = DEPTH
    out: Path | None = None
    """Folder of the new version; None for the parent's with its version behind."""
    subset: str | None = None
    split: str | None = None

    def __post_init__(self) -> None:
        if not (self.files or self.encoders):
            raise ConfigError("extend: found no system; give --run-file FILE, or --encoder NAME")
        names = [*self.retrievers]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"extend: {', '.join(twice)} stands there twice; rename the file, for names are shown")

    @property
    def retrievers(self) -> Iterator[str]:
        """Return the names of the systems."""
        yield from (re.sub(r"[^\w.-]+", "-", path.stem) for path in self.files)
        yield from self.encoders


def planned(before: Run, order: ExtendOrder) -> list[Row]:
    """Return what judging the holes would send and cost, as `quote` does for a run; nothing is sent or kept."""
    _need_parent(before)
    with TemporaryDirectory(prefix=".extend-", dir=before.folder.parent) as beside:
        folder = Path(beside) / "run"
        _copy(before, order, folder)
        child = _child(before, order, folder)
        return child.rehearse(["pool"], lambda run: run.look("judge", quote))


def extend(before: Run, order: ExtendOrder) -> tuple[Path, dict[str, Any]]:
    """Write the next version of a run, within the run's consent; return its folder and what it grew by.

    The same call goes on with a version that was refused or stopped; UserError if another one lies in its folder.
    """
    _need_parent(before)
    folder = order.out or _beside(before)
    if not is_run(folder):
        free_place(folder)
    wanted, _ = _version(before, order), _settings(before, order)  # what is wrong with them is said before a copy
    if folder.exists():
        _need_same(folder, wanted)
    else:
        _place(before, order, folder)
    child = _child(before, order, folder)
    names = [name for name in child.pipeline.head.stages if stages.KNOWN.index(name) >= stages.KNOWN.index("pool")]
    with newest_when_done(folder), _gone_without_pool(folder):
        child.execute(names)
    facts: dict[str, Any] = read_json(folder / "export" / "stage.json")["report"]["facts"]["grown"]
    return folder, facts


@contextmanager
def _gone_without_pool(folder: Path) -> Iterator[None]:
    """Remove the new run if it is refused before it has a pool: no later call could go on with it, nothing is paid."""
    try:
        yield
    except CurateError:
        if not (folder / "pool").exists():
            shutil.rmtree(folder)
        raise


def _need_parent(before: Run) -> None:
    if "export" not in before.pipeline.head.stages:
        raise UserError(f"{before.folder}: not the run of a benchmark, for it exports none; give one with --run")
    before.need("export")


def _beside(before: Run) -> Path:
    stem = re.sub(r"-v\d+$", "", before.folder.name)
    return before.folder.with_name(f"{stem}-v{_number(before.folder) + 1}")


def _number(run: Path) -> int:
    earlier = ParentVersion.load(run)
    return 1 if earlier is None else earlier.version


def _version(before: Run, order: ExtendOrder) -> ParentVersion:
    number = _number(before.folder)
    parent: dict[str, Json] = {
        "folder": before.folder.name,
        "id": run_id(before.folder),
        "version": number,
        "settings": digest(before.pipeline.frozen),
    }
    files: dict[str, Json] = {}
    for name, path in zip(order.retrievers, order.files, strict=False):
        if not path.is_file():
            raise UserError(f"--run-file: {path}: no such file; give a TREC run, or <task>_predictions.json of mteb")
        files[name] = {"kind": "run file", "file": path.name, "sha256": sha256(path)}
    added = {**files, **{name: {"kind": "encoder"} for name in order.encoders}}
    return ParentVersion(number + 1, parent, added, order.depth)


def _need_same(folder: Path, wanted: ParentVersion) -> None:
    if ParentVersion.load(folder) != wanted:
        raise UserError(
            f"{folder}: exists, and is not this version of this run by these systems; choose another folder with --out"
        )


def _place(before: Run, order: ExtendOrder, folder: Path) -> None:
    """Copy what the new run begins with, and put it into its place at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        with locked(before.folder), enough_space(folder):
            _copy(before, order, beside / "run")
        (beside / "run").rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _copy(before: Run, order: ExtendOrder, folder: Path) -> None:
    """Copy texts, masking and answers of people, and the parent's pool, labels and panel under `parent`."""
    source = before.folder
    for name in (*(each for each in stages.KNOWN if each not in AGAIN), "reviews"):
        if (source / name).is_dir():
            shutil.copytree(source / name, folder / name)
    if (source / KEY).is_file():
        shutil.copy2(source / KEY, folder / KEY)
    if (source / RESIDUAL).is_file():
        (folder / RESIDUAL).parent.mkdir(exist_ok=True)
        shutil.copy2(source / RESIDUAL, folder / RESIDUAL)
    kept = folder / PARENT
    kept.mkdir()
    tables = {"pool": ("pool", "rankings"), "resolve": ("verdicts", "qrels")}
    for stage, names in tables.items():
        for name in names:
            shutil.copy2(source / stage / f"{name}.parquet", kept)
    shutil.copy2(source / "judge" / "panel.json", kept)
    if earlier := next(iter(sorted((source / "export").glob(f"*/{CHANGES}"))), None):
        shutil.copy2(earlier, kept / CHANGES)
    _version(before, order).write(kept)


def _child(before: Run, order: ExtendOrder, folder: Path) -> Run:
    """Return the run of the new version: the parent's settings, with the new systems among the pool's retrievers."""
    pipeline = Pipeline.check(_settings(before, order), SETTINGS)
    return Run(folder, pipeline, before.progress, before.consent, before.tell)


def _settings(before: Run, order: ExtendOrder) -> dict[str, Json]:
    settings: dict[str, Any] = deepcopy(dict(before.pipeline.settings))
    pool = before.pipeline.sections["pool"]
    old: tuple[str, ...] = getattr(pool, "retrievers", ())
    if known := sorted(set(order.retrievers) & {*old}):
        raise ConfigError(f"extend: {', '.join(known)} is in the pool of {before.folder}; rename the file")
    definitions: Mapping[str, Json] = settings.get("retrievers") or {}
    files = {
        name: {"kind": "runfile", "path": str(path), **_part(order)}
        for name, path in zip(order.retrievers, order.files, strict=False)
    }
    settings["retrievers"] = {**definitions, **files}
    settings["pool"] = {**(settings.get("pool") or {}), "retrievers": [*old, *order.retrievers]}
    return settings


def _part(order: ExtendOrder) -> dict[str, Json]:
    return {name: value for name, value in (("subset", order.subset), ("split", order.split)) if value is not None}
