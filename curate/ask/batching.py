"""Batch judging: one process per judge, which first collects the batches that other processes left open."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from curate.ask import rating, sharing
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import LlmState
from curate.ask.sharing import Share
from curate.core.errors import RunFailed, UserError
from curate.ledger import Ledger
from curate.ledger.claims import Batch, Batches, Claims
from curate.llm import client
from curate.llm.client import batch
from curate.llm.client.requests import Task
from curate.llm.providers.batch import batch_provider
from curate.pipeline.stage import Context


def open_batches(ledger: Ledger, state: LlmState) -> list[Batch]:
    """Return the batches of a judge that are not collected yet."""
    return Batches(ledger).open(state.key.judge_digest, state.key.rubric_digest, state.key.replicate)


def refuse_open(run: PanelRun) -> None:
    """Raise UserError if batches of these judges are open and this run would ask online: that would pay twice."""
    if not (run.context.consent.batch or run.context.consent.offline):
        for state in run.asked():
            _refuse(state, open_batches(run.table.ledger, state))


def refuse_abandoned(claims: Claims, ledger: Ledger, state: LlmState) -> None:
    """Raise UserError if batches of a judge are open and the process that would collect them is gone."""
    batches = open_batches(ledger, state)
    if batches and claims.take([_turn(state)]):
        _refuse(state, batches)


def _refuse(state: LlmState, batches: Sequence[Batch]) -> None:
    if batches:
        raise UserError(
            f"judges.{state.name}: its vendor still works on {len(batches)} batches ({batches[0].batch_id}, ...); "
            "collect them with `curate judge --batch`"
        )


def in_batches(run: PanelRun) -> None:
    """Ask language models by their providers' batch APIs, where there are any: cheaper, slower.

    If another process is asking a judge by batches, wait for it, then collect the batches that it left open.
    """
    context, notified = run.context, set[str]()
    waiting = [state for state in run.paid() if _able(state, context)]
    while waiting:
        with Claims(run.table.ledger, sharing.owner(), sharing.LEASE_S) as claims:
            sharing.bury(claims)
            claimed = claims.take([_turn(state) for state in waiting])
            own_states = [state for state in waiting if _turn(state) in claimed]
            waiting = [state for state in waiting if _turn(state) not in claimed]
            for name in {state.name for state in waiting} - notified:
                context.tell(f"judges.{name}: another process asks it by batches; waiting for that one")
                notified.add(name)
            if own_states:
                _ask(run.at(*own_states), claims)
        if not own_states:
            time.sleep(sharing.PAUSE_S)


def _able(state: LlmState, context: Context) -> bool:
    """Return whether a judge can be asked by batches; notify the reason if not."""
    if batch_provider(state.settings) is None:
        context.tell(batch.no_batch(state.name))
        return False
    if context.consent.max_cost is not None and state.settings.price is None:
        context.tell(f"judges.{state.name}: without a price no cap can be kept for a batch; asked online")
        return False
    return True


def _ask(run: PanelRun, claims: Claims) -> None:
    """Ask the judges that this process claimed, for all prompts that no other process is asking."""
    table, context, states, orders = run.table, run.context, run.paid(), []
    for state in states:
        share = Share(table.ledger, claims, state.key, state.work, table.since)
        orders.append(_order(run, replace(state, work=list(share))))
        claims.renew()
    batch.ask_batches(
        orders,
        table.ledger,
        budget=context.consent.budget,
        progress=context.progress,
        tell=context.tell,
        beat=(sharing.LEASE_S / 4, partial(_renew, claims, {_turn(state) for state in states})),
    )


def _order(run: PanelRun, state: LlmState) -> batch.BatchJob:
    table, batch_client = run.table, batch_provider(state.settings)
    assert batch_client is not None

    def tasks() -> Iterator[Task]:
        return table.tasks(state, table.again(state).work)

    read = partial(rating.reading, state.judge, state.key)
    account = client.Account(**vars(state.key), run=run.context.run_id)
    failed, settings = partial(rating.failure, state.key), state.settings
    return batch.BatchJob(
        tasks,
        read,
        batch_client,
        account,
        failed,
        settings.price,
        run.config.mixed_models,
        settings.tokens_a_han,
        settings.batch_items,
        run.watch(state),
    )


def _renew(claims: Claims, turns: set[str]) -> None:
    """Renew the claims; RunFailed if another process took one over while this one slept."""
    if turns - claims.renew():
        raise RunFailed("this process stood still until another one took its batches over; the same command goes on")


def _turn(state: LlmState) -> str:
    """Return the name of the claim that a process holds while it asks a judge by batches."""
    key = state.key
    return f"batch:{key.judge_digest}:{key.rubric_digest}:{key.replicate}"
