"""Contents of the HTML report: figures, tables and texts, independent of the language of the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from curate.core.config import Json
from curate.core.records import FILTERED
from curate.core.scale import Scale
from curate.panel.agreement_figures import Confusion
from curate.pipeline.facts import current, rated
from curate.pipeline.stage import Context
from curate.stats.distribution import Spread
from curate.system.files import read_json, sha256
from curate.tables.exporters import mteb_tasks
from curate.view.run_figures import Drop, Overlap, QueryCounts


@dataclass(frozen=True)
class Labels:
    """Counts for one set of labels: pairs by verdict, overlap of retrievers on positives, verdicts per query."""

    counts: Mapping[str, Any]
    overlap: Overlap
    queries: list[QueryCounts]


@dataclass(frozen=True)
class Step:
    """Report of a stage as shown: numbers of rows, facts, and the reason to run it again, if any."""

    rows_in: int
    rows_out: int
    dropped: int
    facts: Mapping[str, Json]
    unfinished: str = ""
    """Why the stage must run again; empty if it is complete."""

    def count(self, name: str) -> int:
        """Return a count from the facts, 0 if there is none."""
        count = self.facts.get(name)
        return count if isinstance(count, int) else 0


@dataclass(frozen=True)
class ShownKind:
    """A task type with a section in the report, whose stage has run."""

    name: str
    stage: str
    template: str
    """Path of the template of its section."""
    words: str
    """Path of the file with the translated strings of its section."""
    facts: Mapping[str, Any]
    """Facts of its stage; items by outcome are in `planned`, `built` and `dropped` (reason -> count)."""
    checked: Sequence[Mapping[str, Any]] | None = None
    """Results of expert review of its items; None for a task type that cannot be reviewed."""

    @property
    def fate(self) -> Mapping[str, Any] | None:
        """Return the numbers of items planned, built, and dropped by reason; None if the facts lack one of these."""
        names = ("planned", "built", "dropped")
        return {name: self.facts[name] for name in names} if set(names) <= self.facts.keys() else None


@dataclass(frozen=True)
class ShownCheck:
    """Figures that no stage before the report writes: of a check, an audit, an analysis or an evaluation."""

    state: Literal["current", "older", "absent", "needless"]
    """`older`: the figures are from earlier tables, or of unknown origin; `needless`: the check does not apply."""
    figures: Mapping[str, Any]
    """Content of the result file; empty if there is none."""


@dataclass(frozen=True)
class Shown:
    """Contents of the report."""

    name: str
    description: str
    seed: int
    steps: Mapping[str, Step]
    """Stage -> its result, in the order of the stages."""
    drops: list[Drop]
    left_out: dict[str, list[str]]
    """Reason -> ids of the queries that are not exported, or not for every task."""
    agreed: Mapping[str, Any]
    """The content of agreement.json."""
    dependence: Mapping[str, Any]
    """Dependence between judges, from `judge_dependence.dependence`."""
    lead: Mapping[str, Any]
    """Key facts on the labels, from `card_facts.leading`."""
    overlap: Overlap
    lengths: dict[str, Spread]
    """`queries`, `corpus` -> distribution of lengths in cl100k tokens, of all texts or of a sample."""
    sizes: dict[str, int]
    """`queries`, `corpus` -> number of texts."""
    confusions: list[Confusion]
    queries: list[QueryCounts]
    scale: Scale
    """Scale of the judges' grades."""
    meanings: Mapping[str, Mapping[str, str]]
    """Language -> grade -> its meaning in the rubric; empty if the run stored none."""
    settings: str
    """The configuration as YAML."""
    published: Labels | None = None
    """Counts for the published labels; None if these are the panel's. All other counts are of the panel's labels."""
    experts: Sequence[Any] = ()
    """Figures of reviewed samples: columns of `review.showing`."""
    kinds: Sequence[ShownKind] = ()
    outdated: Sequence[str] = ()
    """Stages that are out of date; their figures are included."""
    asked: int = 0
    """Number of queries in the source, including those dropped before judging."""
    beside: Mapping[str, ShownCheck] = field(default_factory=dict)
    """Name -> figures of checks, audit, analysis and evaluation, from the function `beside`."""
    decided: Mapping[str, int] = field(default_factory=dict)
    """`accepted`, `masked` -> number of such decisions on possible residual PII."""


# Figures from outside the stages: checks, audit, analysis, evaluation.

ABSENT, NEEDLESS = ShownCheck("absent", {}), ShownCheck("needless", {})
_CHECKS = {"judge": "judge.json", "pool": "pool.json", "mask": "mask.json", "analyze": "analyze.json"}
_EVALUATION = Path("evaluation", "evaluation.json")
_LEAKS = Path("checks", "leaks", "leaks.json")


def beside(context: Context) -> dict[str, ShownCheck]:
    """Return name (judge, pool, mask, audit, ...) -> figures of a check, and whether they are of the current tables."""
    labels = "consensus" if context.report("resolve") is None else "resolve"
    seen = {"judge": rated(context), "pool": ("pool", labels), "mask": ("mask",), "analyze": ("consensus", labels)}
    checks = {}
    for name, stages in seen.items():
        path = context.run / "checks" / _CHECKS[name]
        figures: Mapping[str, Any] = read_json(path) if path.is_file() else {}
        fresh = not figures.get("outdated") and current(context, figures, *stages)
        checks[name] = _shown_check(figures, fresh=fresh)
    return {**checks, "leaks": _leaks(context), "audit": _audit(context), "evaluation": _evaluation(context)}


def identity(context: Context) -> Json:
    """Return file -> digest for all result files that `beside` reads; if one changes, the report is out of date."""
    files = [*(Path("checks", file) for file in _CHECKS.values()), _EVALUATION, _LEAKS, Path("audit", "audit.json")]
    return {file.as_posix(): sha256(context.run / file) for file in files if (context.run / file).is_file()}


def _shown_check(figures: Mapping[str, Any], *, fresh: bool) -> ShownCheck:
    return ShownCheck("current" if fresh else "older", figures) if figures else ABSENT


def _leaks(context: Context) -> ShownCheck:
    """Return the last leak check against a training set; `NEEDLESS` for a run that is a training set."""
    if context.report("train_set") is not None:
        return NEEDLESS
    path = context.run / _LEAKS
    figures: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    labels = "consensus" if context.report("resolve") is None else "resolve"
    tables = ((FILTERED, "queries"), (FILTERED, "corpus"), (labels, "qrels"))
    digests = {f"{stage}/{table}": _outputs(context, stage).get(f"{table}.parquet") for stage, table in tables}
    return _shown_check(figures, fresh=figures.get("test") == digests and "leaking_queries" in figures)


def _audit(context: Context) -> ShownCheck:
    """Return the audit of the original labels; `NEEDLESS` without original labels."""
    folder = context.run / "audit"
    if not (folder / "audit.json").is_file():
        return NEEDLESS if context.legacy_positives().is_empty() else ABSENT
    inputs: Mapping[str, Any] = read_json(folder / "stage.json")["made_from"]["inputs"]
    outputs = {name: _outputs(context, name) for name in inputs}
    is_current = all(
        outputs[name].get(file) == digest for name, files in inputs.items() for file, digest in files.items()
    )
    return _shown_check(read_json(folder / "audit.json"), fresh=is_current)


def _outputs(context: Context, stage: str) -> Mapping[str, Any]:
    mark = context.folder(stage) / "stage.json"
    outputs: Mapping[str, Any] = read_json(mark)["outputs"] if mark.is_file() else {}
    return outputs


def _evaluation(context: Context) -> ShownCheck:
    """Return the last evaluation; it is current if every scored task is in the export with an unchanged card."""
    path = context.run / _EVALUATION
    if not path.is_file():
        return ABSENT
    figures = read_json(path)
    folders = mteb_tasks.task_folders(context.folder("export") / "mteb") if context.report("export") else []
    cards = {sha256(folder / "README.md") for folder in folders}
    scored = [task.get("card") for task in figures.get("tasks", ())]
    return _shown_check(figures, fresh=bool(scored) and all(card in cards for card in scored))
