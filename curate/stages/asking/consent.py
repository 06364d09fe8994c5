"""Consent to spend: what asking a panel would cost, whether that is allowed, and who is asked in which order."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import polars as pl

from curate.core.errors import BudgetError, UserError
from curate.core.records import STOPPED
from curate.ledger.claims import Claims
from curate.llm import online as ask
from curate.llm.budget import CostEstimate, plan, together
from curate.llm.cost import Price, batch_price
from curate.llm.online.rate_limit import RateLimit
from curate.llm.providers import provider
from curate.llm.providers.settings import ProviderConfig
from curate.panel import cascade, rating
from curate.panel.cascade import Mode
from curate.stages.asking import batching, privacy_guard, sharing
from curate.stages.asking.panel_state import HeuristicState, JudgeState, LlmState, PanelState, ReplayState, paid
from curate.stages.asking.sharing import Share
from curate.stages.context import Context
from curate.stages.facts import billing
from curate.system import egress

LEAST = 1000
"""Pairs that every judge of a cascade rates, at least: agreement is measured on them."""
ANSWER_SHARE = 0.05
"""Share of answers in the tokens of a call, by which prices are weighed: prompts hold passages, answers letters."""
Wanted = Mapping[str, pl.DataFrame]


class AskingSettings(Protocol):
    """What the settings of the stage say of asking."""

    cascade: Mode | None
    cascade_sample: float
    mixed_models: bool


def plans(table: PanelState, panel: Sequence[JudgeState], *, batches: bool = False) -> dict[str, CostEstimate]:
    """Return what asking each language model for all that is missing would come to; in a cascade it is the most."""
    return {
        seat.label: plan((task.request for task in table.tasks(seat, seat.work)), price)
        for seat in paid(panel)
        if seat.work
        for price in [batch_price(seat.settings.price) if batches and seat.settings.batch else seat.settings.price]
    }


def need_consent(table: PanelState, panel: Sequence[JudgeState], context: Context) -> None:
    """Stop with the plan of what is not paid yet, unless the user allows to spend within a cap that can be kept."""
    models = {seat.name: seat.settings for seat in paid(panel) if seat.work}
    permit("judging", models, lambda: plans(table, panel, batches=context.consent.batch), context)


def listed(found: Mapping[str, CostEstimate], context: Context) -> list[str]:
    """Return plans as lines of text, of several also what they come to in all."""
    lines = [f"  {name}: {each.said()}" for name, each in found.items()]
    if len(found) > 1:
        total = billing.planned([(each.cost, each.currency) for each in found.values()], context)
        lines.append(f"  in all: {together(list(found.values()), total).said()}{billing.by(total)}")
    return lines


def need_masked(panel: Sequence[JudgeState], context: Context) -> None:
    """Stop before a judge is given texts that may carry them away, unless all that looks like personal data may."""
    for seat in panel:
        who = f"judges.{seat.name}"
        if isinstance(seat, LlmState) and seat.work:
            privacy_guard.may_ask(who, seat.settings, context)
        elif isinstance(seat, HeuristicState) and seat.work:
            privacy_guard.ask(who, egress.beyond(who, seat.judge), context)


def permit(
    verb: str,
    models: Mapping[str, ProviderConfig],
    planned: Callable[[], Mapping[str, CostEstimate]],
    context: Context,
) -> None:
    """Stop with the plan of what models are not paid for yet, unless the user allows to spend within a cap.

    The currency of the cap is settled and told; BudgetError if not all prices can be counted in it.
    """
    if not models:
        return
    if context.consent.offline:
        lines = listed(planned(), context)
        raise UserError("\n".join(["the ledger lacks these answers, and --offline sends none:", *lines]))
    budget, prices = context.consent.budget, {f"judges.{name}.price": each.price for name, each in models.items()}
    budget.settle(prices, context.rates, context.currency)
    budget.shared = context.name
    if budget.policy.currency:
        context.tell(f"cap: {budget.policy.clause(prices)}")
    if remedy := budget.policy.remedy(prices):
        raise BudgetError("\n".join([f"{verb} would send:", *listed(planned(), context), remedy]))


def collect(table: PanelState, panel: Sequence[JudgeState], config: AskingSettings, context: Context) -> Wanted:
    """Have everybody rate what is missing, and return who was asked for which pairs, by name; {} for all of them."""
    if config.cascade is None:
        rate(table, panel, config, context)
        return {}
    wanted, said = dict[str, pl.DataFrame](), list[pl.DataFrame]()
    always = sample(table.pool.pairs, config, context)
    for seat in in_order(panel):
        wanted[seat.name] = cascade.wanted(table.pool.pairs, said, config.cascade, always)
        rate(table, [table.left(seat, wanted[seat.name])], config, context)
        said.append(table.snapshot(seat))
    return wanted


def in_order(panel: Sequence[JudgeState]) -> list[JudgeState]:
    """Return the seats as a cascade asks them: whoever is free, then by price, last whose price nobody knows.

    The price alone decides, not what is left to ask, so a cascade that goes on has the order that it began with. Of
    judges that replay a cascade who was stopped least goes first, as when it was recorded.
    """
    return sorted(panel, key=_turn)


def _turn(seat: JudgeState) -> tuple[float, int]:
    if isinstance(seat, ReplayState):
        return 0.0, len(seat.rows.filter(pl.col("status") == STOPPED))
    return _dear(seat.settings.price) if isinstance(seat, LlmState) else 0.0, 0


def _dear(price: Price | None) -> float:
    return ANSWER_SHARE * price.output + (1 - ANSWER_SHARE) * price.input if price else float("inf")


def narrowed(
    table: PanelState, panel: Sequence[JudgeState], config: AskingSettings, context: Context
) -> list[JudgeState]:
    """Return the seats with what a cascade may still ask them, as far as the ledger knows; unchanged without one."""
    if config.cascade is None:
        return list(panel)
    left, said = dict[str, JudgeState](), list[pl.DataFrame]()
    always = sample(table.pool.pairs, config, context)
    for seat in in_order(panel):
        left[seat.name] = table.left(seat, cascade.wanted(table.pool.pairs, said, config.cascade, always))
        said.append(table.snapshot(seat))
    return [left[seat.name] for seat in panel]


def sample(pairs: pl.DataFrame, config: AskingSettings, context: Context) -> pl.DataFrame:
    """Return the pairs that every judge rates in a cascade."""
    return cascade.sample(pairs, config.cascade_sample, LEAST, context.seed)


def rate(table: PanelState, panel: Sequence[JudgeState], config: AskingSettings, context: Context) -> None:
    """Have seats rate what they still have to, the language models side by side."""
    need_masked(panel, context)
    for seat in panel:
        if isinstance(seat, HeuristicState):
            rating.rate(seat.judge, seat.work, table.ledger, seat.key, context.progress)
    seats = [
        seat
        for seat in paid(panel)
        if seat.work or (context.consent.batch and batching.open_batches(table.ledger, seat))
    ]
    if seats and context.consent.batch:
        batching.in_batches(table, seats, config.mixed_models, context)
        seats = [table.again(seat) for seat in seats]
    online(table, [seat for seat in seats if seat.work], config, context)


def online(table: PanelState, seats: Sequence[LlmState], config: AskingSettings, context: Context) -> None:
    """Ask language models for what they have to rate, together with other processes."""
    with Claims(table.ledger, sharing.owner(), sharing.LEASE_S) as claims:
        sharing.bury(claims)
        shares = [
            Share(
                table.ledger,
                claims,
                seat.key,
                seat.work,
                table.since,
                partial(batching.refuse_abandoned, claims, table.ledger, seat),
            )
            for seat in seats
        ]
        paces = [ask.pace(_limits(seat, config), table.ledger, seat.key.judge_digest) for seat in seats]
        while shares:
            jobs = [_job(table, *each, config, context) for each in zip(seats, shares, paces, strict=True)]
            ask.ask(
                jobs,
                table.ledger,
                budget=context.consent.budget,
                progress=context.progress,
                tell=context.tell,
                beat=(sharing.LEASE_S / 4, claims.renew),
            )
            shares = sharing.rest(shares, context.tell)


def _job(
    table: PanelState, seat: LlmState, share: Share, pace: RateLimit, config: AskingSettings, context: Context
) -> ask.Job:
    return ask.Job(
        name=f"judges.{seat.label}",
        tasks=table.tasks(seat, share),
        provider=provider(seat.settings),
        account=ask.Account(**vars(seat.key), run=context.run_id),
        limits=_limits(seat, config),
        total=sum(len(each.passages) for each in share.work),
        pace=pace,
        ours=share.keeps,
    )


def _limits(seat: LlmState, config: AskingSettings) -> ask.RequestLimits:
    return limits(seat.settings, mixed_models=config.mixed_models)


def limits(settings: ProviderConfig, *, mixed_models: bool = False) -> ask.RequestLimits:
    """Return how a provider is asked."""
    return ask.RequestLimits(
        concurrency=settings.concurrency,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        price=settings.price,
        mixed_models=mixed_models,
    )
