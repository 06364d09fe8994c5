"""Running of stages in a run folder: up-to-date stages are skipped, changed and interrupted ones run again."""

import json
import platform
import shlex
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from curate.ask import build, planned_pool, privacy_guard
from curate.core import config, records
from curate.core.config import Json, Settings
from curate.core.errors import ConfigError, CurateError, RunFailed, UserError
from curate.core.progress import WORKING, StepLabel, in_stage, waiting
from curate.core.protocols import PaidProgress, quiet
from curate.llm.exchange_rates import Rates
from curate.llm.providers.presets import rates
from curate.pipeline import stages
from curate.pipeline.folder import ID, SETTINGS, need_ours, need_run, run_id
from curate.pipeline.mark import Mark, release_raw
from curate.pipeline.pipeline import Pipeline, dump
from curate.pipeline.stage import Consent, Context, Report, Stage, home, ledger_place
from curate.pipeline.withdrawn import Withdrawn
from curate.retrieval.encoders.presets import with_presets
from curate.runs.derive import need_consistent
from curate.system import files
from curate.system.run_lock import PendingStages, enough_space, locked

State = Literal["done", "partial", "stale", "missing", "unchecked"]
"""State of a stage. `partial`: its tables are written, but not complete. `stale`: done, but settings or inputs changed.
`unchecked`: done, but an input file is missing, so that changes cannot be detected."""


@dataclass
class StageStates:
    """Reader of the states of a pipeline's stages in one run folder; runs and writes nothing."""

    pipeline: Pipeline
    place: Callable[[str], Path]
    """Function: stage -> folder of its tables, which is in the run folder or, before the commit, a hidden new one."""
    context: Callable[[], Context]
    _outside: dict[str, Json] = field(default_factory=dict)
    """Stage -> cached fingerprint; when a stage has run, those of later stages are dropped."""

    def all(self) -> dict[str, tuple[State, Mark | None]]:
        """Return state and done-mark (stage.json) of every stage of the pipeline, in order.

        A stage is stale, too, if a stage that it depends on is.
        """
        states: dict[str, tuple[State, Mark | None]] = {}
        for name in self.pipeline.head.stages:
            state = self.of(name)
            ancestors = [ancestor for ancestor in _ancestors(name) if ancestor in states]
            if state == "done" and any(_lacking(name, ancestor, states[ancestor][0]) for ancestor in ancestors):
                state = "stale"
            states[name] = (state, self.mark(name))
        return states

    def mark(self, name: str) -> Mark | None:
        """Return a stage's done-mark; None if missing or unreadable."""
        return Mark.read(self.place(name))

    def of(self, name: str) -> State:
        """Return the state of one stage by its done-mark, settings and inputs, whatever the state of earlier stages."""
        mark = self.mark(name)
        if mark is None:
            return "missing"
        if not mark.whole(self.place(name)) or mark.report.facts.get("outdated"):
            return "stale"
        try:
            if self.changed(stages.stage(name)):
                return "stale"
        except UserError:  # for example, the source was moved away
            return "unchecked"
        return "partial" if mark.report.unfinished else "done"

    def need_ancestors(self, name: str, folder: Path) -> None:
        """Raise UserError unless every stage that this one depends on is up to date."""
        for ancestor in _ancestors(name):
            state = self.of(ancestor)
            if _lacking(name, ancestor, state) and not (state == "stale" and stages.stage(name).renders):
                raise UserError(
                    f"{name}: the stage {ancestor!r} is not up to date in {folder}; run {_command(ancestor, folder)}"
                )

    def need(self, name: str, folder: Path) -> None:
        """Raise UserError unless a stage and all stages it depends on are up to date."""
        self.need_ancestors(name, folder)
        if self.of(name) in ("missing", "stale"):
            raise UserError(f"{folder}: the stage {name!r} is not up to date; run {_command(name, folder)} first")

    def made_from(self, stage: Stage[Any]) -> dict[str, Json]:
        """Return what a stage's tables depend on, as JSON types: settings, versions, inputs within and outside the run.

        The stage is up to date as long as this is unchanged.
        """
        marks: Mapping[str, Mark | None] = {name: self.mark(name) for name in stage.after}
        made_from: dict[str, Json] = json.loads(
            config.canonical(
                {
                    "stage": [stage.name, stage.version, records.VERSION],
                    "head": {name: getattr(self.pipeline.head, name) for name in stage.head},
                    "settings": config.digest(self.pipeline.sections[stage.name]),
                    "outside": self.fingerprint(stage),
                    "inputs": {name: mark.outputs if mark else None for name, mark in marks.items()},
                }
            )
        )
        return made_from

    def changed(self, stage: Stage[Any]) -> list[str] | None:
        """Return the keys of `made_from` whose values changed since the stage was done; None if it was never done.

        A key that the done-mark lacks was added in a later version and does not count as changed.
        """
        mark = self.mark(stage.name)
        if mark is None:
            return None
        now = {**self.made_from(stage), "schemas": schemas(mark.outputs)}
        return [key for key in now if key in mark.made_from and now[key] != mark.made_from[key]]

    def fingerprint(self, stage: Stage[Any]) -> Json:
        """Return the fingerprint of a stage's inputs outside of the run folder, such as the source's files; cached."""
        if stage.name not in self._outside:
            self._outside[stage.name] = stage.fingerprint(self.pipeline.sections[stage.name], self.context())
        return self._outside[stage.name]

    def forget(self, after: str = "") -> None:
        """Drop the cached fingerprints of the stages after stage `after`, which has run, or of all stages."""
        earlier = stages.KNOWN[: stages.KNOWN.index(after) + 1] if after else ()
        self._outside = {name: fingerprint for name, fingerprint in self._outside.items() if name in earlier}


PACKAGES = ("curate-ir", "polars", "numpy", "faiss-cpu", "bm25s", "jieba", "statsmodels", "sqlalchemy")
"""Whose versions manifest.json of a run folder states."""
CHANGED = {
    "stage": "the version of the program",
    "head": "settings of the whole pipeline",
    "outside": "files, models or answers of people that it reads",
    "inputs": "tables of earlier stages",
    "schemas": "the form of its tables",
}
"""Key of what a stage's tables depend on -> its words; `settings` stands for itself."""
DECISIONS = "decisions on what looks like personal data, or files that masking reads"


@cache
def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def write_manifest(folder: Path, pipeline: Pipeline, marks: Mapping[str, Mark]) -> None:
    """Write manifest.json: name, seed, digest of the settings, package versions, and done-marks of all stages."""
    manifest = {
        "name": pipeline.head.name,
        "seed": pipeline.head.seed,
        "settings_digest": config.digest(pipeline.frozen),
        "versions": _versions(),
        "stages": {name: asdict(mark) for name, mark in marks.items()},
    }
    files.write_json(folder / "manifest.json", manifest)


def _why(name: str, changed: Sequence[str]) -> str:
    """Return that a stage has started again, and by what changes."""
    words = {**CHANGED, **({"outside": DECISIONS} if name == "mask" else {})}
    return f" again, changed: {', '.join(words.get(key, key) for key in changed)}" if changed else " again"


def _command(stage: str, folder: Path) -> str:
    """Return the command line that runs a stage in a run folder; before the folder exists it needs the pipeline too."""
    if not folder.exists():
        return f"`curate {stage}` with the same --pipeline and --run"
    return f"`curate {stage} --run {shlex.quote(str(folder))}`"


def schemas(outputs: Iterable[str]) -> dict[str, Json]:
    """Return table -> digest of its columns and types by `TABLES`, for the known tables among a stage's files."""
    tables = (Path(name).stem for name in outputs if name.endswith(".parquet") and "/" not in name)
    columns = {name: records.TABLES[name] for name in sorted(tables) if name in records.TABLES}
    return {name: config.digest({column: str(kind) for column, kind in of.items()}) for name, of in columns.items()}


def _ancestors(name: str) -> list[str]:
    """Return every stage that a stage depends on, directly or not, in the order of the pipeline."""
    names = {name}
    for later in reversed(stages.KNOWN):
        if later in names:
            names.update(stages.stage(later).after)
    return [ancestor for ancestor in stages.KNOWN if ancestor in names and ancestor != name]


def _lacking(name: str, ancestor: str, state: State) -> bool:
    """Return whether `state` of `ancestor`, a stage that stage `name` depends on, prevents it from running."""
    return state == "stale" or (state == "missing" and ancestor not in stages.stage(name).optional)


# Run stages in a run folder: completed ones are skipped, changed ones repeated, interrupted ones restarted.

Found = TypeVar("Found")


@dataclass
class Run:
    """A run: a folder and the settings of its pipeline; only one process at a time can run stages in it."""

    folder: Path
    pipeline: Pipeline
    progress: PaidProgress = quiet
    consent: Consent = field(default_factory=Consent)
    tell: Callable[[str], None] = lambda _line: None
    """Called with one line when a stage starts, ends or is skipped."""
    named: bool = True
    """Whether the command names the run; False if it was chosen as the newest, whose ratings are never invalidated."""
    warning: str = ""
    """What the settings take back of the run, for the last lines of the output; empty if nothing."""
    _before: dict[str, State] = field(default_factory=dict)
    """States of the stages before the command, by the settings in the folder."""

    def __post_init__(self) -> None:
        self._made, self._drawn = PendingStages(self.folder, stages.KNOWN), ""
        self._states = StageStates(self.pipeline, self._made.place, lambda: self._context(self.folder))

    def execute(self, names: Sequence[str] | None = None, *, force: bool = False) -> None:
        """Run the named stages, or all of the pipeline, in order under the folder's lock.

        Stages that are up to date are skipped, except with `force`. New tables are written to hidden folders. They and
        the settings are put in place together, once no stage that was up to date before is still to be run again, so
        that a failure loses no earlier result (docs/decisions/0026).
        """
        names = self.pipeline.head.stages if names is None else names
        with waiting(self.progress, StepLabel("checking settings and files")):
            first = self._check(names, force=force)
            self._need_named()
        with self._attempt():
            self._before = self._standing() if first is not None else {}
            last = max((index for index, name in enumerate(names) if name in self._before), default=0)
            for index, name in enumerate(names):
                try:
                    self._ensure(name, force=force, alone=len(names) == 1)
                except KeyboardInterrupt as error:
                    saved = "what was finished is kept, and the same command goes on from there"
                    if self._made.waiting:
                        saved = "the run is left as it was, and the same command begins again"
                    error.add_note(f"stopped in the stage {name!r} of {self.folder}; {saved}")
                    raise
                except CurateError:
                    if lost := ", ".join(self._made.waiting):
                        self.tell(f"{self.folder} is left as it was; not kept of this command: {lost}")
                    raise
                if index >= last and self._made.waiting:
                    self._commit()
                if name == "mask" and not self._made.waiting:
                    self._need_masked(names[index + 1 :])
            self._commit()

    def rehearse(self, names: Sequence[str], look: Callable[["Run"], Found]) -> Found:
        """Run the named stages on trial and return the result of `look` on the run; the run folder is not changed."""
        self._check(names, force=False)
        with self._attempt():
            for name in names:
                self._ensure(name, force=False, alone=False)
            return look(self)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Lock the folder and let stages run; at the end, delete the tables that were not committed."""
        with locked(self.folder), enough_space(self.folder):
            self._made.drop()
            self._drawn = self._run_id() or uuid.uuid4().hex
            try:
                yield
            finally:
                self._made.drop()
                self._states.forget()

    def need_consistent(self) -> None:
        """Raise ConfigError if settings of the stages contradict one another."""
        need_consistent(self.pipeline, self._context(self.folder))

    def remember_plan(self) -> None:
        """Record the pool of the cost estimate, so that a run with another pool is detected before it is paid for."""
        planned_pool.remember(self._context(self.folder))

    def _need_named(self) -> None:
        """Raise UserError if the command would invalidate the ratings of a run that it does not name."""
        if self.named:
            return
        now = self.states()
        lost = [name for name in self._standing() if now.get(name, ("stale",))[0] == "stale"]
        if "judge" in lost:
            raise UserError(
                f"{self.folder}: {', '.join(lost)} are up to date, and these settings would make them again; if that "
                f"is meant, name the run: --run {shlex.quote(str(self.folder))}"
            )

    def _need_masked(self, names: Sequence[str]) -> None:
        """Raise UserError if a stage to come would send texts to a model elsewhere that must not leave.

        It would raise the same error itself, but after pooling, which is repeated once the texts are masked.
        """
        context = self._context(self.folder)
        if "judge" not in names or context.consent.offline or self._states.of("judge") == "done":
            return
        for judge in self.pipeline.sections["judge"].model_dump()["models"]:
            model = build.language_model(context, judge)
            if model is not None:
                privacy_guard.may_ask(f"judges.{judge}", model, context)

    def _standing(self) -> dict[str, State]:
        """Return stage -> state of the stages that are done or partial by the settings on disk."""
        if not (self.folder / SETTINGS).is_file():
            return {}
        try:
            earlier = Pipeline.load(self.folder / SETTINGS)
        except ConfigError:  # of another version, or of a missing plugin: nothing can be resumed
            return {}
        states = (self if earlier.frozen == self.pipeline.frozen else Run(self.folder, earlier)).states()
        return {name: state for name, (state, _) in states.items() if state not in ("missing", "stale")}

    def _commit(self) -> None:
        """Write the settings, then put the new stages in place; a crash in between leaves the old ones stale."""
        for name in self._made.waiting:  # checked again, since a stage may have taken hours
            need_ours(self.folder, name)
        if not run_id(self.folder):
            files.write_text(self.folder / ID, self._drawn)
        files.write_text(self.folder / SETTINGS, dump(self.pipeline.frozen))
        for name in (settled := self._made.settle()):
            if (page := self.folder / name / f"{name}.html").is_file():
                files.write_text(self.folder / page.name, page.read_text("utf-8"))
        if settled:
            marks = {name: mark for name in stages.KNOWN if (mark := self.mark(name))}
            write_manifest(self.folder, self.pipeline, marks)
        raw = self.mark("ingest")
        keep = getattr(self.pipeline.sections["ingest"], "keep_raw", False)
        if raw and not raw.released and not keep and self._states.of("mask") == "done":
            release_raw(self.folder, raw)

    def look(self, stage: str, ask: Callable[[Any, Context], Found]) -> Found:
        """Return the result of `ask` on a stage's settings and context; UserError unless its input is up to date.

        Used for estimates before a stage runs, such as the cost of judging or the duration of near-duplicate filtering.
        """
        self.need_consistent()
        self.need_ancestors(stage)
        with enough_space(self.folder):  # for vectors
            return ask(self.pipeline.sections[stage], self._context(self.folder))

    def beside(self, stage: str) -> Context:
        """Return a context for a check on the input of a stage; UserError unless that input is up to date.

        The check writes into `checks/`, which no stage reads.
        """
        self.need_ancestors(stage)
        return self._context(self.folder / "checks")

    def _check(self, names: Sequence[str], *, force: bool) -> str | None:
        """Run all checks that are possible before a stage runs or is paid; return the first stage to run.

        None if all stages are done. UserError or ConfigError if a check fails.
        """
        need_run(self.folder)
        self.need_consistent()
        for name in names:
            self._states.fingerprint(stages.stage(name))
        first = next((name for name in names if force or self._states.of(name) != "done"), None)
        for name in names[names.index(first) :] if first else ():
            need_ours(self.folder, name)
            stages.stage(name).preflight(self.pipeline.sections[name], self._context(self.folder))
        return first

    def states(self) -> dict[str, tuple[State, Mark | None]]:
        """Return state and done-mark of every stage of the pipeline, without running anything."""
        return self._states.all()

    def stale(self) -> list[str]:
        """Return the stages that have to run, in order."""
        return [name for name, (state, _) in self.states().items() if state not in ("done", "unchecked")]

    def mark(self, name: str) -> Mark | None:
        """Return a stage's done-mark; None if missing or unreadable."""
        return self._states.mark(name)

    def need_ancestors(self, name: str) -> None:
        """Raise UserError unless every stage that this one depends on is up to date."""
        self._states.need_ancestors(name, self.folder)

    def need(self, name: str) -> None:
        """Raise UserError unless a stage and all stages it depends on are up to date."""
        self._states.need(name, self.folder)

    def _ensure(self, name: str, *, force: bool, alone: bool) -> None:
        if self._states.of(name) == "done" and not force:
            self.tell(f"{name}: up to date, skipped")
            if name == "ingest" and (withdrawn := Withdrawn.read(self.folder).note()):
                self.tell(f"{name}: note: {withdrawn}")
            mark = self.mark(name)
            for line in cast("Sequence[str]", mark.report.facts.get("lost", ())) if mark else ():
                self.tell(f"{name}: note: {line}")
            return
        if alone:
            self.need_ancestors(name)
        for ancestor in stages.stage(name).after:
            mark = self.mark(ancestor)
            if mark and mark.released:
                self._run(ancestor, f", for {name} reads its raw texts, which were deleted after masking")
        self._run(name)

    def _run(self, name: str, reason: str = "") -> None:
        stage = stages.stage(name)
        need_ours(self.folder, name)
        changed = self._states.changed(stage)
        self.tell(f"{name}: started{_why(name, changed) if changed is not None else ''}{reason}")
        out = self._made.begin(name, private=name == "ingest")
        made_from, started = self._states.made_from(stage), time.monotonic()
        progress = in_stage(self.progress, name)

        def keep(report: Report) -> None:
            """Write the done-mark of a stage, whose tables then wait for the commit."""
            outputs = files.digests(out)
            mark = Mark(
                {**made_from, "schemas": schemas(outputs)}, report, round(time.monotonic() - started, 3), outputs
            )
            files.write_json(out / "stage.json", asdict(mark))
            self._made.waiting[name] = out

        written: list[Report] = []
        try:
            context = replace(self._context(out, written.append), progress=progress)
            if stage.renders:
                stale = [stage_name for stage_name, (state, _) in self._states.all().items() if state == "stale"]
                context = replace(context, outdated=[stage_name for stage_name in stale if stage_name in stage.after])
            with waiting(progress, WORKING):
                report = stage.run(self.pipeline.sections[name], context)
        except CurateError:
            if written and self._before.get(name) in (
                "done",
                "unchecked",
            ):  # a complete stage is not replaced by a partial one
                self.tell(f"{self.folder} is left as it was; what was paid lies in the ledger")
            elif written:
                keep(written[-1])
                self._commit()
            raise
        keep(report)
        self._states.forget(after=name)
        if report.unfinished:
            self._commit()
            raise RunFailed(f"{name}: {report.unfinished}")
        seconds = time.monotonic() - started
        self.tell(f"{name}: {report.rows_in:,} in, {report.rows_out:,} out, {seconds:.1f} s")
        for note in report.notes:
            self.tell(f"{name}: note: {note}")

    def _context(self, out: Path, partial: Callable[[Report], None] = lambda _report: None) -> Context:
        head = self.pipeline.head
        encoders = with_presets(cast("Mapping[str, Settings]", head.encoders))
        definitions = {"encoders": encoders, "retrievers": head.retrievers, "judges": head.judges}
        return Context(
            run=self.folder,
            out=out,
            home=home(),
            ledger=ledger_place(),
            run_id=self._run_id(),
            name=head.name,
            seed=head.seed,
            language=head.language,
            definitions=cast("Mapping[str, Mapping[str, Settings]]", definitions),
            engine=cast("Settings", head.engine),
            progress=self.progress,
            tell=self.tell,
            consent=self.consent,
            settings=self.pipeline.frozen,
            rates=Rates(head.rates).over(rates()),
            currency=head.currency,
            made=dict(self._made.waiting),
            partial=partial,
        )

    def _run_id(self) -> str:
        """Return the random id of this folder; empty before its first command."""
        return run_id(self.folder) or self._drawn
