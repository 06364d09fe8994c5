"""How a panel is asked: what it would cost, whether that is allowed, and who is asked for what in which order."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import polars as pl

from curate import ask, cascade, judging
from curate.budget import Plan, plan
from curate.cascade import Mode
from curate.context import Consent, Context
from curate.errors import BudgetError, UserError
from curate.providers import provider
from curate.stages.seats import AnySeat, PaidSeat, Seat, Table, paid

LEAST = 1000
"""Pairs that every judge of a cascade rates, at least: agreement is measured on them."""
Wanted = Mapping[str, pl.DataFrame]


class Panel(Protocol):
    """What the settings of the stage say of asking."""

    cascade: Mode | None
    cascade_sample: float
    mixed_models: bool


def plans(panel: Sequence[AnySeat]) -> dict[str, Plan]:
    """Return what asking each language model for all that is missing would come to; in a cascade it is the most."""
    return {
        seat.name: plan((task.request for task in judging.tasks(seat.judge, seat.work, seat.key)), seat.settings.price)
        for seat in paid(panel)
        if seat.work
    }


def need_consent(panel: Sequence[AnySeat], consent: Consent) -> None:
    """Stop with the plan of what is not paid yet, unless the user allows to spend within a cap that can be kept."""
    seats = [seat for seat in paid(panel) if seat.work]
    if not seats:
        return
    if consent.offline:
        calls = ", ".join(f"{seat.name}: {len(seat.work):,}" for seat in seats)
        raise UserError(f"the ledger lacks the answers of some calls ({calls}), and --offline sends none")
    priced = {seat.settings.price.currency: seat.name for seat in seats if seat.settings.price}
    if consent.max_cost is not None and len(priced) > 1:
        each = " and ".join(f"{currency} (judges.{name}.price)" for currency, name in priced.items())
        raise BudgetError(f"--max-cost: found prices in {each}, expected one currency; give all prices in one")
    if consent.yes:
        return
    found = plans(panel)
    unpriced = [name for name, each in found.items() if each.cost is None]
    if consent.max_cost is None:
        remedy = "allow it with --max-cost AMOUNT, or with --yes"
    elif unpriced:
        keys = ", ".join(f"judges.{name}.price" for name in unpriced)
        remedy = f"a cap cannot be kept without prices: give {keys}, or add --yes to leave those without a cap"
    else:
        return
    lines = [f"  {name}: {each.said()}" for name, each in found.items()]
    raise BudgetError("\n".join(["judging would send:", *lines, remedy]))


def collect(table: Table, panel: Sequence[AnySeat], config: Panel, context: Context) -> Wanted:
    """Have everybody rate what is missing, and return who was asked for which pairs, by name; {} for all of them."""
    if config.cascade is None:
        _rate(table, panel, config, context, context.consent.max_cost)
        return {}
    left, wanted, said = context.consent.max_cost, dict[str, pl.DataFrame](), list[pl.DataFrame]()
    always = sample(table.pool.pairs, config, context)
    for seat in in_order(panel):
        wanted[seat.name] = cascade.wanted(table.pool.pairs, said, config.cascade, always)
        spent = _rate(table, [table.left(seat, wanted[seat.name])], config, context, left)
        left = None if left is None else left - spent
        said.append(table.snapshot(seat))
    return wanted


def in_order(panel: Sequence[AnySeat]) -> list[AnySeat]:
    """Return the seats as a cascade asks them: whoever is free, then by price, last whose price nobody knows."""
    costs = {name: each.cost for name, each in plans(panel).items()}
    known = {name: cost if cost is not None else float("inf") for name, cost in costs.items()}
    return sorted(panel, key=lambda seat: known.get(seat.name, 0.0))


def sample(pairs: pl.DataFrame, config: Panel, context: Context) -> pl.DataFrame:
    """Return the pairs that every judge rates in a cascade."""
    return cascade.sample(pairs, config.cascade_sample, LEAST, context.seed)


def _rate(table: Table, panel: Sequence[AnySeat], config: Panel, context: Context, max_cost: float | None) -> float:
    """Have seats rate what they still have to, the language models side by side; return what was spent."""
    for seat in panel:
        if isinstance(seat, Seat):
            judging.rate(seat.judge, seat.work, table.ledger, seat.key, context.progress)
    jobs = [_job(seat, config, context) for seat in paid(panel) if seat.work]
    if not jobs:
        return 0.0
    bills = ask.ask(jobs, table.ledger, max_cost=max_cost, progress=context.progress, tell=context.tell)
    return sum(bill.spent for bill in bills.values())


def _job(seat: PaidSeat, config: Panel, context: Context) -> ask.Job:
    settings = seat.settings
    return ask.Job(
        name=f"judges.{seat.name}",
        tasks=judging.tasks(seat.judge, seat.work, seat.key),
        provider=provider(settings),
        account=ask.Account(**vars(seat.key), run=context.run_id),
        limits=ask.Limits(
            concurrency=settings.concurrency,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            price=settings.price,
            mixed_models=config.mixed_models,
            uncapped=settings.price is None,  # consent was asked for this
        ),
        total=sum(len(each.passages) for each in seat.work),
    )
