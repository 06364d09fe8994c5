"""What the report page shows: figures, tables and texts, without words of any language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from curate.core.config import Json
from curate.core.scale import Scale
from curate.panel.confusion import Confusion
from curate.pipeline.freshness import current, rated
from curate.pipeline.stage import Context
from curate.stats.distribution import Spread
from curate.system.files import read_json, sha256
from curate.tables.exporters import mteb_tasks
from curate.view.run_figures import Drop, Overlap, QueryCounts


@dataclass(frozen=True)
class Labels:
    """What the page counts of labels: pairs by verdict, who found the positives, and the verdicts of every query."""

    counts: Mapping[str, Any]
    overlap: Overlap
    queries: list[QueryCounts]


@dataclass(frozen=True)
class Step:
    """What a stage did: rows in, rows out, rows dropped, its own figures, and why it has to run again."""

    rows_in: int
    rows_out: int
    dropped: int
    facts: Mapping[str, Json]
    unfinished: str = ""
    """Empty if the stage is complete."""

    def count(self, name: str) -> int:
        """Return one of the stage's own figures, 0 if it counted no such thing."""
        found = self.facts.get(name)
        return found if isinstance(found, int) else 0


@dataclass(frozen=True)
class ShownPair:
    """A sample pair, as shown: the beginning of its passage, and what every judge of the panel said."""

    query_id: str
    doc_id: str
    verdict: str
    query: str
    passage: str
    votes: list[tuple[str, str | None]]
    """Judge and grade, or its status if it gave none; None if it was not asked."""
    published: str | None = None
    """The label that experts put in the place of the panel's verdict."""


@dataclass(frozen=True)
class ShownKind:
    """A kind of benchmark whose stage has run, and that has a section of its own."""

    name: str
    stage: str
    template: str
    """Of its section."""
    words: str
    """Path of its words."""
    facts: Mapping[str, Any]
    """Of its stage; `planned`, `built` and `dropped`, reason -> count, say what became of its items."""
    checked: Sequence[Mapping[str, Any]] | None = None
    """What people said of samples of its items; None for a kind of whose items nobody can be asked."""

    @property
    def fate(self) -> Mapping[str, Any] | None:
        """Return how many items were planned, built, and dropped for which reason; None if the stage does not say."""
        names = ("planned", "built", "dropped")
        return {name: self.facts[name] for name in names} if set(names) <= self.facts.keys() else None


@dataclass(frozen=True)
class ShownCheck:
    """What was done beside the stages: a check, an audit, an analysis or an evaluation."""

    state: Literal["current", "older", "absent", "needless"]
    """Older figures are of other tables than those of the run, or of nobody knows which."""
    figures: Mapping[str, Any]
    """Empty if there are none."""


@dataclass(frozen=True)
class Shown:
    """Everything that the page shows."""

    name: str
    description: str
    seed: int
    steps: Mapping[str, Step]
    """Stage -> what it did, in the order of the stages."""
    drops: list[Drop]
    left_out: dict[str, list[str]]
    """Reason -> ids of the queries that are in no export, or not in all of it."""
    agreed: Mapping[str, Any]
    """The content of agreement.json."""
    dependence: Mapping[str, Any]
    """What the judges have in common, as `judge_dependence.dependence` has it."""
    lead: Mapping[str, Any]
    """What must be known before a score is read, as `review.lead` has it."""
    overlap: Overlap
    lengths: dict[str, Spread]
    """queries, corpus -> lengths in cl100k tokens, of all texts or of a sample."""
    sizes: dict[str, int]
    """queries, corpus -> number of texts."""
    confusions: list[Confusion]
    pairs: list[ShownPair]
    read: list[ShownPair]
    """Pairs of some queries, those of a query together: what the browser of queries opens."""
    queries: list[QueryCounts]
    scale: Scale
    """Of the judges' grades."""
    settings: str
    """The configuration as YAML."""
    published: Labels | None = None
    """None where the published labels are the panel's; all other counts of labels are the panel's."""
    experts: Sequence[Any] = ()
    """What people's check of samples proves: columns of `review.showing`."""
    kinds: Sequence[ShownKind] = ()
    outdated: Sequence[str] = ()
    """Stages that are out of date; what they say is shown all the same."""
    asked: int = 0
    """Queries that were read, those that fell out before judging too."""
    beside: Mapping[str, ShownCheck] = field(default_factory=dict)
    """Name -> what was done beside the stages, as `stages.facts.beside` has it."""
    decided: Mapping[str, int] = field(default_factory=dict)
    """accepted, masked -> places of the residual scan on which people decided so."""


# What was done beside the stages of a run: checks, audit, analysis, evaluation, each with whether it is current.

ABSENT, NEEDLESS = ShownCheck("absent", {}), ShownCheck("needless", {})
_CHECKS = {"judge": "judge.json", "pool": "pool.json", "mask": "mask.json", "analyze": "analyze.json"}
_EVALUATION = Path("evaluation", "evaluation.json")
_LEAKS = Path("checks", "leaks", "leaks.json")


def beside(context: Context) -> dict[str, ShownCheck]:
    """Return name -> what was found, with whether it is of today's tables: judge, pool, mask, audit, ..."""
    labels = "consensus" if context.report("resolve") is None else "resolve"
    seen = {"judge": rated(context), "pool": ("pool", labels), "mask": ("mask",), "analyze": ("consensus", labels)}
    checks = {name: _check(context, name, stages) for name, stages in seen.items()}
    return {**checks, "leaks": _leaks(context), "audit": _audit(context), "evaluation": _evaluation(context)}


def identity(context: Context) -> Json:
    """Return what identifies all of it: the page is stale once one of these files is another."""
    files = [*(Path("checks", file) for file in _CHECKS.values()), _EVALUATION, _LEAKS, Path("audit", "audit.json")]
    return {file.as_posix(): sha256(context.run / file) for file in files if (context.run / file).is_file()}


def _check(context: Context, name: str, stages: tuple[str, ...]) -> ShownCheck:
    path = context.run / "checks" / _CHECKS[name]
    figures: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    return _dated(figures, fresh=not figures.get("outdated") and current(context, figures, *stages))


def _dated(figures: Mapping[str, Any], *, fresh: bool) -> ShownCheck:
    return ShownCheck("current" if fresh else "older", figures) if figures else ABSENT


def _leaks(context: Context) -> ShownCheck:
    """Return the last comparison with a training set that was written into the run; a training set needs none."""
    if context.report("train_set") is not None:
        return NEEDLESS
    path = context.run / _LEAKS
    figures: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    labels = "consensus" if context.report("resolve") is None else "resolve"
    tables = (("diversify", "queries"), ("diversify", "corpus"), (labels, "qrels"))
    now = {f"{stage}/{table}": _outputs(context, stage).get(f"{table}.parquet") for stage, table in tables}
    return _dated(figures, fresh=figures.get("test") == now and "leaking_queries" in figures)


def _audit(context: Context) -> ShownCheck:
    """Return the audit of the labels that the set came with; none to be done where it came without."""
    folder = context.run / "audit"
    if not (folder / "audit.json").is_file():
        return NEEDLESS if context.legacy_positives().is_empty() else ABSENT
    inputs: Mapping[str, Any] = read_json(folder / "stage.json")["made_from"]["inputs"]
    now = {name: _outputs(context, name) for name in inputs}
    same = all(now[name].get(file) == digest for name, files in inputs.items() for file, digest in files.items())
    return _dated(read_json(folder / "audit.json"), fresh=same)


def _outputs(context: Context, stage: str) -> Mapping[str, Any]:
    mark = context.folder(stage) / "stage.json"
    outputs: Mapping[str, Any] = read_json(mark)["outputs"] if mark.is_file() else {}
    return outputs


def _evaluation(context: Context) -> ShownCheck:
    """Return the last evaluation; it is current where its tasks are the exported ones, by their cards."""
    path = context.run / _EVALUATION
    if not path.is_file():
        return ABSENT
    figures = read_json(path)
    folders = mteb_tasks.task_folders(context.folder("export") / "mteb") if context.report("export") else []
    cards = {sha256(folder / "README.md") for folder in folders}
    scored = [each.get("card") for each in figures.get("tasks", ())]
    return _dated(figures, fresh=bool(scored) and all(card in cards for card in scored))
