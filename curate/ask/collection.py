"""Collection of a panel's ratings: from heuristics, and from language models by batches and online."""

from functools import partial

import polars as pl

from curate.ask import batching, consent, rating, sharing
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import HeuristicState, LlmState
from curate.ask.sharing import Share
from curate.ledger.claims import Claims
from curate.llm import client
from curate.llm.client.limits import RateLimit
from curate.llm.providers import provider

Wanted = dict[str, pl.DataFrame]
"""Judge -> the pairs that a cascade asked it for; empty without a cascade."""


def collect(run: PanelRun) -> Wanted:
    """Collect all missing ratings; return judge -> pairs that a cascade asked it for, {} without a cascade."""
    pairs_by_judge = Wanted()
    if run.config.cascade is None:
        rate(run)
        return pairs_by_judge
    for state, pairs in run.turns():
        pairs_by_judge[state.name] = pairs
        rate(run.at(state))
    return pairs_by_judge


def rate(run: PanelRun) -> None:
    """Collect the missing ratings of the judges, those of the language models concurrently."""
    table, context = run.table, run.context
    consent.need_masked(run.seats, context)
    for state in run.seats:
        if isinstance(state, HeuristicState):
            rating.rate(state.judge, state.work, table.ledger, state.key, table.rubric.scale, context.progress)
    if context.consent.batch:
        waiting = [state for state in run.paid() if state.work or batching.open_batches(table.ledger, state)]
        batching.in_batches(run.at(*waiting))
        run = run.at(*(table.again(state) for state in waiting))
    _online(run.at(*run.asked()))


def _online(run: PanelRun) -> None:
    """Ask language models online for their missing ratings, sharing the prompts with other processes."""
    table, context, states = run.table, run.context, run.paid()
    with Claims(table.ledger, sharing.owner(), sharing.LEASE_S) as claims:
        sharing.bury(claims)
        checks = [partial(batching.refuse_abandoned, claims, table.ledger, state) for state in states]
        shares = [
            Share(table.ledger, claims, state.key, state.work, table.since, check)
            for state, check in zip(states, checks, strict=True)
        ]
        paces = [client.pace(_limits(run, state), table.ledger, state.key.judge_digest) for state in states]
        watches = [run.watch(state) for state in states]
        while shares:
            client.ask(
                [_job(run, *arguments) for arguments in zip(states, shares, paces, watches, strict=True)],
                table.ledger,
                budget=context.consent.budget,
                progress=context.progress,
                tell=context.tell,
                beat=(sharing.LEASE_S / 4, claims.renew),
            )
            shares = sharing.rest(shares, context.tell)


def _job(run: PanelRun, state: LlmState, share: Share, pace: RateLimit, watch: client.Watch | None) -> client.Job:
    return client.Job(
        name=f"judges.{state.label}",
        tasks=run.table.tasks(state, share),
        provider=provider(state.settings),
        account=client.Account(**vars(state.key), run=run.context.run_id),
        limits=_limits(run, state),
        total=sum(len(prompt.passages) for prompt in share.work),
        pace=pace,
        ours=share.keeps,
        unit="pairs",
        watch=watch,
        canary=run.watched,
    )


def _limits(run: PanelRun, state: LlmState) -> client.RequestLimits:
    return consent.limits(state.settings, mixed_models=run.config.mixed_models)
