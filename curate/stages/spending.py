"""How a panel is asked: what it would cost, whether that is allowed, and who is asked for what in which order."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import polars as pl

from curate import ask, cascade, egress, judging, sharing
from curate.ask.pace import Pace
from curate.budget import Plan, plan, together
from curate.cascade import Mode
from curate.context import Context
from curate.cost import Price, batch_price
from curate.errors import BudgetError, UserError
from curate.ledger.claims import Claims
from curate.providers import provider
from curate.providers.settings import ProviderConfig
from curate.records import STOPPED
from curate.sharing import Share
from curate.stages import batching, billing, leaving
from curate.stages.seats import AnySeat, PaidSeat, ReplaySeat, Seat, Table, paid

LEAST = 1000
"""Pairs that every judge of a cascade rates, at least: agreement is measured on them."""
ANSWER_SHARE = 0.05
"""Share of answers in the tokens of a call, by which prices are weighed: prompts hold passages, answers letters."""
Wanted = Mapping[str, pl.DataFrame]


class Panel(Protocol):
    """What the settings of the stage say of asking."""

    cascade: Mode | None
    cascade_sample: float
    mixed_models: bool


def plans(table: Table, panel: Sequence[AnySeat], *, batches: bool = False) -> dict[str, Plan]:
    """Return what asking each language model for all that is missing would come to; in a cascade it is the most."""
    return {
        seat.label: plan((task.request for task in table.tasks(seat, seat.work)), price)
        for seat in paid(panel)
        if seat.work
        for price in [batch_price(seat.settings.price) if batches and seat.settings.batch else seat.settings.price]
    }


def need_consent(table: Table, panel: Sequence[AnySeat], context: Context) -> None:
    """Stop with the plan of what is not paid yet, unless the user allows to spend within a cap that can be kept."""
    consent = context.consent
    seats = [seat for seat in paid(panel) if seat.work]
    if not seats:
        return
    if consent.offline:
        calls = ", ".join(f"{seat.label}: {len(seat.work):,}" for seat in seats)
        raise UserError(f"the ledger lacks the answers of some calls ({calls}), and --offline sends none")
    settle({seat.name: seat.settings for seat in seats}, context)
    if consent.yes:
        return
    found = plans(table, panel, batches=consent.batch)
    unpriced = [name for name, each in found.items() if each.cost is None]
    if consent.max_cost is None:
        remedy = "allow it with --max-cost AMOUNT, or with --yes"
    elif unpriced:
        keys = ", ".join(dict.fromkeys(f"judges.{seat.name}.price" for seat in seats if seat.label in unpriced))
        remedy = f"a cap cannot be kept without prices: give {keys}, or add --yes to leave those without a cap"
    else:
        return
    raise BudgetError("\n".join(["judging would send:", *listed(found, context), remedy]))


def settle(models: Mapping[str, ProviderConfig], context: Context) -> None:
    """Decide in which currency the cap is, and say so; BudgetError if not all of these prices can be counted in it."""
    budget = context.consent.budget
    prices = {f"judges.{name}.price": each.price for name, each in models.items() if each.price}
    budget.settle(prices, context.rates, context.currency)
    budget.shared = context.name
    if budget.currency:
        used = {price.currency: budget.rate(price) for price in prices.values() if not price.free()}
        by = "".join(f"; {each.said()}" for each in used.values() if each.date)
        context.tell(f"cap: {budget.said()}{by}")


def listed(found: Mapping[str, Plan], context: Context) -> list[str]:
    """Return plans as lines of text, of several also what they come to in all."""
    lines = [f"  {name}: {each.said()}" for name, each in found.items()]
    if len(found) > 1:
        total = billing.planned([(each.cost, each.currency) for each in found.values()], context)
        lines.append(f"  in all: {together(list(found.values()), total).said()}{billing.by(total)}")
    return lines


def need_masked(panel: Sequence[AnySeat], context: Context) -> None:
    """Stop before a judge is given texts that may carry them away, unless all that looks like personal data may."""
    for seat in panel:
        who = f"judges.{seat.name}"
        if isinstance(seat, PaidSeat) and seat.work:
            leaving.may_ask(who, seat.settings, context)
        elif isinstance(seat, Seat) and seat.work:
            leaving.ask(who, egress.beyond(who, seat.judge), context)


def permit(verb: str, models: Mapping[str, ProviderConfig], planned: Mapping[str, Plan], context: Context) -> None:
    """Stop with the plan of what models are not paid for yet, unless the user allows to spend within a cap."""
    consent = context.consent
    if not planned:
        return
    lines = listed(planned, context)
    if consent.offline:
        raise UserError("\n".join(["the ledger lacks these answers, and --offline sends none:", *lines]))
    settle(models, context)
    if consent.yes:
        return
    if consent.max_cost is None:
        raise BudgetError("\n".join([f"{verb} would send:", *lines, "allow it with --max-cost AMOUNT, or with --yes"]))
    for name, settings in models.items():
        if settings.price is None:
            raise BudgetError(f"a cap cannot be kept without a price: give judges.{name}.price, or --yes in its place")


def collect(table: Table, panel: Sequence[AnySeat], config: Panel, context: Context) -> Wanted:
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


def in_order(panel: Sequence[AnySeat]) -> list[AnySeat]:
    """Return the seats as a cascade asks them: whoever is free, then by price, last whose price nobody knows.

    The price alone decides, not what is left to ask, so a cascade that goes on has the order that it began with. Of
    judges that replay a cascade who was stopped least goes first, as when it was recorded.
    """
    return sorted(panel, key=_turn)


def _turn(seat: AnySeat) -> tuple[float, int]:
    if isinstance(seat, ReplaySeat):
        return 0.0, len(seat.rows.filter(pl.col("status") == STOPPED))
    return _dear(seat.settings.price) if isinstance(seat, PaidSeat) else 0.0, 0


def _dear(price: Price | None) -> float:
    return ANSWER_SHARE * price.output + (1 - ANSWER_SHARE) * price.input if price else float("inf")


def narrowed(table: Table, panel: Sequence[AnySeat], config: Panel, context: Context) -> list[AnySeat]:
    """Return the seats with what a cascade may still ask them, as far as the ledger knows; unchanged without one."""
    if config.cascade is None:
        return list(panel)
    left, said = dict[str, AnySeat](), list[pl.DataFrame]()
    always = sample(table.pool.pairs, config, context)
    for seat in in_order(panel):
        left[seat.name] = table.left(seat, cascade.wanted(table.pool.pairs, said, config.cascade, always))
        said.append(table.snapshot(seat))
    return [left[seat.name] for seat in panel]


def sample(pairs: pl.DataFrame, config: Panel, context: Context) -> pl.DataFrame:
    """Return the pairs that every judge rates in a cascade."""
    return cascade.sample(pairs, config.cascade_sample, LEAST, context.seed)


def rate(table: Table, panel: Sequence[AnySeat], config: Panel, context: Context) -> None:
    """Have seats rate what they still have to, the language models side by side."""
    need_masked(panel, context)
    for seat in panel:
        if isinstance(seat, Seat):
            judging.rate(seat.judge, seat.work, table.ledger, seat.key, context.progress)
    seats = [
        seat
        for seat in paid(panel)
        if seat.work or (context.consent.batch and batching.open_batches(table.ledger, seat))
    ]
    if seats and context.consent.batch:
        batching.in_batches(table, seats, config.mixed_models, context)
        seats = [table.again(seat) for seat in seats]
    online(table, [seat for seat in seats if seat.work], config, context)


def online(table: Table, seats: Sequence[PaidSeat], config: Panel, context: Context) -> None:
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


def _job(table: Table, seat: PaidSeat, share: Share, pace: Pace, config: Panel, context: Context) -> ask.Job:
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


def _limits(seat: PaidSeat, config: Panel) -> ask.Limits:
    return limits(seat.settings, mixed_models=config.mixed_models)


def limits(settings: ProviderConfig, *, mixed_models: bool = False) -> ask.Limits:
    """Return how a provider is asked; without a price outside of any cap, for which consent is asked first."""
    return ask.Limits(
        concurrency=settings.concurrency,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        price=settings.price,
        mixed_models=mixed_models,
        uncapped=settings.price is None,
    )
