"""Everything that a run's folder holds of whether it can be published, read once."""

import re
import shlex
from collections.abc import Iterator, Mapping
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
        return {task["name"]: task for task in tasks if task.get("card") == now.get(task["name"], "")}

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


# Points of the checklist on scores: every task neither trivial nor random, and its models above the floors.

Figures = Mapping[str, Any]
CUT = re.compile(r"@\d+$")
"""What marks a model whose vectors were cut to a width, and which is no further model."""


def scored(known: ReadyEvidence) -> Iterator[ReadyPoint]:
    """Yield two points per task: on its difficulty, and on its floors."""
    for name in known.tasks:
        found = known.scores.get(name)
        yield _difficulty(known, name, found)
        yield _floors(known, name, found)


def _outside(known: ReadyEvidence) -> list[str]:
    """Return the evaluated models that were neither retriever nor judge, BM25 and the random encoder apart."""
    apart = {known.rules["random"], known.rules["bm25"]}
    models = known.evaluation["models"] if known.evaluation else []
    names = [model["model"] for model in models if not model["roles"] and model["model"] not in apart]
    return [name for name in names if not CUT.search(name)]


def _difficulty(known: ReadyEvidence, name: str, found: Figures | None) -> ReadyPoint:
    """Return whether a task is neither trivial nor random.

    Trivial: some model leaves less than a hundredth. Random: the best model from outside is not above a random encoder,
    by their 95 % intervals.
    """
    title = f"neither trivial nor random: {name}"

    def point(state: State, said: str) -> ReadyPoint:
        return ReadyPoint(title, state, said, None if state == "ok" else _next(known, found, trivial="leaves" in said))

    if found is None:
        return point("not measured", "no evaluation of this export")
    rows = {row["model"]: row for row in found["scores"]}
    others = [row for row in rows.values() if row["model"] != known.rules["random"]]
    if not others:
        return point("not measured", f"not scored: {_lacking(known, found)}")
    best = max(others, key=lambda row: row["main"])
    if best["main"] >= known.limits["trivial"]:
        return point("not ok", f"trivial: {best['model']} has {100 * best['main']:.2f}, which leaves nothing to tell")
    if lacking := _lacking(known, found):
        return point("not measured", f"not scored: {lacking}")
    outside = max((rows[model] for model in _outside(known) if model in rows), key=lambda row: row["main"])
    chance = rows[known.rules["random"]]
    apart = f"{outside['model']} {100 * outside['main']:.2f}, a random encoder {100 * chance['main']:.2f}"
    if not _above(outside["stock"], chance["stock"]):
        return point("not ok", f"random: the best model from outside is not above chance ({apart})")
    return point("ok", f"best {best['model']} {100 * best['main']:.2f}; {apart}")


def _above(one: Figures, other: Figures) -> bool:
    return None not in (one["low"], other["high"]) and bool(one["low"] > other["high"])


def _lacking(known: ReadyEvidence, found: Figures) -> str:
    """Return which models a task must still be scored with, in words; BM25 only where documents are ranked."""
    there = {row["model"] for row in found["scores"]}
    ranked = found["kind"] in ("Retrieval", "Reranking")
    wanted = [known.rules["random"], *([known.rules["bm25"]] if ranked else [])]
    need = known.limits["outside"] - len([model for model in _outside(known) if model in there])
    more = [f"{need} more that neither retrieved nor judged"] if need > 0 else []
    return ", ".join([*(model for model in wanted if model not in there), *more])


def _next(known: ReadyEvidence, found: Figures | None, *, trivial: bool = False) -> str:
    if trivial and found is not None and found["kind"] == "Reranking":
        return known.command("rerank")
    own = _outside(known)
    more = [*own, *(["ORGANISATION/NAME"] * (known.limits["outside"] - len(own)))]
    return known.command("evaluate", MODELS=",".join([known.rules["random"], known.rules["bm25"], *more]))


def _floors(known: ReadyEvidence, name: str, found: Figures | None) -> ReadyPoint:
    """Return whether a model is above all floors of a task: what needs no meaning."""
    title, against = f"floors: {name}", found and found["against_floors"]
    if found is None or not against:
        said = "no evaluation of this export" if found is None else "floors were not scored"
        return ReadyPoint(title, "not measured", said, _next(known, None))
    above = [each["model"] for each in against["models"] if each["above"] and each["model"] != known.rules["random"]]
    floor = f"{against['best']} ({100 * against['score']:.2f})"
    if not above:
        return ReadyPoint(title, "not ok", f"no model is above the {against['sort']} {floor}", _next(known, found))
    return ReadyPoint(title, "ok", f"{', '.join(above)} above the {against['sort']} {floor}")
