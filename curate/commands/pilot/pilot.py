"""Pilot of a panel: candidate judges grade pairs that people graded, and voting rules are compared.

Judges are asked as by `curate judge`, so their answers are in the ledger and not paid for again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from curate.ask import billing, collection, consent, engine, quote, rating, seating
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import HeuristicState, JudgeState, LlmState
from curate.commands.pilot import pilot_figures
from curate.commands.pilot.pilot_figures import PilotAnswers
from curate.core.config import Json
from curate.core.errors import ConfigError, NotFound, UserError
from curate.core.records import FILTERED
from curate.ledger import Ledger, default_path
from curate.llm.budget import plan
from curate.llm.client import Unreadable
from curate.panel import cascade
from curate.panel.voting import PAIR, loaded
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.pipeline_edit import Changes
from curate.pipeline.stage import Context
from curate.review import Desk, Sample
from curate.review.drawing import outdated
from curate.review.sample import PILOT
from curate.runs.runner import Run
from curate.stats.vote_rules import LEAST
from curate.system.files import write_json
from curate.system.run_lock import enough_space, locked

MOST = 8
"""Most candidates: the number of rules grows with its fifth power."""
LEAST_LEFT = 2
"""Fewest candidates of a comparison."""
PROMPTS = 50
"""Prompts of the pool that a judge's price per pair is estimated from."""


@dataclass(frozen=True)
class PilotOrder:
    """Candidates and options; ConfigError unless there are 2 to `MOST` distinct judges."""

    models: Sequence[str]
    sample: str = PILOT
    single: bool = False
    """Allow a proposal of a single judge."""

    def __post_init__(self) -> None:
        if not LEAST_LEFT <= len(self.models) <= MOST or len(set(self.models)) < len(self.models):
            raise ConfigError(
                f"--models: found {', '.join(self.models) or 'none'}, expected two to {MOST} different judges, such as "
                "--models a,b,c,d,e"
            )


@dataclass(frozen=True)
class PilotBench:
    """Options, judge section, stage context and ledger of a pilot."""

    order: PilotOrder
    config: JudgeConfig
    context: Context
    ledger: Ledger

    @cached_property
    def people(self) -> PilotAnswers:
        """Return people's answers on pairs still in the pool with unchanged texts.

        UserError if there are too few, or all on one side of the cut.
        """
        folder = self.context.run / "reviews" / self.order.sample
        if not (folder / "design.json").is_file():
            raise NotFound(f"{folder}: no such pilot; draw one with `curate pilot export --assessors NAME,NAME`")
        sample = Sample.load(folder)
        if not sample.of_pilot:
            raise ConfigError(
                f"--sample: {self.order.sample!r} is no pilot, for its pairs were not drawn at random over the pool; "
                "draw one with `curate pilot export`"
            )
        rubric = seating.load_rubric(self.config, self.context)
        if sample.scale != rubric.scale:
            raise UserError(
                f"{folder}: people graded {sample.scale.described()}, but the judges' rubric {rubric.name} has "
                f"{rubric.scale.described()}; set judge.rubric to the old one, or draw another pilot"
            )
        pool = set(self.context.read("pool", "pool").select(PAIR).iter_rows())
        pool -= outdated(sample, self.context.folder(FILTERED))
        answers = pilot_figures.answers(Desk(sample), pool)
        answers.need(LEAST, folder)
        return answers

    @cached_property
    def panel(self) -> PanelRun:
        """Return the candidates, each with pairs graded by people that it has not rated yet."""
        run = seating.seated(self.config, self.context, self.ledger)
        keys = [judge.key.judge_digest for judge in run.seats if isinstance(judge, LlmState | HeuristicState)]
        if len(set(keys)) < len(keys):
            raise ConfigError("--models: two of the names are the same judge; a panel needs different ones")
        pairs = run.table.pool.pairs.join(self.people.pairs, on=PAIR, how="semi", maintain_order="left")
        return run.of(pairs)

    def asked(self) -> PanelRun:
        """Return the candidates; the purpose of language models separates their calls from those on the whole pool."""
        judges = [replace(judge, purpose=PILOT) if isinstance(judge, LlmState) else judge for judge in self.panel.seats]
        return self.panel.at(*judges)

    def prices(self) -> Mapping[str, tuple[float | None, str | None]]:
        """Return judge -> (price per pair of the pool, currency); None if unknown."""
        return {judge.name: self._price(judge) for judge in self.panel.seats}

    def _price(self, judge: JudgeState) -> tuple[float | None, str | None]:
        if isinstance(judge, HeuristicState):
            return 0.0, None
        if not isinstance(judge, LlmState) or judge.settings.price is None:
            return None, None
        table = self.panel.table
        # full prompts of the pool, as sent in production, for queries of the pilot
        queries = self.people.pairs["query_id"].unique().sort().head(PROMPTS)
        prompts = table.cut(judge, table.pool.pairs.filter(pl.col("query_id").is_in(queries.implode())))[:PROMPTS]
        requests = (task.request for task in rating.tasks(judge.judge, prompts, judge.key))
        estimate = plan(requests, judge.settings.price, table.token_rate(judge))
        pairs = sum(len(prompt.passages) for prompt in prompts)
        return (None if estimate.cost is None else estimate.cost / pairs), estimate.currency


def planned(run: Run, order: PilotOrder) -> list[quote.Row]:
    """Return calls and cost of asking the candidates, a row per judge; nothing is sent."""
    with _bench(run, order) as bench:
        rows = [quote.row(bench.panel.table, judge) for judge in bench.asked().asked()]
        rows = billing.in_all(rows, bench.context, ("online", "batches"))
    return [{name: cell for name, cell in row.items() if name != "batches"} for row in rows]


def compare(run: Run, order: PilotOrder) -> dict[str, Any]:
    """Ask the candidates within the run's consent, write all figures to checks/pilot.json, and return them."""
    with locked(run.folder), enough_space(run.folder), _bench(run, order) as bench:
        unreadable = _ask(bench)
        ratings = {judge.name: bench.panel.table.snapshot(judge) for judge in bench.panel.seats}
        context, prices = bench.context, bench.prices()
        currency = (
            context.consent.currency or context.currency or context.rates.common(c for _, c in prices.values() if c)
        )

        def price(judges: Sequence[str]) -> float | None:
            return context.rates.total([prices[name] for name in judges], currency).amount

        summary = pilot_figures.figures(bench.people, ratings, price, context.seed, unreadable, single=order.single)
        figures: dict[str, Any] = {"sample": order.sample, **summary, "currency": currency}
        context.out.mkdir(exist_ok=True)
        write_json(context.out / "pilot.json", figures)
    return figures


def changes(summary: Mapping[str, Any], run: Run) -> Changes:
    """Return the settings of the proposal; UserError if there is none or the cascade does not allow it."""
    if summary["settings"] is None:
        raise UserError("--accept: nothing is proposed, for no rule has a kappa; see the warnings")
    settings: Mapping[str, Json] = summary["settings"]
    config = run.pipeline.sections["judge"]
    assert isinstance(config, JudgeConfig)
    cascade.refuse(config.cascade, loaded(settings["consensus.policy"]))
    return {("judge", "models"): settings["judge.models"], ("consensus", "policy"): settings["consensus.policy"]}


@contextmanager
def _bench(run: Run, order: PilotOrder) -> Iterator[PilotBench]:
    config, context = run.pipeline.sections["judge"], run.beside("judge")
    assert isinstance(config, JudgeConfig)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        yield PilotBench(order, config.model_copy(update={"models": tuple(order.models)}), context, ledger)


def _ask(bench: PilotBench) -> dict[str, str]:
    """Have the candidates rate pairs missing from the ledger, with consent; return dropped judge -> reason.

    A candidate with unreadable answers is dropped as long as `LEAST_LEFT` remain.
    """
    assert bench.people  # raises for unusable answers before anything is paid
    seating.check_language(bench.config, bench.context)
    run = bench.asked()
    engine.refuse_open(run.orders(), run.table.ledger, run.context)
    consent.need_masked(run.seats, bench.context)
    consent.need_consent(run)
    bench.ledger.note(rating.noted(run.table.pool))
    given_up: dict[str, str] = {}
    while True:
        try:
            collection.rate(run)
        except Unreadable as error:
            ended = [judge for judge in run.paid() if f"judges.{judge.label}" in error.jobs]
            given_up |= {judge.name: _reason(error, judge) for judge in ended}
            remaining = [judge for judge in run.seats if judge.name not in given_up]
            if len(remaining) < LEAST_LEFT or not ended:
                raise
            run = run.at(*remaining)
        else:
            return given_up


def _reason(error: Unreadable, judge: LlmState) -> str:
    """Return the part of an error that concerns one judge."""
    lead = f"judges.{judge.label}: "
    return next(line.removeprefix(lead) for line in str(error).splitlines() if line.startswith(lead))
