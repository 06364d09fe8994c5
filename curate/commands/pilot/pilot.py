"""Pilot of a panel: candidate judges grade what people graded, and the rules that could make labels are compared.

The judges are asked as `curate judge` asks them, so the ledger holds what they said, and it is not paid again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from curate.ask import batching, billing, collection, consent, quote, rating, seating
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import HeuristicState, JudgeState, LlmState, PanelState
from curate.commands.pilot import pilot_figures
from curate.commands.pilot.pilot_figures import PilotAnswers
from curate.core.config import Json
from curate.core.errors import ConfigError, NotFound, UserError
from curate.ledger import Ledger, default_path
from curate.llm.budget import plan
from curate.llm.client import Unreadable
from curate.panel import cascade
from curate.panel.voting import PAIR, loaded
from curate.pipeline.judge_config import Config as JudgeConfig
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
"""Candidates at most: the number of rules grows with their number to the power of five."""
LEAST_LEFT = 2
"""Candidates that a comparison needs."""
PROMPTS = 50
"""Prompts of the pool by which a judge's price per pair is reckoned."""


@dataclass(frozen=True)
class PilotOrder:
    """What is compared; ConfigError unless these are two different judges or more."""

    models: Sequence[str]
    sample: str = PILOT
    single: bool = False
    """Let one judge alone be proposed."""

    def __post_init__(self) -> None:
        if not LEAST_LEFT <= len(self.models) <= MOST or len(set(self.models)) < len(self.models):
            raise ConfigError(
                f"--models: found {', '.join(self.models) or 'none'}, expected two to {MOST} different judges, such as "
                "--models a,b,c,d,e"
            )


@dataclass(frozen=True)
class PilotBench:
    """Everything that a pilot works with."""

    order: PilotOrder
    config: JudgeConfig
    context: Context
    ledger: Ledger

    @cached_property
    def people(self) -> PilotAnswers:
        """Return what people said of pairs that are still in the pool with the texts that they read.

        UserError unless these are enough, on both sides of the cut.
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
        pool -= outdated(sample, self.context.folder("diversify"))
        found = pilot_figures.answers(Desk(sample), pool)
        found.need(LEAST, folder)
        return found

    @cached_property
    def panel(self) -> PanelRun:
        """Return the candidates, each with what it still has to rate of what people graded."""
        run = seating.seated(self.config, self.context, self.ledger)
        keys = [seat.key.judge_digest for seat in run.seats if isinstance(seat, LlmState | HeuristicState)]
        if len(set(keys)) < len(keys):
            raise ConfigError("--models: two of the names are the same judge; a panel needs different ones")
        pairs = run.table.pool.pairs.join(self.people.pairs, on=PAIR, how="semi", maintain_order="left")
        return run.of(pairs)

    def asked(self) -> PanelRun:
        """Return the candidates, those that cost with a label that tells them from judges at the pool."""
        seats = [replace(seat, purpose=PILOT) if isinstance(seat, LlmState) else seat for seat in self.panel.seats]
        return self.panel.at(*seats)

    def prices(self) -> Mapping[str, tuple[float | None, str | None]]:
        """Return judge -> price per pair of the pool and its currency; None where it is not known."""
        return {seat.name: self._price(seat) for seat in self.panel.seats}

    def _price(self, seat: JudgeState) -> tuple[float | None, str | None]:
        if isinstance(seat, HeuristicState):
            return 0.0, None
        if not isinstance(seat, LlmState) or seat.settings.price is None:
            return None, None
        table = self.panel.table
        work = _prompts(table, seat, self.people.pairs)
        requests = (task.request for task in rating.tasks(seat.judge, work, seat.key))
        found = plan(requests, seat.settings.price, table.token_rate(seat))
        pairs = sum(len(each.passages) for each in work)
        return (None if found.cost is None else found.cost / pairs), found.currency


def _prompts(table: PanelState, seat: LlmState, pairs: pl.DataFrame) -> list[rating.Work]:
    """Return whole prompts of the pool as production would send them, of queries of the pilot."""
    names = pairs["query_id"].unique().sort().head(PROMPTS)
    pool = table.pool.pairs.filter(pl.col("query_id").is_in(names.implode()))
    return table.cut(seat, pool)[:PROMPTS]


def planned(run: Run, order: PilotOrder) -> list[quote.Row]:
    """Return what asking the candidates would send and cost, a row per judge; nothing is sent."""
    with _bench(run, order) as bench:
        rows = [quote.row(bench.panel.table, seat) for seat in bench.asked().asked()]
        rows = billing.in_all(rows, bench.context, ("online", "batches"))
    return [{name: cell for name, cell in row.items() if name != "batches"} for row in rows]


def compare(run: Run, order: PilotOrder) -> dict[str, Any]:
    """Ask the candidates, within the run's consent, and return and write all figures (checks/pilot.json)."""
    with locked(run.folder), enough_space(run.folder), _bench(run, order) as bench:
        unreadable = _ask(bench)
        said = {seat.name: bench.panel.table.snapshot(seat) for seat in bench.panel.seats}
        context, prices = bench.context, bench.prices()
        into = context.consent.currency or context.currency or context.rates.common(c for _, c in prices.values() if c)

        def price(judges: Sequence[str]) -> float | None:
            return context.rates.total([prices[name] for name in judges], into).amount

        found = pilot_figures.figures(bench.people, said, price, context.seed, unreadable, single=order.single)
        figures: dict[str, Any] = {"sample": order.sample, **found, "currency": into}
        context.out.mkdir(exist_ok=True)
        write_json(context.out / "pilot.json", figures)
    return figures


def changes(found: Mapping[str, Any], run: Run) -> Changes:
    """Return the settings of a proposal; UserError if there is none, or the pipeline cannot have it."""
    if found["settings"] is None:
        raise UserError("--accept: nothing is proposed, for no rule has a kappa; see the warnings")
    settings: Mapping[str, Json] = found["settings"]
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
    """Have the candidates rate what the ledger lacks, once that is allowed; return judge -> why it was given up.

    A candidate whose answers nobody can read ends alone, as long as two others are left to compare.
    """
    assert bench.people  # what is wrong with the answers is said before anything is paid
    seating.check_language(bench.config, bench.context)
    run = bench.asked()
    batching.refuse_open(run)
    consent.need_masked(run.seats, bench.context)
    consent.need_consent(run)
    bench.ledger.note(rating.noted(run.table.pool))
    given_up: dict[str, str] = {}
    while True:
        try:
            collection.rate(run)
        except Unreadable as error:
            ended = [seat for seat in run.paid() if f"judges.{seat.label}" in error.jobs]
            given_up |= {seat.name: _reason(error, seat) for seat in ended}
            rest = [seat for seat in run.seats if seat.name not in given_up]
            if len(rest) < LEAST_LEFT or not ended:
                raise
            run = run.at(*(run.table.again(seat) if isinstance(seat, LlmState) else seat for seat in rest))
        else:
            return given_up


def _reason(error: Unreadable, seat: LlmState) -> str:
    """Return what an error says of one judge."""
    lead = f"judges.{seat.label}: "
    return next(line.removeprefix(lead) for line in str(error).splitlines() if line.startswith(lead))
