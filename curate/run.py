"""Run stages in a run folder: what is done is skipped, what changed is redone, what is killed starts over."""

import json
import platform
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from curate import config, files, records, stages
from curate.config import Json, Settings
from curate.context import Consent, Context, Report, Stage, home, ledger_place
from curate.errors import ConfigError, CurateError, RunFailed, UserError
from curate.folder import Made, enough_space, locked
from curate.foreign import ID, need_ours, need_run, run_id
from curate.pii.naming import Names
from curate.pipeline import Pipeline, dump
from curate.protocols import PaidProgress, quiet
from curate.providers.presets import rates
from curate.rates import Rates
from curate.stages.mark import ID_TABLES, TEXT_TABLES, Mark

State = Literal["done", "partial", "stale", "missing", "unchecked"]
"""`partial` wrote its tables and has more to do; `unchecked` is done, but a missing file hides whether it is still up
to date."""
SETTINGS = "pipeline.yaml"
"""The settings that the run folder stands under; the newest run is the one whose settings were written last."""
Found = TypeVar("Found")
PACKAGES = ("curate-ir", "polars", "numpy", "faiss-cpu", "bm25s", "jieba", "statsmodels", "sqlalchemy")


@dataclass
class Run:
    """One run folder, held by one process at a time."""

    folder: Path
    pipeline: Pipeline
    progress: PaidProgress = quiet
    consent: Consent = field(default_factory=Consent)
    tell: Callable[[str], None] = lambda _line: None
    """Called with one line when a stage starts, ends or is skipped."""
    _outside: dict[str, Json] = field(default_factory=dict)
    """Fingerprints, taken once; those of later stages are taken again when a stage has run."""
    _before: dict[str, State] = field(default_factory=dict)
    """What the stages were before the command, under the settings that the folder then stood under."""

    def __post_init__(self) -> None:
        self._made, self._drawn = Made(self.folder, stages.KNOWN), ""

    def execute(self, names: Sequence[str] | None = None, *, force: bool = False) -> None:
        """Run the named stages, or all of the pipeline, in order under the folder's lock.

        What is up to date is skipped unless forced. Settings and stages take their places together, at the first
        moment at which nothing that was up to date can still be lost to a refusal or a failure
        (docs/decisions/0026).
        """
        names = self.pipeline.head.stages if names is None else names
        first = self._check(names, force=force)
        with self._attempt():
            self._before = self._standing() if first is not None else {}
            last = max((at for at, name in enumerate(names) if name in self._before), default=0)
            for at, name in enumerate(names):
                try:
                    self._ensure(name, force=force, alone=len(names) == 1)
                except KeyboardInterrupt as error:
                    kept = "what was finished is kept, and the same command goes on from there"
                    if self._made.waiting:
                        kept = "the run is left as it was, and the same command begins again"
                    error.add_note(f"stopped in the stage {name!r} of {self.folder}; {kept}")
                    raise
                except CurateError:
                    if lost := ", ".join(self._made.waiting):
                        self.tell(f"{self.folder} is left as it was; not kept of this command: {lost}")
                    raise
                if at >= last and self._made.waiting:
                    self._commit()
            self._commit()

    def rehearse(self, names: Sequence[str], look: Callable[["Run"], Found]) -> Found:
        """Return what `look` finds once the named stages are done, and leave the folder as it is."""
        self._check(names, force=False)
        with self._attempt():
            for name in names:
                self._ensure(name, force=False, alone=False)
            return look(self)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Hold the folder; what is not committed in the end is gone."""
        with locked(self.folder), enough_space(self.folder):
            self._made.drop()
            self._drawn = self._run_id() or uuid.uuid4().hex
            try:
                yield
            finally:
                self._made.drop()
                self._outside.clear()

    def _standing(self) -> dict[str, State]:
        """Return the stages that the settings on disk find up to date, partial ones too."""
        if not (self.folder / SETTINGS).is_file():
            return {}
        try:
            before = Pipeline.load(self.folder / SETTINGS)
        except ConfigError:  # of another version, or of a plugin that is gone: nothing goes on under them
            return {}
        states = (self if before.frozen == self.pipeline.frozen else Run(self.folder, before)).states()
        return {name: state for name, (state, _) in states.items() if state not in ("missing", "stale")}

    def _commit(self) -> None:
        """Put settings and finished stages into their places, settings first: an old stage is then out of date."""
        for name in self._made.waiting:  # again, for a stage may have taken hours
            need_ours(self.folder, name)
        if not run_id(self.folder):
            files.write_text(self.folder / ID, self._drawn)
        files.write_text(self.folder / SETTINGS, dump(self.pipeline.frozen))
        for name in (settled := self._made.settle()):
            if (page := self.folder / name / f"{name}.html").is_file():
                files.write_text(self.folder / page.name, page.read_text("utf-8"))
        if settled:
            self._write_manifest()
        self._release()

    def quote(self) -> list[dict[str, Json]]:
        """Return what judging would send and cost, a row a judge (see `stages.quote`); nothing is sent."""
        from curate.stages.quote import quote

        self.need_ancestors("judge")
        return quote(self.pipeline.sections["judge"], self._context(self.folder))  # type: ignore[arg-type]

    def forecast(self) -> list[dict[str, Json]]:
        """Return what diversify has to do and about how long that takes (see `stages.forecast`)."""
        from curate.stages.forecast import forecast

        self.need_ancestors("diversify")
        return forecast(self.pipeline.sections["diversify"], self._context(self.folder))  # type: ignore[arg-type]

    def sweep(self, asked: str) -> list[dict[str, Json]]:
        """Return what diversify would keep at thresholds such as `t=0.7:0.9` (see `stages.forecast.swept`)."""
        from curate.stages.forecast import swept
        from curate.sweep import thresholds

        ts = thresholds(asked)
        self.need_ancestors("diversify")
        with enough_space(self.folder):  # for vectors
            return swept(self.pipeline.sections["diversify"], self._context(self.folder), ts)  # type: ignore[arg-type]

    def quote_sts(self) -> list[dict[str, Json]]:
        """Return what an STS set would ask, a row a question and model; nothing is sent."""
        from curate.stages.sts import planned

        self.need_ancestors("sts")
        return planned(self.pipeline.sections["sts"], self._context(self.folder))  # type: ignore[arg-type]

    def beside(self, stage: str) -> Context:
        """Return the context of a check on what a stage works with; UserError unless that is up to date.

        The check writes into `checks/`, which no stage reads.
        """
        self.need_ancestors(stage)
        return self._context(self.folder / "checks")

    def _check(self, names: Sequence[str], *, force: bool) -> str | None:
        """Find everything that can be wrong before anything is done or paid; return the first stage that is to run."""
        need_run(self.folder)
        for name in names:
            self._fingerprint(stages.stage(name))
        first = next((name for name in names if force or self._state(name, self.mark(name)) != "done"), None)
        for name in names[names.index(first) :] if first else ():
            need_ours(self.folder, name)
            stages.stage(name).preflight(self.pipeline.sections[name], self._context(self.folder))
        return first

    def states(self) -> dict[str, tuple[State, Mark | None]]:
        """Return state and done-mark of every stage of the pipeline, without running anything."""
        found: dict[str, tuple[State, Mark | None]] = {}
        for name in self.pipeline.head.stages:
            mark = self.mark(name)
            state = self._state(name, mark)
            before = [each for each in _ancestors(name) if each in found]
            if state == "done" and any(_lacking(name, each, found[each][0]) for each in before):
                state = "stale"
            found[name] = (state, mark)
        return found

    def mark(self, name: str) -> Mark | None:
        """Return a stage's done-mark, None if it has none that can be read."""
        return Mark.read(self._made.place(name))

    def _ensure(self, name: str, *, force: bool, alone: bool) -> None:
        if self._state(name, self.mark(name)) == "done" and not force:
            self.tell(f"{name}: up to date, skipped")
            return
        if alone:
            self.need_ancestors(name)
        for before in stages.stage(name).after:
            mark = self.mark(before)
            if mark and mark.released:
                self._run(before)
        self._run(name)

    def need_ancestors(self, name: str) -> None:
        """Raise UserError unless every stage whose tables go into this one is up to date."""
        for before in _ancestors(name):
            if _lacking(name, before, self._state(before, self.mark(before))):
                raise UserError(
                    f"{name}: the stage {before!r} is not up to date in {self.folder}; run `curate {before}`"
                )

    def _run(self, name: str) -> None:
        stage = stages.stage(name)
        need_ours(self.folder, name)
        self.tell(f"{name}: started{self._why(stage)}")
        out = self._made.begin(name, private=name == "ingest")
        made_from, started = self._made_from(stage), time.monotonic()

        def keep(report: Report) -> None:
            """Let a stage's tables wait for the commit, with their done-mark."""
            mark = Mark(made_from, report, round(time.monotonic() - started, 3), files.digests(out))
            files.write_json(out / "stage.json", asdict(mark))
            self._made.waiting[name] = out

        written: list[Report] = []
        try:
            report = stage.run(self.pipeline.sections[name], self._context(out, written.append))
        except CurateError:
            if written and self._before.get(name) in ("done", "unchecked"):  # what is whole gives way to nothing less
                self.tell(f"{self.folder} is left as it was; what was paid lies in the ledger")
            elif written:
                keep(written[-1])
                self._commit()
            raise
        keep(report)
        before = stages.KNOWN[: stages.KNOWN.index(name) + 1]
        self._outside = {each: known for each, known in self._outside.items() if each in before}
        if report.unfinished:
            self._commit()
            raise RunFailed(f"{name}: {report.unfinished}")
        seconds = time.monotonic() - started
        self.tell(f"{name}: {report.rows_in:,} in, {report.rows_out:,} out, {seconds:.1f} s")
        for note in report.notes:
            self.tell(f"{name}: note: {note}")

    def _why(self, stage: Stage[Any]) -> str:
        """Say what changed since the stage was done, if it was."""
        mark = self.mark(stage.name)
        if mark is None:
            return ""
        now = self._made_from(stage)
        changed = [part for part in now if now[part] != mark.made_from.get(part)]
        return f" again, changed: {', '.join(changed)}" if changed else " again"

    def _release(self) -> None:
        """Once `mask` is up to date, delete the raw texts of `ingest`: personal data does not outlive its masking.

        Nor do tables of ids, if some had to be renamed.
        """
        mark = self.mark("ingest")
        if mark is None or mark.released or getattr(self.pipeline.sections["ingest"], "keep_raw", False):
            return
        if self._state("mask", self.mark("mask")) != "done":
            return
        files.write_json(self.folder / "ingest" / "stage.json", asdict(replace(mark, released=True)))
        for table in (*TEXT_TABLES, *(ID_TABLES if Names(self.folder / "mask", home()).known else ())):
            (self.folder / "ingest" / table).unlink(missing_ok=True)

    def _state(self, name: str, mark: Mark | None) -> State:
        if mark is None:
            return "missing"
        if not mark.whole(self._made.place(name)):
            return "stale"
        try:
            if mark.made_from != self._made_from(stages.stage(name)):
                return "stale"
        except UserError:  # say, the source was moved away since
            return "unchecked"
        return "partial" if mark.report.unfinished else "done"

    def _made_from(self, stage: Stage[Any]) -> dict[str, Json]:
        """Return all that the stage's tables depend on, in JSON's types; the same again means nothing to do."""
        marks = {name: self.mark(name) for name in stage.after}
        made_from: dict[str, Json] = json.loads(
            config.canonical(
                {
                    "stage": [stage.name, stage.version, records.VERSION],
                    "head": {name: getattr(self.pipeline.head, name) for name in stage.head},
                    "settings": config.digest(self.pipeline.sections[stage.name]),
                    "outside": self._fingerprint(stage),
                    "inputs": {name: mark.outputs if mark else None for name, mark in marks.items()},
                }
            )
        )
        return made_from

    def _fingerprint(self, stage: Stage[Any]) -> Json:
        if stage.name not in self._outside:
            settings = self.pipeline.sections[stage.name]
            self._outside[stage.name] = stage.fingerprint(settings, self._context(self.folder))
        return self._outside[stage.name]

    def _context(self, out: Path, partial: Callable[[Report], None] = lambda _report: None) -> Context:
        head = self.pipeline.head
        definitions = {"encoders": head.encoders, "retrievers": head.retrievers, "judges": head.judges}
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
        """Return what was drawn for this folder when it was first worked in; empty before that."""
        return run_id(self.folder) or self._drawn

    def _write_manifest(self) -> None:
        marks = {name: mark for name in stages.KNOWN if (mark := self.mark(name))}
        manifest = {
            "name": self.pipeline.head.name,
            "seed": self.pipeline.head.seed,
            "settings_digest": config.digest(self.pipeline.frozen),
            "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
            "stages": {name: asdict(mark) for name, mark in marks.items()},
        }
        files.write_json(self.folder / "manifest.json", manifest)


def _ancestors(name: str) -> list[str]:
    """Return every stage whose tables go into a stage, first ones first."""
    found = {name}
    for each in reversed(stages.KNOWN):
        if each in found:
            found.update(stages.stage(each).after)
    return [each for each in stages.KNOWN if each in found and each != name]


def _lacking(name: str, before: str, state: State) -> bool:
    """Say whether a stage cannot be built upon another one in this state."""
    return state == "stale" or (state == "missing" and before not in stages.stage(name).optional)
