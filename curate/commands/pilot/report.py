"""`curate pilot report`: candidate judges grade pairs that people graded, and voting rules are compared.

Judges are asked as by `curate judge`, so their answers are in the ledger and not paid for again.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from curate.ask import billing, collection, consent, engine, quote, rating, seating
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import HeuristicState, JudgeState, LlmState
from curate.commands.pilot import pilot_figures
from curate.commands.pilot.pilot_figures import WORDS, PeopleKappa, PilotAnswers, PilotFigures, RuleKappa
from curate.core.errors import ConfigError, NotFound, UserError
from curate.core.figures import ABSENT, Figure
from curate.core.records import FILTERED
from curate.ledger import Ledger, default_path
from curate.llm import budget
from curate.llm.client import Unreadable
from curate.panel import cascade
from curate.panel.voting import PAIR, loaded
from curate.pipeline import pipeline_edit
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.pipeline import find
from curate.pipeline.pipeline_edit import Changes
from curate.pipeline.stage import Context
from curate.review import Desk, Sample
from curate.review.drawing import outdated
from curate.review.sample import PILOT
from curate.runs.command import Names, option
from curate.runs.options import LedgerFirst, OnPipeline, Plannable
from curate.runs.runner import Run
from curate.stats.vote_rules import LEAST, VoteRule
from curate.system.files import write_json
from curate.system.resources import packaged
from curate.system.run_lock import enough_space, locked
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table

MOST = 8
"""Most candidates: the number of rules grows with its fifth power."""
LEAST_LEFT = 2
"""Fewest candidates of a comparison."""
PROMPTS = 50
"""Prompts of the pool that a judge's price per pair is estimated from."""
SHOWN = 12
"""Rules in the printed table, the best first; all of them are in checks/pilot.json."""


class PilotReportCommand(OnPipeline, Plannable, LedgerFirst):
    """Propose a panel and a rule.

    Candidate judges are asked about the pairs that people graded; rules of one to five judges are compared, and the
    cheapest is proposed. What the ledger holds is not asked again, here or by `curate judge`.
    """

    words = "pilot report"
    examples = (
        "pilot report --models gpt,qwen,deepseek --plan",
        "pilot report --pipeline my.yaml --accept --yes",
    )

    models: Names = option(
        "The candidates: names of two to eight judges, separated by commas; default: judge.models.",
        (),
        complete="judges",
        metavar="NAMES",
    )
    sample: str = option("Name of the pilot.", "pilot", metavar="NAME")
    single: bool = option("Also propose one judge alone: no kappa, nothing contested.", False)
    accept: bool = option("Write the proposed panel and rule into the file of --pipeline.", False)

    def result(self) -> Result[PilotFigures]:
        """Return the comparison of panels and rules; with `plan`, what the judges would be asked."""
        file = _target(self.pipeline) if self.accept else None
        run = self.open_run()
        run.consent = self.consent()
        if self.plan:
            return self.cost_estimate(planned(run, self))
        figures = replace(compare(run, self), written=file)
        lines = list(_text(figures))
        if file is not None:
            accepted = changes(figures, run)
            outcome = "accepted" if pipeline_edit.rewrite(file, accepted) else "accepted_before"
            lines.append(RecordWords(WORDS)(outcome, figures, settings=pipeline_edit.lines(accepted)))
        return Result(figures, lines, figures.warnings)


def _target(pipeline: str | None) -> Path:
    """Return the pipeline file to write a proposal into; ConfigError if it is missing or packaged."""
    if pipeline is None:
        raise ConfigError("--accept: found no --pipeline, expected the file to write into; give --pipeline FILE")
    path = find(pipeline)
    if packaged(path) and str(path) != pipeline:
        raise ConfigError(f"--accept: {pipeline} is packaged and stays as it is; copy it, and give --pipeline FILE")
    return path


@dataclass(frozen=True)
class PilotBench:
    """Judge section with the candidates, stage context and ledger of a pilot."""

    sample: str
    config: JudgeConfig
    context: Context
    ledger: Ledger

    @cached_property
    def people(self) -> PilotAnswers:
        """Return people's answers on pairs still in the pool with unchanged texts.

        UserError if there are too few, or all on one side of the cut.
        """
        folder = self.context.run / "reviews" / self.sample
        if not (folder / "design.json").is_file():
            raise NotFound(f"{folder}: no such pilot; draw one with `curate pilot export --assessors NAME,NAME`")
        sample = Sample.load(folder)
        if not sample.of_pilot:
            raise ConfigError(
                f"--sample: {self.sample!r} is no pilot, for its pairs were not drawn at random over the pool; "
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
        estimate = budget.plan(requests, judge.settings.price, table.token_rate(judge))
        pairs = sum(len(prompt.passages) for prompt in prompts)
        return (None if estimate.cost is None else estimate.cost / pairs), estimate.currency


def planned(run: Run, command: PilotReportCommand) -> list[billing.PlanRow]:
    """Return calls and cost of asking the candidates, a row per judge; nothing is sent."""
    with _bench(run, command) as bench:
        rows = [quote.row(bench.panel.table, judge) for judge in bench.asked().asked()]
        plan = billing.in_all(rows, bench.context, ("online", "batches"))
    return [replace(row, batches=ABSENT) for row in plan]


def compare(run: Run, command: PilotReportCommand) -> PilotFigures:
    """Ask the candidates within the run's consent, write all figures to checks/pilot.json, and return them."""
    with locked(run.folder), enough_space(run.folder), _bench(run, command) as bench:
        unreadable = _ask(bench)
        ratings = {judge.name: bench.panel.table.snapshot(judge) for judge in bench.panel.seats}
        context, prices = bench.context, bench.prices()
        currency = (
            context.consent.currency or context.currency or context.rates.common(c for _, c in prices.values() if c)
        )

        def price(rule: VoteRule) -> float | None:
            return context.rates.total([prices[name] for name in rule.judges], currency).amount

        figures = pilot_figures.figures(
            command.sample, bench.people, ratings, price, context.seed, unreadable, single=command.single
        )
        figures = replace(figures, currency=currency)
        context.out.mkdir(exist_ok=True)
        write_json(context.out / "pilot.json", figures.to_json("written"))
    return figures


def changes(figures: PilotFigures, run: Run) -> Changes:
    """Return the settings of the proposal; UserError if there is none or the cascade does not allow it."""
    if figures.settings is None:
        raise UserError("--accept: nothing is proposed, for no rule has a kappa; see the warnings")
    config = run.pipeline.sections["judge"]
    assert isinstance(config, JudgeConfig)
    cascade.refuse(config.cascade, loaded(figures.settings["consensus.policy"]))
    return figures.changes


@contextmanager
def _bench(run: Run, command: PilotReportCommand) -> Iterator[PilotBench]:
    """Yield the bench of a pilot; ConfigError unless there are 2 to `MOST` distinct candidates."""
    config, context = run.pipeline.sections["judge"], run.beside("judge")
    assert isinstance(config, JudgeConfig)
    models = tuple(command.models or config.models)
    if not LEAST_LEFT <= len(models) <= MOST or len(set(models)) < len(models):
        raise ConfigError(
            f"--models: found {', '.join(models) or 'none'}, expected two to {MOST} different judges, such as "
            "--models a,b,c,d,e"
        )
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        yield PilotBench(command.sample, config.model_copy(update={"models": models}), context, ledger)


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


# Figures of a pilot as lines for people.


def _text(figures: PilotFigures) -> Iterator[str]:
    """Yield people's agreement, the best rules, the proposal with its optimism, and how to accept it."""
    say, rules, plain, chosen = RecordWords(WORDS), figures.rules, figures.default, figures.proposal
    yield say("answered", figures)
    yield say("people", figures.people, kappa=_kappa(figures.people))
    if rules:
        top = [*rules[:SHOWN], *(rule for rule in (plain, chosen) if rule and rule not in rules[:SHOWN])]
        yield as_table([_cells(rule, figures, say) for rule in top])
    if len(rules) > SHOWN:
        yield say("more_rules", shown=SHOWN, rules=len(rules))
    if plain:
        yield say("default", plain, kappa=_kappa(plain))
    if chosen is None:
        yield say("no_proposal")
    else:
        price = "" if chosen.price is None else say("price", chosen, currency=figures.currency or "").rstrip()
        yield say("proposal", chosen, kappa=_kappa(chosen), price=price)
        yield say("optimism", rules=len(rules))
        if not figures.single:
            yield say("not_single")
        if figures.written is None:
            yield say("to_accept", settings=pipeline_edit.lines(figures.changes))
    yield from figures.warnings


def _cells(rule: RuleKappa, figures: PilotFigures, say: RecordWords) -> dict[str, str]:
    bounds = None if rule.low is None else say("bounds", rule)
    return say.cells("rule", rule, currency=figures.currency or "price", bounds=bounds)


def _kappa(agreement: PeopleKappa | RuleKappa) -> Figure:
    return Figure(agreement.kappa, agreement.low, agreement.high)
