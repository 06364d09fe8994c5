"""`curate extend`: judge the unjudged documents that later systems retrieve, and write version 2 of a benchmark.

Texts, masking and assessors' answers are copied to a new run folder; pool, ratings and labels are recomputed by the
same stages and settings. The ledger contains the ratings of all earlier pairs, so judges only grade the added
documents.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from curate.ask.billing import PlanRow
from curate.ask.quote import quote
from curate.ask.residual_decisions import FILE as RESIDUAL
from curate.core.config import Json, digest
from curate.core.errors import ConfigError, CurateError, UserError
from curate.core.figures import Record, figure
from curate.core.records import VERDICTS
from curate.pipeline import stages
from curate.pipeline.folder import SETTINGS, is_run, newest_when_done, run_id
from curate.pipeline.parent import CHANGES, PARENT, ParentVersion
from curate.pipeline.pipeline import Pipeline
from curate.runs import opening
from curate.runs.command import Names, argument, option
from curate.runs.options import LedgerFirst, Plannable, WithRunFiles
from curate.runs.outputs import free_place
from curate.runs.runner import Run
from curate.system.files import read_json, sha256
from curate.system.run_lock import enough_space, locked
from curate.tables.exporters.ids import KEY
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table

DEPTH = 10
"""Default number of documents per query and new system that are judged; those that nDCG@10 depends on."""
AGAIN = ("pool", "judge", "consensus", "resolve", "export", "report", "audit", "train_set")
"""Stages that are not copied from the earlier version but run again, because they depend on the pool."""


class ExtendFigures(Record, schema_name="extended"):
    """A new version of a benchmark, with what later systems find and nobody had judged; or the plan (--plan)."""

    run_folder: Path = figure("folder of the new version")
    version: int = figure("number of the new version")
    parent: Mapping[str, Any] = figure("folder, id and version of the earlier version, and a digest of its settings")
    depth: int = figure("documents of each added system that are judged, per query")
    holes: int = figure("pairs of the added systems that were unjudged")
    relevant: int = figure("new pairs with the verdict relevant")
    not_relevant: int = figure("new pairs with the verdict not relevant", key="not relevant")
    contested: int = figure("new pairs with the verdict contested")
    incomplete: int = figure("new pairs with the verdict incomplete")
    not_positive: int = figure(
        "new pairs that a cascade stopped because they cannot become relevant", key="not positive"
    )
    systems: Mapping[str, Any] = figure("added system -> its source, its holes, and their verdicts")
    queries_won: int = figure("queries that had no relevant document and now have one")
    changed: int = figure("earlier pairs whose verdict changed")
    same_panel: bool = figure("whether panel, rubric and prompt are those of the earlier version")
    decided_by: Mapping[str, Any] = figure("policy -> numbers of earlier and new pairs that it decided")
    passages_per_prompt: Mapping[str, Any] = figure("judge -> mean passages per prompt, of earlier and of new pairs")
    warnings: tuple[str, ...] = figure("differences in how earlier and new labels were made")


class ExtendCommand(Plannable, LedgerFirst, WithRunFiles):
    """Judge new systems' documents.

    Documents that later systems rank high and nobody has judged are judged, and the next version of the run is written.
    Panel, rubric, prompt and settings are the run's own; what the ledger holds is not asked again. The run itself stays
    as it is. A version that was refused or stopped goes on with the same command.
    """

    words = "extend"
    examples = ("extend runs/demo --run-file system.trec --plan", "extend runs/demo --encoder e5 --max-cost 5")

    run: Path = argument("Run folder of the earlier version.", complete="runs")
    encoder: Names = option("An encoder that searches the corpus; may be repeated.", (), metavar="NAME")
    depth: int = option("Documents of each system that are judged.", DEPTH, ge=1)
    out: Path | None = option("Folder of the new version; default: the run's, with -v2 behind.", None, metavar="FOLDER")

    def result(self) -> Result[ExtendFigures]:
        """Return the folder and the figures of the new version; with `plan`, what it would ask."""
        work = opening.opened(None, opening.run_folder(self.run, tell=self.notify), detect=False, tell=self.notify)
        work.progress, work.tell, work.consent = self.progress, self.tell, self.consent()
        if self.plan:
            return self.cost_estimate(planned(work, self))
        figures = extend(work, self)
        return Result(figures, _text(figures), figures.warnings)

    @property
    def systems(self) -> list[str]:
        """Return the names of the systems: stems of files, without unusual characters, then encoders."""
        return [*(re.sub(r"[^\w.-]+", "-", path.stem) for path in self.run_file), *self.encoder]


def _text(figures: ExtendFigures) -> Iterator[str]:
    say = RecordWords("extend/extend")
    yield say("version", figures)
    yield say("holes", figures)
    entries = figures.to_json()
    verdicts = [verdict for verdict in VERDICTS if entries[verdict]]
    yield as_table(
        [
            {"system": name, "documents": counts["holes"], **{verdict: counts[verdict] for verdict in verdicts}}
            for name, counts in figures.systems.items()
        ]
    )
    yield say("queries_won", figures)
    yield say("changed", figures)
    yield from (say("warning", warning=warning) for warning in figures.warnings)


def planned(parent_run: Run, command: ExtendCommand) -> list[PlanRow]:
    """Return the cost estimate of judging the added documents, as rows of `quote`; nothing is sent or written."""
    _need_systems(command)
    _need_parent(parent_run)
    with TemporaryDirectory(prefix=".extend-", dir=parent_run.folder.parent) as scratch:
        folder = Path(scratch) / "run"
        _copy(parent_run, command, folder)
        child = _child(parent_run, command, folder)
        return child.rehearse(["pool"], lambda run: run.look("judge", quote))


def extend(parent_run: Run, command: ExtendCommand) -> ExtendFigures:
    """Write the next version of a run, within its consent to spend; return its folder and figures on what was added.

    The same call resumes a version that was refused or stopped. UserError if the folder contains a version with other
    systems.
    """
    _need_systems(command)
    _need_parent(parent_run)
    stem = re.sub(r"-v\d+$", "", parent_run.folder.name)
    folder = command.out or parent_run.folder.with_name(f"{stem}-v{_number(parent_run.folder) + 1}")
    if not is_run(folder):
        free_place(folder)
    requested, _ = _version(parent_run, command), _settings(parent_run, command)  # their errors come before the copy
    if folder.exists():
        if ParentVersion.load(folder) != requested:
            raise UserError(
                f"{folder}: exists, and is not this version of this run by these systems; choose another folder with "
                "--out"
            )
    else:
        _copy_into_place(parent_run, command, folder)
    child = _child(parent_run, command, folder)
    names = [name for name in child.pipeline.head.stages if stages.KNOWN.index(name) >= stages.KNOWN.index("pool")]
    with newest_when_done(folder), _gone_without_pool(folder):
        child.execute(names)
    facts = read_json(folder / "export" / "stage.json")["report"]["facts"]["grown"]
    return ExtendFigures.from_json(facts | {"run_folder": folder})


@contextmanager
def _gone_without_pool(folder: Path) -> Iterator[None]:
    """Remove the new run if a CurateError is raised before it has a pool, when nothing was paid for yet."""
    try:
        yield
    except CurateError:
        if not (folder / "pool").exists():
            shutil.rmtree(folder)
        raise


def _need_systems(command: ExtendCommand) -> None:
    """Raise ConfigError without a system, or for two of one name."""
    if not command.systems:
        raise ConfigError("extend: found no system; give --run-file FILE, or --encoder NAME")
    if twice := sorted({name for name in command.systems if command.systems.count(name) > 1}):
        raise ConfigError(f"extend: {', '.join(twice)} stands there twice; rename the file, for names are shown")


def _need_parent(parent_run: Run) -> None:
    if "export" not in parent_run.pipeline.head.stages:
        raise UserError(f"{parent_run.folder}: not the run of a benchmark, for it exports none; give one with --run")
    parent_run.need("export")


def _number(run: Path) -> int:
    earlier = ParentVersion.load(run)
    return 1 if earlier is None else earlier.version


def _version(parent_run: Run, command: ExtendCommand) -> ParentVersion:
    number = _number(parent_run.folder)
    parent: dict[str, Json] = {
        "folder": parent_run.folder.name,
        "id": run_id(parent_run.folder),
        "version": number,
        "settings": digest(parent_run.pipeline.frozen),
    }
    files: dict[str, Json] = {}
    for name, path in zip(command.systems, command.run_file, strict=False):
        if not path.is_file():
            raise UserError(f"--run-file: {path}: no such file; give a TREC run, or <task>_predictions.json of mteb")
        files[name] = {"kind": "run file", "file": path.name, "sha256": sha256(path)}
    added = {**files, **{name: {"kind": "encoder"} for name in command.encoder}}
    return ParentVersion(number + 1, parent, added, command.depth)


def _copy_into_place(parent_run: Run, command: ExtendCommand, folder: Path) -> None:
    """Copy the parent's files to a scratch folder and rename it, so that the new run appears complete or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        with locked(parent_run.folder), enough_space(folder):
            _copy(parent_run, command, scratch / "run")
        (scratch / "run").rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _copy(parent_run: Run, command: ExtendCommand, folder: Path) -> None:
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
    _version(parent_run, command).write(parent_folder)


def _child(parent_run: Run, command: ExtendCommand, folder: Path) -> Run:
    """Return the run of the new version: the parent's settings, with the new systems among the pool's retrievers."""
    pipeline = Pipeline.check(_settings(parent_run, command), SETTINGS)
    return Run(folder, pipeline, parent_run.progress, parent_run.consent, parent_run.tell)


def _settings(parent_run: Run, command: ExtendCommand) -> dict[str, Json]:
    settings: dict[str, Any] = deepcopy(dict(parent_run.pipeline.settings))
    pool = parent_run.pipeline.sections["pool"]
    old: tuple[str, ...] = getattr(pool, "retrievers", ())
    if duplicates := sorted(set(command.systems) & {*old}):
        raise ConfigError(f"extend: {', '.join(duplicates)} is in the pool of {parent_run.folder}; rename the file")
    definitions: Mapping[str, Json] = settings.get("retrievers") or {}
    subset = {name: text for name, text in (("subset", command.subset), ("split", command.split)) if text is not None}
    files = {
        name: {"kind": "runfile", "path": str(path), **subset}
        for name, path in zip(command.systems, command.run_file, strict=False)
    }
    settings["retrievers"] = {**definitions, **files}
    settings["pool"] = {**(settings.get("pool") or {}), "retrievers": [*old, *command.systems]}
    return settings
