"""Interface of stages: the stage itself, its context, the user's consent to spend, and its report."""

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
    """A user's consent to spend money on model calls, and how they are sent."""

    max_cost: float | None = None
    """Budget of all stages together; None allows no spending unless `yes`."""
    yes: bool = False
    """Whether spending without a budget is allowed."""
    retry: bool = False
    """Whether pairs with a refused or unparsed reply are asked once more; for one command, not a setting of the run."""
    offline: bool = False
    """Whether nothing may be sent: a reply that is missing in the ledger is then an error."""
    batch: bool = False
    """Whether requests go to the provider's batch interface, if it has one: cheaper and slower."""
    allow_weak_judges: bool = False
    """Whether judges that did not pass the qualification test may judge."""
    currency: str | None = None
    """Currency of the budget; None for that of the pipeline or, without one, of the prices."""
    budget: Budget = field(init=False, compare=False)
    """Money spent and reserved so far by all stages."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", Budget(CapPolicy(self.max_cost, self.currency, self.yes)))
        if self.max_cost is not None and not self.max_cost >= 0:
            raise ConfigError(f"--max-cost: expected a number from 0 on, found {self.max_cost}")


@dataclass(frozen=True)
class Context:
    """Everything that a stage may use besides its settings: no clock, no environment variables, no standard output."""

    run: Path
    """The run folder; every committed stage has a folder of its name in it."""
    out: Path
    """Folder into which the running stage writes; renamed to its final name when the stage is done."""
    home: Path
    """Folder of the ledger and the embedding cache, shared by all runs."""
    ledger: Path | str | None = field(default=None, repr=False)
    """Path or URL of the ledger, if it is not in `home`; never shown, since a URL may contain a password."""
    run_id: str = ""
    """Random id of the run folder, under which payments are recorded."""
    name: str = "benchmark"
    seed: int = 0
    language: str = "zh"
    definitions: Mapping[str, Mapping[str, Settings]] = field(default_factory=dict)
    """Encoders, retrievers and judges that the pipeline defines: `encoders`, ... -> name -> settings."""
    engine: Settings = field(default_factory=dict)
    """Settings of the engine that processes a corpus in parts; empty to process it as a whole, in this process."""
    progress: PaidProgress = quiet
    tell: Callable[[str], None] = lambda _line: None
    """Function that is called with each notice, one line."""
    consent: Consent = field(default_factory=Consent)
    rates: Rates = field(default_factory=Rates)
    currency: str | None = None
    """Currency of budgets and totals, if the pipeline names one."""
    settings: Settings = field(default_factory=dict)
    """All settings of the pipeline as stored (`Pipeline.frozen`)."""
    made: Mapping[str, Path] = field(default_factory=dict)
    """Completed stages that are not committed to the run folder yet -> their folders."""
    outdated: Sequence[str] = ()
    """For a stage that only shows results (`Stage.renders`): the earlier stages that are out of date."""
    partial: Callable[["Report"], None] = lambda _report: None
    """Function that a stage calls with its report before it raises, if its tables so far are valid but incomplete."""

    def folder(self, stage: str) -> Path:
        """Return the folder of a finished stage: its new one before the commit, else the one in the run folder."""
        return self.made.get(stage, self.run / stage)

    def read(self, stage: str, table: str, columns: Columns | None = None) -> pl.DataFrame:
        """Return a table of a finished stage; `columns` are those of a table that is not in `TABLES`.

        DataError if it is missing or has other columns.
        """
        return read_table(self.folder(stage), table, columns)

    def report(self, stage: str) -> "Report | None":
        """Return the report of a stage; None if it has not run, or its done-mark is unreadable."""
        try:
            return Report(**read_json(self.folder(stage) / "stage.json")["report"])
        except (DataError, OSError, KeyError, TypeError):
            return None

    def done(self, stage: str) -> "Report":
        """Return the report of a finished stage; DataError if it has not run or its done-mark is unreadable."""
        report = self.report(stage)
        if report is None:
            raise DataError(
                f"{self.folder(stage)}: the stage has not run, or its mark is damaged; run `curate {stage}`"
            )
        return report

    @cached_property
    def scale(self) -> Scale:
        """Return the scale of the judges' grades; the default one of five grades if `judge` wrote none."""
        return read_scale(self.folder("judge"))

    @property
    def stages(self) -> Sequence[Json]:
        """Return the stages that the pipeline lists; empty if it lists none."""
        declared = self.settings.get("stages")
        return declared if isinstance(declared, Sequence) and not isinstance(declared, str) else ()

    @property
    def relevant_from(self) -> int | None:
        """Return the lowest relevant score of the original labels; None if not set: then any above 0 is relevant."""
        return read_relevant_from(self.folder("ingest"))

    @property
    def queries(self) -> pl.DataFrame:
        """Return the queries retained by near-duplicate filtering: query_id, text, source."""
        return self.read(FILTERED, "queries")

    @property
    def corpus(self) -> TableCorpus:
        """Return the documents retained by near-duplicate filtering, as a table on disk."""
        return TableCorpus(self.folder(FILTERED))

    def legacy_positives(self) -> pl.DataFrame:
        """Return the known positives, the original labels with a relevant score: query_id, doc_id, score."""
        return read_positives(self.read(FILTERED, "qrels"), self.folder("ingest"))

    @property
    def policy(self) -> Policy | ConsensusRule:
        """Return the consensus rule, the setting `consensus.policy`, which a cascade needs before the stage runs."""
        return check(ConsensusConfig, self.settings.get("consensus") or {}, "consensus").policy

    @property
    def duplicates(self) -> Literal["merge", "keep"]:
        """Return how exact duplicates are treated, by the setting `ingest.duplicates`; it applies to every stage."""
        section = self.settings.get("ingest")
        return "keep" if isinstance(section, Mapping) and section.get("duplicates") == "keep" else "merge"


@dataclass(frozen=True)
class Report:
    """Report of a stage: rows in, out and dropped, cost, and further figures (`facts`)."""

    rows_in: int
    rows_out: int
    dropped: int = 0
    cost: float | None = 0.0
    """Cost of the stage in its currency; None if a price is unknown."""
    unfinished: str = ""
    """Why the stage must run again although it wrote its tables; empty if it is complete."""
    facts: Mapping[str, Json] = field(default_factory=dict)
    notes: Sequence[str] = ()
    """Notes for the user, a sentence each."""
    spent: float = 0.0
    """Amount taken from the budget."""


def nothing(_config: Any, _context: Context) -> Json:  # noqa: ANN401 - stands in for a function of any Config
    """Return None, the fingerprint of a stage without inputs outside of the run folder."""
    return None


@dataclass(frozen=True)
class Stage(Generic[Config]):
    """A step of a run: a function from tables to tables, the class of its settings, and what its result depends on."""

    name: str
    config: type[Config]
    after: tuple[str, ...]
    """Stages whose tables this one reads."""
    run: Callable[[Config, Context], Report]
    """Function that reads the input tables, writes retained and dropped rows, and returns the report."""
    fingerprint: Callable[[Config, Context], Json] = nothing
    """Function that checks names and files before any stage runs, and returns digests of inputs outside of the run."""
    preflight: Callable[[Config, Context], object] = nothing
    """Function that checks requirements such as API keys; only called if the stage will run."""
    head: tuple[str, ...] = ("name", "language", "seed")
    """Settings outside of the stage's section that its tables depend on."""
    optional: tuple[str, ...] = ()
    """Stages of `after` that need not have run; if they have, they must be up to date."""
    renders: bool = False
    """Whether the stage only shows results; it then also runs if earlier stages are out of date, and names them."""
    version: int = 1
    """Number increased when the same settings give other tables, so that earlier results are stale."""


def home() -> Path:
    """Return the folder of ledger and caches: $CURATE_HOME, by default `.curate` in the working directory."""
    return Path(os.environ.get("CURATE_HOME") or ".curate")


def ledger_place() -> Path | str:
    """Return the path or URL of the ledger: $CURATE_LEDGER, else a file in the home folder."""
    location = os.environ.get("CURATE_LEDGER", "")
    return location if "://" in location else Path(location or default_path(home()))
