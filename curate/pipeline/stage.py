"""Contract of stages: stage, context, consent and report."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import polars as pl

from curate.core.config import Json, Section, Settings, check
from curate.core.errors import ConfigError, DataError
from curate.core.protocols import PaidProgress, quiet
from curate.core.records import FILTERED, Columns
from curate.core.scale import Scale
from curate.ledger import default_path
from curate.llm.budget import Budget, CapPolicy
from curate.llm.exchange_rates import Rates
from curate.panel.rules import ConsensusRule
from curate.panel.voting import Policy
from curate.pipeline.configs import ConsensusConfig
from curate.system.corpus import TableCorpus
from curate.system.files import read_json, read_positives, read_relevant_from, read_scale, read_table

Config = TypeVar("Config", bound=Section)


@dataclass(frozen=True)
class Consent:
    """A user's consent to spend."""

    max_cost: float | None = None
    """Budget of all stages together; None refuses any spending."""
    yes: bool = False
    """Spend without a budget."""
    retry: bool = False
    """Ask refused or unparsed pairs again, once; an action, not a setting."""
    offline: bool = False
    """Send nothing: an answer missing in the ledger is an error."""
    batch: bool = False
    """Send in batches, cheaper and slower, where a vendor has them."""
    allow_weak_judges: bool = False
    """Go on with judges that did not pass the gate."""
    currency: str | None = None
    """Currency of the budget, if named; else the pipeline's, or that of the prices."""
    budget: Budget = field(init=False, compare=False)
    """Money spent and reserved by all stages."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", Budget(CapPolicy(self.max_cost, self.currency, self.yes)))
        if self.max_cost is not None and not self.max_cost >= 0:
            raise ConfigError(f"--max-cost: expected a number from 0 on, found {self.max_cost}")


@dataclass(frozen=True)
class Context:
    """Everything that a stage may use besides its settings; no clock, no environment, no printing."""

    run: Path
    """The run folder; every finished stage has a folder of its name in it."""
    out: Path
    """Where the running stage writes; renamed to its final name when it is done."""
    home: Path
    """Folder of the ledger and the embedding cache, shared by all runs."""
    ledger: Path | str | None = field(default=None, repr=False)
    """Path or URL of the ledger, if not in `home`; a URL may hold a password, so it is never shown."""
    run_id: str = ""
    """Random id of the run folder, under which payments are recorded."""
    name: str = "benchmark"
    seed: int = 0
    language: str = "zh"
    definitions: Mapping[str, Mapping[str, Settings]] = field(default_factory=dict)
    """The pipeline's own encoders, retrievers and judges: family -> name -> settings."""
    engine: Settings = field(default_factory=dict)
    """Settings of the engine for a corpus in parts; empty: in one piece, in this process."""
    progress: PaidProgress = quiet
    tell: Callable[[str], None] = lambda _line: None
    """Called with a notice, one line."""
    consent: Consent = field(default_factory=Consent)
    rates: Rates = field(default_factory=Rates)
    currency: str | None = None
    """Currency of budgets and totals, if the pipeline names one."""
    settings: Settings = field(default_factory=dict)
    """The whole frozen pipeline, for report and card."""
    made: Mapping[str, Path] = field(default_factory=dict)
    """Completed stages that are not committed to the run folder yet -> their folders."""
    outdated: Sequence[str] = ()
    """For a rendering stage: the earlier stages that are out of date."""
    partial: Callable[["Report"], None] = lambda _report: None
    """Called with the report of complete tables before a stage that cannot go on raises its error."""

    def folder(self, stage: str) -> Path:
        """Return the folder of a finished stage."""
        return self.made.get(stage, self.run / stage)

    def read(self, stage: str, table: str, columns: Columns | None = None) -> pl.DataFrame:
        """Return a table of a finished stage; `columns` for one that is not in `TABLES`."""
        return read_table(self.folder(stage), table, columns)

    def report(self, stage: str) -> "Report | None":
        """Return the report of a stage; None if it has not run, or its done-mark is unreadable."""
        try:
            return Report(**read_json(self.folder(stage) / "stage.json")["report"])
        except (DataError, OSError, KeyError, TypeError):
            return None

    def done(self, stage: str) -> "Report":
        """Return the report of a finished stage; DataError if its done-mark is unreadable."""
        report = self.report(stage)
        if report is None:
            raise DataError(
                f"{self.folder(stage)}: the stage has not run, or its mark is damaged; run `curate {stage}`"
            )
        return report

    @cached_property
    def scale(self) -> Scale:
        """The scale of the judges' grades; needs the stage `judge`."""
        return read_scale(self.folder("judge"))

    @property
    def stages(self) -> Sequence[Json]:
        """Return the stages that the pipeline names; empty if none."""
        declared = self.settings.get("stages")
        return declared if isinstance(declared, Sequence) and not isinstance(declared, str) else ()

    @property
    def relevant_from(self) -> int | None:
        """Return the lowest score of the original labels that means relevant; None if not set: any above 0."""
        return read_relevant_from(self.folder("ingest"))

    @property
    def queries(self) -> pl.DataFrame:
        """Return the queries that are left after filtering: query_id, text, source."""
        return self.read(FILTERED, "queries")

    @property
    def corpus(self) -> TableCorpus:
        """Return the documents that are left after filtering, as a table on disk."""
        return TableCorpus(self.folder(FILTERED))

    def legacy_positives(self) -> pl.DataFrame:
        """Return the original labels that mean relevant: query_id, doc_id, score."""
        return read_positives(self.read(FILTERED, "qrels"), self.folder("ingest"))

    @property
    def policy(self) -> Policy | ConsensusRule:
        """Return the consensus rule, `consensus.policy`, which a cascade needs before the stage runs."""
        return check(ConsensusConfig, self.settings.get("consensus") or {}, "consensus").policy

    @property
    def duplicates(self) -> Literal["merge", "keep"]:
        """Return the treatment of equal texts, `ingest.duplicates`, which holds for every stage."""
        section = self.settings.get("ingest")
        return "keep" if isinstance(section, Mapping) and section.get("duplicates") == "keep" else "merge"


@dataclass(frozen=True)
class Report:
    """Report of a stage: rows in, out and dropped, cost, and further figures."""

    rows_in: int
    rows_out: int
    dropped: int = 0
    cost: float | None = 0.0
    """None if a price is unknown."""
    unfinished: str = ""
    """Why the stage must run again although it wrote its tables; empty if it is complete."""
    facts: Mapping[str, Json] = field(default_factory=dict)
    notes: Sequence[str] = ()
    """Notes for the user, a sentence each."""
    spent: float = 0.0
    """Amount taken from the budget."""


def nothing(_config: Any, _context: Context) -> Json:  # noqa: ANN401 - stands in for a function of any Config
    """Return no fingerprint: the stage depends on its settings and its input tables alone."""
    return None


@dataclass(frozen=True)
class Stage(Generic[Config]):
    """A function from tables to tables, with its settings and all that its result depends on."""

    name: str
    config: type[Config]
    after: tuple[str, ...]
    """Stages whose tables it reads."""
    run: Callable[[Config, Context], Report]
    """Read, call the pure function, write kept and dropped, report."""
    fingerprint: Callable[[Config, Context], Json] = nothing
    """Check names and files before anything runs; return the digests of inputs outside of the run folder."""
    preflight: Callable[[Config, Context], object] = nothing
    """Check requirements of running, such as API keys; called only if the stage will run."""
    head: tuple[str, ...] = ("name", "language", "seed")
    """Settings outside of its section that its tables depend on."""
    optional: tuple[str, ...] = ()
    """Those of `after` that it can do without; once they have run they must be up to date."""
    renders: bool = False
    """Whether the stage only shows results: it runs on stages that are out of date, and names them."""
    version: int = 1
    """Raised when the same settings give other tables; old results are then redone."""


def home() -> Path:
    """Return the folder of ledger and caches: $CURATE_HOME, else ./.curate."""
    return Path(os.environ.get("CURATE_HOME") or ".curate")


def ledger_place() -> Path | str:
    """Return the path or URL of the ledger: $CURATE_LEDGER, else a file in the home folder."""
    location = os.environ.get("CURATE_LEDGER", "")
    return location if "://" in location else Path(location or default_path(home()))
