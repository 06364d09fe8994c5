"""Extension of a run: a next version, in a new run folder, whose pool also has unjudged documents of later systems.

Texts, masking and assessors' answers are copied; pool, ratings and labels are recomputed by the same stages and
settings. The ledger contains the ratings of all earlier pairs, so judges only grade the added documents.
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
"""Default number of documents per query and new system that are judged; those that nDCG@10 depends on."""
AGAIN = ("pool", "judge", "consensus", "resolve", "export", "report", "audit", "train_set")
"""Stages that are not copied from the earlier version but run again, because they depend on the pool."""


@dataclass(frozen=True)
class ExtendOrder:
    """Systems to add, the depth to which their rankings are judged, and the folder of the new version."""

    files: Sequence[Path] = ()
    """TREC runs, or predictions of mteb; a file's stem names the system."""
    encoders: Sequence[str] = ()
    depth: int = DEPTH
    out: Path | None = None
    """Folder of the new version; None for that of the parent with the version appended, such as `NAME-v2`."""
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
        """Yield the names of the systems: stems of files, without unusual characters, then encoders."""
        yield from (re.sub(r"[^\w.-]+", "-", path.stem) for path in self.files)
        yield from self.encoders


def planned(parent_run: Run, order: ExtendOrder) -> list[Row]:
    """Return the cost estimate of judging the added documents, as rows of `quote`; nothing is sent or written."""
    _need_parent(parent_run)
    with TemporaryDirectory(prefix=".extend-", dir=parent_run.folder.parent) as scratch:
        folder = Path(scratch) / "run"
        _copy(parent_run, order, folder)
        child = _child(parent_run, order, folder)
        return child.rehearse(["pool"], lambda run: run.look("judge", quote))


def extend(parent_run: Run, order: ExtendOrder) -> tuple[Path, dict[str, Any]]:
    """Write the next version of a run, within its consent to spend; return its folder and figures on what was added.

    The same call resumes a version that was refused or stopped. UserError if the folder contains a version with other
    systems.
    """
    _need_parent(parent_run)
    stem = re.sub(r"-v\d+$", "", parent_run.folder.name)
    folder = order.out or parent_run.folder.with_name(f"{stem}-v{_number(parent_run.folder) + 1}")
    if not is_run(folder):
        free_place(folder)
    requested, _ = _version(parent_run, order), _settings(parent_run, order)  # their errors come before the copy
    if folder.exists():
        if ParentVersion.load(folder) != requested:
            raise UserError(
                f"{folder}: exists, and is not this version of this run by these systems; choose another folder with "
                "--out"
            )
    else:
        _copy_into_place(parent_run, order, folder)
    child = _child(parent_run, order, folder)
    names = [name for name in child.pipeline.head.stages if stages.KNOWN.index(name) >= stages.KNOWN.index("pool")]
    with newest_when_done(folder), _gone_without_pool(folder):
        child.execute(names)
    facts: dict[str, Any] = read_json(folder / "export" / "stage.json")["report"]["facts"]["grown"]
    return folder, facts


@contextmanager
def _gone_without_pool(folder: Path) -> Iterator[None]:
    """Remove the new run if a CurateError is raised before it has a pool, when nothing was paid for yet."""
    try:
        yield
    except CurateError:
        if not (folder / "pool").exists():
            shutil.rmtree(folder)
        raise


def _need_parent(parent_run: Run) -> None:
    if "export" not in parent_run.pipeline.head.stages:
        raise UserError(f"{parent_run.folder}: not the run of a benchmark, for it exports none; give one with --run")
    parent_run.need("export")


def _number(run: Path) -> int:
    earlier = ParentVersion.load(run)
    return 1 if earlier is None else earlier.version


def _version(parent_run: Run, order: ExtendOrder) -> ParentVersion:
    number = _number(parent_run.folder)
    parent: dict[str, Json] = {
        "folder": parent_run.folder.name,
        "id": run_id(parent_run.folder),
        "version": number,
        "settings": digest(parent_run.pipeline.frozen),
    }
    files: dict[str, Json] = {}
    for name, path in zip(order.retrievers, order.files, strict=False):
        if not path.is_file():
            raise UserError(f"--run-file: {path}: no such file; give a TREC run, or <task>_predictions.json of mteb")
        files[name] = {"kind": "run file", "file": path.name, "sha256": sha256(path)}
    added = {**files, **{name: {"kind": "encoder"} for name in order.encoders}}
    return ParentVersion(number + 1, parent, added, order.depth)


def _copy_into_place(parent_run: Run, order: ExtendOrder, folder: Path) -> None:
    """Copy the parent's files to a scratch folder and rename it, so that the new run appears complete or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        with locked(parent_run.folder), enough_space(folder):
            _copy(parent_run, order, scratch / "run")
        (scratch / "run").rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _copy(parent_run: Run, order: ExtendOrder, folder: Path) -> None:
    """Copy the parent's stages and assessors' answers, and its pool, labels and panel into the folder `parent`."""
    source = parent_run.folder
    for name in (*(stage_name for stage_name in stages.KNOWN if stage_name not in AGAIN), "reviews"):
        if (source / name).is_dir():
            shutil.copytree(source / name, folder / name)
    if (source / KEY).is_file():
        shutil.copy2(source / KEY, folder / KEY)
    if (source / RESIDUAL).is_file():
        (folder / RESIDUAL).parent.mkdir(exist_ok=True)
        shutil.copy2(source / RESIDUAL, folder / RESIDUAL)
    parent_folder = folder / PARENT
    parent_folder.mkdir()
    tables = {"pool": ("pool", "rankings"), "resolve": ("verdicts", "qrels")}
    for stage, names in tables.items():
        for name in names:
            shutil.copy2(source / stage / f"{name}.parquet", parent_folder)
    shutil.copy2(source / "judge" / "panel.json", parent_folder)
    if earlier := next(iter(sorted((source / "export").glob(f"*/{CHANGES}"))), None):
        shutil.copy2(earlier, parent_folder / CHANGES)
    _version(parent_run, order).write(parent_folder)


def _child(parent_run: Run, order: ExtendOrder, folder: Path) -> Run:
    """Return the run of the new version: the parent's settings, with the new systems among the pool's retrievers."""
    pipeline = Pipeline.check(_settings(parent_run, order), SETTINGS)
    return Run(folder, pipeline, parent_run.progress, parent_run.consent, parent_run.tell)


def _settings(parent_run: Run, order: ExtendOrder) -> dict[str, Json]:
    settings: dict[str, Any] = deepcopy(dict(parent_run.pipeline.settings))
    pool = parent_run.pipeline.sections["pool"]
    old: tuple[str, ...] = getattr(pool, "retrievers", ())
    if duplicates := sorted(set(order.retrievers) & {*old}):
        raise ConfigError(f"extend: {', '.join(duplicates)} is in the pool of {parent_run.folder}; rename the file")
    definitions: Mapping[str, Json] = settings.get("retrievers") or {}
    subset = {name: text for name, text in (("subset", order.subset), ("split", order.split)) if text is not None}
    files = {
        name: {"kind": "runfile", "path": str(path), **subset}
        for name, path in zip(order.retrievers, order.files, strict=False)
    }
    settings["retrievers"] = {**definitions, **files}
    settings["pool"] = {**(settings.get("pool") or {}), "retrievers": [*old, *order.retrievers]}
    return settings
