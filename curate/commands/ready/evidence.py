"""Everything that a run's folder holds of whether it can be published, read once."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from curate.core.config import parse_yaml
from curate.core.errors import UserError
from curate.llm.providers.presets import families
from curate.pipeline.stage import Context
from curate.runs.runner import Run
from curate.system.files import read_json, sha256
from curate.system.resources import template
from curate.tables.exporters import mteb_tasks

FILE = "commands/ready/words.yaml"
State = Literal["ok", "not ok", "not measured"]


@dataclass(frozen=True)
class ReadyPoint:
    """One point of the checklist."""

    name: str
    state: State
    found: str
    """What was found, a sentence."""
    next: str | None = None
    """Command that takes an open point further."""


@dataclass(frozen=True)
class ReadyEvidence:
    """A run with a finished export in mteb's format."""

    run: Run

    @cached_property
    def rules(self) -> Mapping[str, Any]:
        """Return limits and commands."""
        found: dict[str, Any] = parse_yaml(template(FILE))
        return found

    @property
    def limits(self) -> Mapping[str, Any]:
        """Return from where on a point is ok."""
        found: Mapping[str, Any] = self.rules["limits"]
        return found

    @cached_property
    def context(self) -> Context:
        """Return the context of a check."""
        return self.run.beside("export")

    @cached_property
    def folders(self) -> list[Path]:
        """Return the folders of the exported tasks; UserError unless the export is there and up to date."""
        state, _ = self.run.states().get("export", ("missing", None))
        folders = mteb_tasks.task_folders(self.run.folder / "export" / "mteb") if state == "done" else []
        if not folders:
            raise UserError(
                f"{self.run.folder}: the export is {state}, expected one that is done and has the format mteb; next: "
                f"{self.command('export')}"
            )
        return folders

    @cached_property
    def fronts(self) -> Mapping[str, Mapping[str, Any]]:
        """Return task -> the YAML block of its README."""
        return {folder.name: mteb_tasks.front_matter(folder) for folder in self.folders}

    @cached_property
    def judged(self) -> Mapping[str, Any]:
        """Return what the judge stage reported."""
        return self.context.done("judge").facts

    @cached_property
    def families(self) -> Mapping[str, str]:
        """Return judge -> family, of all judges that are no heuristics."""
        panel = read_json(self.context.folder("judge") / "panel.json")
        kin = families(panel, self.context.definitions.get("judges", {}))
        return {name: kin[name] or name for name in panel if name not in self.judged["heuristic"]}

    @cached_property
    def evaluation(self) -> Mapping[str, Any] | None:
        """Return what `curate evaluate` wrote last; None if it did not."""
        return self.written("evaluation", "evaluation.json")

    @cached_property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """Return task -> the figures of its evaluation; of today's export alone."""
        tasks = self.evaluation["tasks"] if self.evaluation else []
        now = {self.fronts[folder.name]["mteb"]["name"]: sha256(folder / "README.md") for folder in self.folders}
        return {each["name"]: each for each in tasks if each.get("card") == now.get(each["name"], "")}

    @property
    def tasks(self) -> list[str]:
        """Return the names of the exported tasks, as mteb has them."""
        return [str(front["mteb"]["name"]) for front in self.fronts.values()]

    def written(self, *parts: str) -> Mapping[str, Any] | None:
        """Return a JSON file of the run folder; None if it is not there."""
        path = self.run.folder.joinpath(*parts)
        return read_json(path) if path.is_file() else None

    def command(self, name: str, **more: str) -> str:
        """Return what to type, with the run folder put in."""
        said = str(self.rules["next"][name]).replace("RUN", shlex.quote(str(self.run.folder)))
        for word, value in more.items():
            said = said.replace(word, value)
        return said
