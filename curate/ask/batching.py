"""Judging by batches: one process per judge, which first collects what others left open."""

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
from curate.ledger.batches import Batch, Batches
from curate.ledger.claims import Claims
from curate.llm import client
from curate.llm.client import batch
from curate.llm.client.requests import Task
from curate.llm.providers.batch import batch_provider
from curate.pipeline.stage import Context


def open_batches(ledger: Ledger, seat: LlmState) -> list[Batch]:
    """Return the batches of a judge that are not collected yet."""
    return Batches(ledger).open(seat.key.judge_digest, seat.key.rubric_digest, seat.key.replicate)


def refuse_open(run: PanelRun) -> None:
    """Stop if a vendor works on batches of these judges and this run would ask online: they would be paid twice."""
    if not (run.context.consent.batch or run.context.consent.offline):
        for seat in run.asked():
            _refuse(seat, open_batches(run.table.ledger, seat))


def refuse_abandoned(claims: Claims, ledger: Ledger, seat: LlmState) -> None:
    """Stop if a vendor works on batches of a judge and the process that would collect them is gone."""
    found = open_batches(ledger, seat)
    if found and claims.take([_turn(seat)]):
        _refuse(seat, found)


def _refuse(seat: LlmState, found: Sequence[Batch]) -> None:
    if found:
        raise UserError(
            f"judges.{seat.name}: its vendor still works on {len(found)} batches ({found[0].batch_id}, ...); "
            "collect them with `curate judge --batch`"
        )


def in_batches(run: PanelRun) -> None:
    """Ask language models by batches where their vendors have them, for less money and later answers.

    A judge that another process asks by batches is waited for: what that one leaves open is collected here.
    """
    context, told = run.context, set[str]()
    waiting = [seat for seat in run.paid() if _able(seat, context)]
    while waiting:
        with Claims(run.table.ledger, sharing.owner(), sharing.LEASE_S) as claims:
            sharing.bury(claims)
            taken = claims.take([_turn(seat) for seat in waiting])
            mine = [seat for seat in waiting if _turn(seat) in taken]
            waiting = [seat for seat in waiting if _turn(seat) not in taken]
            for name in {seat.name for seat in waiting} - told:
                context.tell(f"judges.{name}: another process asks it by batches; waiting for that one")
                told.add(name)
            if mine:
                _ask(run.at(*mine), claims)
        if not mine:
            time.sleep(sharing.PAUSE_S)


def _able(seat: LlmState, context: Context) -> bool:
    """Say whether a judge can be asked by batches; if not, tell why."""
    if batch_provider(seat.settings) is None:
        context.tell(batch.no_batch(seat.name))
        return False
    if context.consent.max_cost is not None and seat.settings.price is None:
        context.tell(f"judges.{seat.name}: without a price no cap can be kept for a batch; asked online")
        return False
    return True


def _ask(run: PanelRun, claims: Claims) -> None:
    """Ask judges whose turn this process has, for all prompts that no other process is asking."""
    table, context, seats, orders = run.table, run.context, run.paid(), []
    for seat in seats:
        share = Share(table.ledger, claims, seat.key, seat.work, table.since)
        orders.append(_order(run, replace(seat, work=list(share))))
        claims.renew()
    batch.ask_batches(
        orders,
        table.ledger,
        budget=context.consent.budget,
        progress=context.progress,
        tell=context.tell,
        beat=(sharing.LEASE_S / 4, partial(_renew, claims, {_turn(seat) for seat in seats})),
    )


def _order(run: PanelRun, seat: LlmState) -> batch.BatchJob:
    table, asked = run.table, batch_provider(seat.settings)
    assert asked is not None

    def tasks() -> Iterator[Task]:
        return table.tasks(seat, table.again(seat).work)

    read = partial(rating.reading, seat.judge, seat.key)
    account = client.Account(**vars(seat.key), run=run.context.run_id)
    failed, settings = partial(rating.failure, seat.key), seat.settings
    return batch.BatchJob(
        tasks,
        read,
        asked,
        account,
        failed,
        settings.price,
        run.config.mixed_models,
        settings.tokens_a_han,
        settings.batch_items,
        run.watch(seat),
    )


def _renew(claims: Claims, turns: set[str]) -> None:
    """Keep what is claimed; RunFailed if this process slept until its turn was another's."""
    if turns - claims.renew():
        raise RunFailed("this process stood still until another one took its batches over; the same command goes on")


def _turn(seat: LlmState) -> str:
    """Return the claim of who asks a judge by batches."""
    key = seat.key
    return f"batch:{key.judge_digest}:{key.rubric_digest}:{key.replicate}"
