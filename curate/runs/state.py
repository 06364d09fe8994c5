"""States of a run's stages, from their done-marks and the fingerprints of their inputs."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from curate.core import config, records
from curate.core.config import Json
from curate.core.errors import UserError
from curate.pipeline import stages
from curate.pipeline.mark import Mark
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, Stage

State = Literal["done", "partial", "stale", "missing", "unchecked"]
"""`partial`: tables are written, more is to do; `unchecked`: done, but whether it is up to date is unknown, since an
input file is missing."""


@dataclass
class StageStates:
    """States of a pipeline's stages in one run folder; runs and writes nothing."""

    pipeline: Pipeline
    place: Callable[[str], Path]
    """Stage -> folder of its tables, in the run folder or, before the commit, next to it."""
    context: Callable[[], Context]
    _outside: dict[str, Json] = field(default_factory=dict)
    """Cached fingerprints; those of later stages are dropped when a stage has run."""

    def all(self) -> dict[str, tuple[State, Mark | None]]:
        """Return state and done-mark of every stage of the pipeline."""
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
        """Return the state of one stage from its own mark, settings and inputs."""
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
        """Return all that the stage's tables depend on, as JSON types; a stage is up to date while it is unchanged."""
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
        """Return the parts of `made_from` that changed since the stage was done; None if it was not.

        A part that the done-mark lacks was added in a later version and does not count as changed.
        """
        mark = self.mark(stage.name)
        if mark is None:
            return None
        now = {**self.made_from(stage), "schemas": schemas(mark.outputs)}
        return [key for key in now if key in mark.made_from and now[key] != mark.made_from[key]]

    def fingerprint(self, stage: Stage[Any]) -> Json:
        """Return the fingerprint of a stage's inputs outside of the run folder, cached."""
        if stage.name not in self._outside:
            self._outside[stage.name] = stage.fingerprint(self.pipeline.sections[stage.name], self.context())
        return self._outside[stage.name]

    def forget(self, after: str = "") -> None:
        """Drop the cached fingerprints of all stages after one that has run, or of all."""
        earlier = stages.KNOWN[: stages.KNOWN.index(after) + 1] if after else ()
        self._outside = {name: fingerprint for name, fingerprint in self._outside.items() if name in earlier}


def _command(stage: str, folder: Path) -> str:
    """Return the command that runs a stage in a run folder; a missing folder needs its pipeline."""
    if not folder.exists():
        return f"`curate {stage}` with the same --pipeline and --run"
    return f"`curate {stage} --run {shlex.quote(str(folder))}`"


def schemas(outputs: Iterable[str]) -> dict[str, Json]:
    """Return table -> digest of its columns and their types, for the tables among a stage's files."""
    tables = (Path(name).stem for name in outputs if name.endswith(".parquet") and "/" not in name)
    columns = {name: records.TABLES[name] for name in sorted(tables) if name in records.TABLES}
    return {name: config.digest({column: str(kind) for column, kind in of.items()}) for name, of in columns.items()}


def _ancestors(name: str) -> list[str]:
    """Return every stage that a stage depends on, in the order of the pipeline."""
    names = {name}
    for later in reversed(stages.KNOWN):
        if later in names:
            names.update(stages.stage(later).after)
    return [ancestor for ancestor in stages.KNOWN if ancestor in names and ancestor != name]


def _lacking(name: str, ancestor: str, state: State) -> bool:
    """Return whether an ancestor in this state prevents a stage from running."""
    return state == "stale" or (state == "missing" and ancestor not in stages.stage(name).optional)
