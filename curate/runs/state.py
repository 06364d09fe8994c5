"""Whether the stages of a run are up to date, by their done-marks and all that their tables depend on."""

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
"""`partial` wrote its tables and has more to do; `unchecked` is done, but a missing file hides whether it is still up
to date."""


@dataclass
class StageStates:
    """States of a pipeline's stages in one run folder; nothing is run or written."""

    pipeline: Pipeline
    place: Callable[[str], Path]
    """Stage -> where its tables are, be they in the run folder or waiting beside it."""
    context: Callable[[], Context]
    _outside: dict[str, Json] = field(default_factory=dict)
    """Fingerprints, taken once; those of later stages are taken again when a stage has run."""

    def all(self) -> dict[str, tuple[State, Mark | None]]:
        """Return state and done-mark of every stage of the pipeline."""
        found: dict[str, tuple[State, Mark | None]] = {}
        for name in self.pipeline.head.stages:
            state = self.of(name)
            before = [ancestor for ancestor in _ancestors(name) if ancestor in found]
            if state == "done" and any(_lacking(name, each, found[each][0]) for each in before):
                state = "stale"
            found[name] = (state, self.mark(name))
        return found

    def mark(self, name: str) -> Mark | None:
        """Return a stage's done-mark, None if it has none that can be read."""
        return Mark.read(self.place(name))

    def of(self, name: str) -> State:
        """Return the state of one stage, by its own mark, settings and inputs."""
        mark = self.mark(name)
        if mark is None:
            return "missing"
        if not mark.whole(self.place(name)) or mark.report.facts.get("outdated"):
            return "stale"
        try:
            if self.changed(stages.stage(name)):
                return "stale"
        except UserError:  # say, the source was moved away since
            return "unchecked"
        return "partial" if mark.report.unfinished else "done"

    def need_ancestors(self, name: str, folder: Path) -> None:
        """Raise UserError unless every stage whose tables go into this one is up to date."""
        for ancestor in _ancestors(name):
            state = self.of(ancestor)
            if _lacking(name, ancestor, state) and not (state == "stale" and stages.stage(name).renders):
                raise UserError(
                    f"{name}: the stage {ancestor!r} is not up to date in {folder}; run {_command(ancestor, folder)}"
                )

    def need(self, name: str, folder: Path) -> None:
        """Raise UserError unless a stage and all that goes into it are up to date."""
        self.need_ancestors(name, folder)
        if self.of(name) in ("missing", "stale"):
            raise UserError(f"{folder}: the stage {name!r} is not up to date; run {_command(name, folder)} first")

    def made_from(self, stage: Stage[Any]) -> dict[str, Json]:
        """Return all that the stage's tables depend on, in JSON's types; the same again means nothing to do."""
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
        """Return what changed since the stage was done; None if it was not.

        A part that its mark lacks is of a later version than the one that made it, and no change.
        """
        mark = self.mark(stage.name)
        if mark is None:
            return None
        now = {**self.made_from(stage), "schemas": schemas(mark.outputs)}
        return [part for part in now if part in mark.made_from and now[part] != mark.made_from[part]]

    def fingerprint(self, stage: Stage[Any]) -> Json:
        """Return what identifies all that a stage reads outside of the run folder."""
        if stage.name not in self._outside:
            self._outside[stage.name] = stage.fingerprint(self.pipeline.sections[stage.name], self.context())
        return self._outside[stage.name]

    def forget(self, after: str = "") -> None:
        """Take fingerprints again: those of the stages behind one that has run, or all."""
        kept = stages.KNOWN[: stages.KNOWN.index(after) + 1] if after else ()
        self._outside = {name: known for name, known in self._outside.items() if name in kept}


def _command(stage: str, folder: Path) -> str:
    """Return what runs a stage in a run folder; in one that is not there yet only its pipeline does."""
    if not folder.exists():
        return f"`curate {stage}` with the same --pipeline and --run"
    return f"`curate {stage} --run {shlex.quote(str(folder))}`"


def schemas(outputs: Iterable[str]) -> dict[str, Json]:
    """Return table -> digest of its columns and their types, of the tables among the files of a stage."""
    tables = (Path(name).stem for name in outputs if name.endswith(".parquet") and "/" not in name)
    columns = {name: records.TABLES[name] for name in sorted(tables) if name in records.TABLES}
    return {name: config.digest({column: str(kind) for column, kind in of.items()}) for name, of in columns.items()}


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
