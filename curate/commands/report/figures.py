"""Contents of the HTML report: figures, tables and texts, independent of the language of the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from curate.core.config import Json
from curate.core.scale import Scale
from curate.panel.agreement_figures import Confusion
from curate.panel.judge_dependence import Dependence
from curate.pipeline.withdrawn import Withdrawn
from curate.runs.checks import CheckResult
from curate.stats.distribution import Spread
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
    dependence: Dependence
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
    beside: Mapping[str, CheckResult] = field(default_factory=dict)
    """Name -> figures of checks, audit, analysis and evaluation, of `runs.checks`."""
    pages: str = ""
    """Relative path of the exported pages of the pairs; empty if there are none."""
    further: Mapping[str, float] = field(default_factory=dict)
    """Currency -> amount that the run paid beside judging: checks of judges, other stages, answers no longer used."""
    decided: Mapping[str, int] = field(default_factory=dict)
    """`accepted`, `masked` -> number of such decisions on possible residual PII."""
    withdrawn: Withdrawn = field(default_factory=Withdrawn)

    @property
    def precision(self) -> tuple[Literal["panel", "published"], Mapping[str, Any] | None]:
        """Return the share of positives that assessors confirm, of the published labels where a sample says it."""
        of_published = next(
            (column.shares.get("relevant: confirmed") for column in self.experts if column.labels == "published"), None
        )
        return ("published", of_published) if of_published else ("panel", self.lead["precision"])
