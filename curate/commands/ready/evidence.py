"""Results in a run folder that the publication checklist uses, and its points on scores."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from curate.core.config import parse_yaml
from curate.core.errors import UserError
from curate.core.figures import Record, figure
from curate.llm.providers.presets import families
from curate.pipeline.stage import Context
from curate.runs.checks import CHECKS
from curate.runs.runner import Run
from curate.runs.status import PANEL
from curate.system.files import read_json, sha256
from curate.system.resources import template
from curate.tables.exporters import mteb_tasks

FILE = "commands/ready/words.yaml"
State = Literal["ok", "not ok", "not measured"]


class ReadyPoint(Record, schema_name="point"):
    """One point of the checklist."""

    name: str = figure('such as licence, or "floors" with the name of a task')
    state: State = figure("result of the point")
    found: str = figure("finding, as a sentence")
    next: str | None = figure("command that takes an open point further", default=None)


@dataclass(frozen=True)
class ReadyEvidence:
    """Results of a run that has an up-to-date export in mteb's format, and the checklist's limits."""

    run: Run

    @cached_property
    def rules(self) -> Mapping[str, Any]:
        """Return the checklist's definitions: limits, commands, reference models."""
        rules: dict[str, Any] = parse_yaml(template(FILE))
        return rules

    @property
    def limits(self) -> Mapping[str, Any]:
        """Return name -> threshold of a checklist point."""
        limits: Mapping[str, Any] = self.rules["limits"]
        return limits

    @cached_property
    def context(self) -> Context:
        """Return the context of the stage `export`, for reading only."""
        return self.run.beside("export")

    @cached_property
    def folders(self) -> list[Path]:
        """Return the folders of the exported tasks; UserError unless the export is current."""
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
        """Return the facts of the judge stage."""
        return self.context.done("judge").facts

    @cached_property
    def panel(self) -> Mapping[str, Any]:
        """Return judge -> its identity, of all judges of the panel."""
        panel: dict[str, Any] = read_json(self.context.folder("judge") / "panel.json")
        return panel

    @cached_property
    def families(self) -> Mapping[str, str]:
        """Return LLM judge -> model family, or its own name if the family is unknown."""
        family_by_judge = families(self.panel, self.context.definitions.get("judges", {}))
        return {name: family_by_judge[name] or name for name in self.panel if name not in self.judged["heuristic"]}

    @cached_property
    def evaluation(self) -> Mapping[str, Any] | None:
        """Return the last evaluation; None if there was none."""
        return CHECKS["evaluation"].written(self.run.folder)

    @cached_property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """Return task -> figures of its evaluation, for tasks scored on the current export."""
        tasks = self.evaluation["tasks"] if self.evaluation else []
        card_digests = {
            self.fronts[folder.name]["mteb"]["name"]: sha256(folder / "README.md") for folder in self.folders
        }
        return {task["name"]: task for task in tasks if task.get("card") == card_digests.get(task["name"], "")}

    @property
    def drawn_by_rank(self) -> bool:
        """Return whether the negatives of reranking are the highest ranks of the pool already."""
        export: Any = self.run.pipeline.sections["export"]
        return bool(export.rerank.draw == "by_rank")

    @property
    def tasks(self) -> list[str]:
        """Return mteb's names of the exported tasks."""
        return [str(front["mteb"]["name"]) for front in self.fronts.values()]

    @property
    def other_judges(self) -> str:
        """Return the command that has other judges grade the pool: the proposed panel, unless that one graded it."""
        proposed = set(PANEL.split(",")) != self.families.keys()
        return self.command("judges", MODELS=PANEL if proposed else "MODELS")

    def command(self, name: str, **replacements: str) -> str:
        """Return the command line `name` of the checklist, with the run folder and `replacements` filled in."""
        command = str(self.rules["next"][name]).replace("RUN", shlex.quote(str(self.run.folder)))
        for word, replacement in replacements.items():
            command = command.replace(word, replacement)
        return command


# Points on scores: no task is trivial or random, and a model exceeds the trivial baselines.

Figures = Mapping[str, Any]
CUT = re.compile(r"@\d+$")
"""Suffix of the name of a model with truncated vectors, which does not count as a separate model."""


def scored(evidence: ReadyEvidence) -> Iterator[ReadyPoint]:
    """Yield two checklist points per task: its difficulty, then its trivial baselines."""
    for name in evidence.tasks:
        figures = evidence.scores.get(name)
        yield _difficulty(evidence, name, figures)
        yield _floors(evidence, name, figures)


def _independent_models(evidence: ReadyEvidence) -> list[str]:
    """Return the evaluated models that are not contributors, without BM25, random encoder and truncated models."""
    references = {evidence.rules["random"], evidence.rules["bm25"]}
    models = evidence.evaluation["models"] if evidence.evaluation else []
    names = [model["model"] for model in models if not model["roles"] and model["model"] not in references]
    return [name for name in names if not CUT.search(name)]


def _difficulty(evidence: ReadyEvidence, name: str, figures: Figures | None) -> ReadyPoint:
    """Return the point on a task's difficulty.

    Not ok if trivial, with a best score of `limits.trivial` or more, or if random: the 95 % interval of the best model
    that is not a contributor is not above that of a random encoder.
    """
    title = f"neither trivial nor random: {name}"

    def point(state: State, finding: str) -> ReadyPoint:
        return ReadyPoint(
            title,
            state,
            finding,
            None if state == "ok" else _next_command(evidence, figures, trivial="leaves" in finding),
        )

    if figures is None:
        return point("not measured", "no evaluation of this export")
    rows = {row["model"]: row for row in figures["scores"]}
    models = [row for row in rows.values() if row["model"] != evidence.rules["random"]]
    if not models:
        return point("not measured", f"not scored: {_missing_models(evidence, figures)}")
    best = max(models, key=lambda row: row["main"])
    if best["main"] >= evidence.limits["trivial"]:
        score = f"{best['model']} has {100 * best['main']:.2f}"
        return point("not ok", f"trivial: {score}, which leaves nothing to tell; the source needs harder queries")
    if lacking := _missing_models(evidence, figures):
        return point("not measured", f"not scored: {lacking}")
    outside = max(
        (rows[model] for model in _independent_models(evidence) if model in rows), key=lambda row: row["main"]
    )
    chance = rows[evidence.rules["random"]]
    comparison = f"{outside['model']} {100 * outside['main']:.2f}, a random encoder {100 * chance['main']:.2f}"
    low, chance_high = outside["stock"]["low"], chance["stock"]["high"]
    if low is None or chance_high is None or low <= chance_high:
        return point("not ok", f"random: the best model from outside is not above chance ({comparison})")
    return point("ok", f"best {best['model']} {100 * best['main']:.2f}; {comparison}")


def _missing_models(evidence: ReadyEvidence, figures: Figures) -> str:
    """Return, as text, the models still missing from a task's evaluation; BM25 for retrieval and reranking only."""
    present = {row["model"] for row in figures["scores"]}
    ranked = figures["kind"] in ("Retrieval", "Reranking")
    references = [evidence.rules["random"], *([evidence.rules["bm25"]] if ranked else [])]
    missing = evidence.limits["outside"] - len([model for model in _independent_models(evidence) if model in present])
    outsiders = [f"{missing} more that neither retrieved nor judged"] if missing > 0 else []
    return ", ".join([*(model for model in references if model not in present), *outsiders])


def _next_command(evidence: ReadyEvidence, figures: Figures | None, *, trivial: bool = False) -> str:
    if trivial and figures is not None:
        by_rank = figures["kind"] == "Reranking" and not evidence.drawn_by_rank
        return evidence.command("rerank" if by_rank else "source")
    outside = _independent_models(evidence)
    scored = figures is not None and not _missing_models(evidence, figures)
    lacking = max(evidence.limits["outside"] - len(outside), int(scored))  # the same models again would change nothing
    models = [*outside, *(["ORGANISATION/NAME"] * lacking)]
    return evidence.command("evaluate", MODELS=",".join([evidence.rules["random"], evidence.rules["bm25"], *models]))


def _floors(evidence: ReadyEvidence, name: str, figures: Figures | None) -> ReadyPoint:
    """Return the point on a task's trivial baselines: ok if a model exceeds the best of them."""
    title, against = f"floors: {name}", figures and figures["against_floors"]
    if figures is None or not against:
        finding = "no evaluation of this export" if figures is None else "floors were not scored"
        return ReadyPoint(title, "not measured", finding, _next_command(evidence, None))
    above = [
        model["model"] for model in against["models"] if model["above"] and model["model"] != evidence.rules["random"]
    ]
    floor = f"{against['best']} ({100 * against['score']:.2f})"
    if not above:
        return ReadyPoint(
            title, "not ok", f"no model is above the {against['sort']} {floor}", _next_command(evidence, figures)
        )
    return ReadyPoint(title, "ok", f"{', '.join(above)} above the {against['sort']} {floor}")
