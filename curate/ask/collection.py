"""Collection of a panel's ratings: from heuristics, and from language models by batches and online."""

from functools import partial

import polars as pl

from curate.ask import batching, consent, rating, sharing
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import HeuristicState, LlmState
from curate.ask.sharing import Share
from curate.ledger.claims import Claims
from curate.llm import client
from curate.llm.client.rate_limit import RateLimit
from curate.llm.providers import provider

Wanted = dict[str, pl.DataFrame]
"""Judge -> the pairs that a cascade asked it for; empty without a cascade."""


def collect(run: PanelRun) -> Wanted:
    """Have all seats rate what is missing, and return judge -> pairs that a cascade asked it for; {} without one."""
    wanted = Wanted()
    if run.config.cascade is None:
        rate(run)
        return wanted
    for seat, pairs in run.turns():
        wanted[seat.name] = pairs
        rate(run.at(seat))
    return wanted


def rate(run: PanelRun) -> None:
    """Have seats rate what they still have to, the language models side by side."""
    table, context = run.table, run.context
    consent.need_masked(run.seats, context)
    for seat in run.seats:
        if isinstance(seat, HeuristicState):
            rating.rate(seat.judge, seat.work, table.ledger, seat.key, table.rubric.scale, context.progress)
    if context.consent.batch:
        waiting = [seat for seat in run.paid() if seat.work or batching.open_batches(table.ledger, seat)]
        batching.in_batches(run.at(*waiting))
        run = run.at(*(table.again(seat) for seat in waiting))
    _online(run.at(*run.asked()))


def _online(run: PanelRun) -> None:
    """Ask language models for what they have to rate, together with other processes."""
    table, context, seats = run.table, run.context, run.paid()
    with Claims(table.ledger, sharing.owner(), sharing.LEASE_S) as claims:
        sharing.bury(claims)
        checks = [partial(batching.refuse_abandoned, claims, table.ledger, seat) for seat in seats]
        shares = [
            Share(table.ledger, claims, seat.key, seat.work, table.since, check)
            for seat, check in zip(seats, checks, strict=True)
        ]
        paces = [client.pace(_limits(run, seat), table.ledger, seat.key.judge_digest) for seat in seats]
        watches = [run.watch(seat) for seat in seats]
        while shares:
            client.ask(
                [_job(run, *each) for each in zip(seats, shares, paces, watches, strict=True)],
                table.ledger,
                budget=context.consent.budget,
                progress=context.progress,
                tell=context.tell,
                beat=(sharing.LEASE_S / 4, claims.renew),
            )
            shares = sharing.rest(shares, context.tell)


def _job(run: PanelRun, seat: LlmState, share: Share, pace: RateLimit, watch: client.Watch | None) -> client.Job:
    return client.Job(
        name=f"judges.{seat.label}",
        tasks=run.table.tasks(seat, share),
        provider=provider(seat.settings),
        account=client.Account(**vars(seat.key), run=run.context.run_id),
        limits=_limits(run, seat),
        total=sum(len(each.passages) for each in share.work),
        pace=pace,
        ours=share.keeps,
        unit="pairs",
        watch=watch,
        canary=run.watched,
    )


def _limits(run: PanelRun, seat: LlmState) -> client.RequestLimits:
    return consent.limits(seat.settings, mixed_models=run.config.mixed_models)
