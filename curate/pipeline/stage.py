"""What a stage is, what it is given, and what it reports."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import polars as pl

from curate.core.config import Json, Section, Settings, check
from curate.core.errors import ConfigError, DataError
from curate.core.kind_tables import Columns
from curate.core.protocols import PaidProgress, quiet
from curate.core.scale import Scale
from curate.ledger import default_path
from curate.llm.budget import Budget
from curate.llm.cap import CapPolicy
from curate.llm.exchange_rates import Rates
from curate.panel.rules import ConsensusRule
from curate.panel.voting import Policy
from curate.pipeline.configs import ConsensusConfig
from curate.system.files import read_json, read_positives, read_relevant_from, read_scale, read_table

Config = TypeVar("Config", bound=Section)


@dataclass(frozen=True)
class Consent:
    """What a user allows a run to spend."""

    max_cost: float | None = None
    """Cap over all stages together; None asks before spending anything."""
    yes: bool = False
    """Go on without a cap."""
    retry: bool = False
    """Ask again what was refused or unparsed, once: an act, not a setting."""
    offline: bool = False
    """Send nothing: what the ledger lacks is an error."""
    batch: bool = False
    """Send in batches, for less money and later answers, where a vendor has them."""
    allow_weak_judges: bool = False
    """Go on with judges that did not pass the gate."""
    currency: str | None = None
    """Of the cap, where it was named; else the pipeline's, or that of the prices."""
    budget: Budget = field(init=False, compare=False)
    """The money itself, which every stage counts what it spends in."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", Budget(CapPolicy(self.max_cost, self.currency, self.yes)))
        if self.max_cost is not None and not self.max_cost >= 0:
            raise ConfigError(f"--max-cost: expected a number from 0 on, found {self.max_cost}")


@dataclass(frozen=True)
class Context:
    """Everything a stage may use besides its own settings; no clock, no environment, no printing."""

    run: Path
    """The run folder; every finished stage has a folder of its name in it."""
    out: Path
    """Where the running stage writes; renamed to its final name when it is done."""
    home: Path
    """Folder of the ledger and the embedding cache, shared by all runs."""
    ledger: Path | str | None = field(default=None, repr=False)
    """Where the ledger is kept, if not in `home`; a URL may hold a password, so it is never shown."""
    run_id: str = ""
    """Drawn once for a run folder; what was paid is booked on it."""
    name: str = "benchmark"
    seed: int = 0
    language: str = "zh"
    definitions: Mapping[str, Mapping[str, Settings]] = field(default_factory=dict)
    """The pipeline's own encoders, retrievers and judges: family -> name -> settings."""
    engine: Settings = field(default_factory=dict)
    """What works on a corpus in parts, and how; empty for in one piece, in this process."""
    progress: PaidProgress = quiet
    tell: Callable[[str], None] = lambda _line: None
    """Called with one line of news."""
    consent: Consent = field(default_factory=Consent)
    rates: Rates = field(default_factory=Rates)
    currency: str | None = None
    """In which caps and totals are, where the pipeline says so."""
    settings: Settings = field(default_factory=dict)
    """The whole frozen pipeline, for report and card."""
    made: Mapping[str, Path] = field(default_factory=dict)
    """Stages that are finished and not in the run folder yet -> where they are."""
    outdated: Sequence[str] = ()
    """For a stage that renders: the stages before it that are out of date."""
    partial: Callable[["Report"], None] = lambda _report: None
    """Called with the report of tables that are written though the stage cannot go on, before it raises why."""

    def folder(self, stage: str) -> Path:
        """Return the folder of a finished stage."""
        return self.made.get(stage, self.run / stage)

    def read(self, stage: str, table: str, columns: Columns | None = None) -> pl.DataFrame:
        """Return a table of a finished stage, of the given columns if it is none of `TABLES`."""
        return read_table(self.folder(stage), table, columns)

    def report(self, stage: str) -> "Report | None":
        """Return what a stage reported; None if it has not run, or its done-mark cannot be read."""
        try:
            return Report(**read_json(self.folder(stage) / "stage.json")["report"])
        except (DataError, OSError, KeyError, TypeError):
            return None

    def done(self, stage: str) -> "Report":
        """Return what a finished stage reported; DataError if its done-mark cannot be read."""
        report = self.report(stage)
        if report is None:
            raise DataError(
                f"{self.folder(stage)}: the stage has not run, or its mark is damaged; run `curate {stage}`"
            )
        return report

    @cached_property
    def scale(self) -> Scale:
        """The scale of the grades that the judges gave; the stage `judge` has run."""
        return read_scale(self.folder("judge"))

    @property
    def stages(self) -> Sequence[Json]:
        """Return the stages that the pipeline names; none where it names none."""
        named = self.settings.get("stages")
        return named if isinstance(named, Sequence) and not isinstance(named, str) else ()

    @property
    def relevant_from(self) -> int | None:
        """Return the lowest score of the set's own labels that means relevant; None if nobody said: any above 0."""
        return read_relevant_from(self.folder("ingest"))

    def legacy_positives(self) -> pl.DataFrame:
        """Return the labels that the set came with and that mean relevant: query_id, doc_id, score."""
        return read_positives(self.read("diversify", "qrels"), self.folder("ingest"))

    @property
    def policy(self) -> Policy | ConsensusRule:
        """Return how votes become verdicts, as `consensus.policy` says: a cascade needs it before."""
        return check(ConsensusConfig, self.settings.get("consensus") or {}, "consensus").policy

    @property
    def duplicates(self) -> Literal["merge", "keep"]:
        """Return what becomes of equal texts, as `ingest.duplicates` says: it binds every stage."""
        section = self.settings.get("ingest")
        return "keep" if isinstance(section, Mapping) and section.get("duplicates") == "keep" else "merge"


@dataclass(frozen=True)
class Report:
    """What a stage did: rows in, rows out, rows dropped, what it cost, and figures worth keeping."""

    rows_in: int
    rows_out: int
    dropped: int = 0
    cost: float | None = 0.0
    """None if a price is unknown."""
    unfinished: str = ""
    """Why the stage must run again although it wrote its tables; empty if it is complete."""
    facts: Mapping[str, Json] = field(default_factory=dict)
    notes: Sequence[str] = ()
    """What a user should know though nothing is wrong, a sentence each."""
    spent: float = 0.0
    """What it took out of the cap."""


def nothing(_config: Any, _context: Context) -> Json:  # noqa: ANN401 - stands in for a function of any Config
    """Return no fingerprint: the stage depends on its settings and its input tables alone."""
    return None


@dataclass(frozen=True)
class Stage(Generic[Config]):
    """A function from tables to tables, with its settings and what else its result depends on."""

    name: str
    config: type[Config]
    after: tuple[str, ...]
    """Stages whose tables it reads."""
    run: Callable[[Config, Context], Report]
    """Read, call the pure function, write kept and dropped, report."""
    fingerprint: Callable[[Config, Context], Json] = nothing
    """Check names and files before anything runs; return digests of what lies outside the run folder."""
    preflight: Callable[[Config, Context], object] = nothing
    """Check what only doing the work needs, such as keys; called if the stage is going to run."""
    head: tuple[str, ...] = ("name", "language", "seed")
    """What its tables depend on besides its own section."""
    optional: tuple[str, ...] = ()
    """Those of `after` that it can do without; once they have run they must be up to date."""
    renders: bool = False
    """Whether it shows what there is: it runs on stages that are out of date, and says which."""
    version: int = 1
    """Raised when the same settings give other tables; old results are then redone."""


def home() -> Path:
    """Return the folder of ledger and caches: $CURATE_HOME, else ./.curate."""
    return Path(os.environ.get("CURATE_HOME") or ".curate")


def ledger_place() -> Path | str:
    """Return where the ledger is kept: the URL or file $CURATE_LEDGER, else a file in the home folder."""
    named = os.environ.get("CURATE_LEDGER", "")
    return named if "://" in named else Path(named or default_path(home()))
