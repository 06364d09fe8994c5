"""Client for the vendors' batch APIs: several judges concurrently under one budget."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from curate.core.errors import Interrupted
from curate.core.protocols import PaidProgress, quiet
from curate.ledger import Ledger
from curate.ledger.batches import Batches
from curate.llm.budget import Budget
from curate.llm.client import Bill
from curate.llm.client.accounting import Purse
from curate.llm.client.batch.judge_batches import JudgeBatches
from curate.llm.client.batch.session import BatchJob, PollingPolicy, Session
from curate.llm.client.interrupt import Beat, Halted, beating, complete, interruptible

_NAMED = 5
"""Maximum batches that a message names."""


def ask_batches(
    orders: Sequence[BatchJob],
    ledger: Ledger,
    *,
    budget: Budget | None = None,
    pace: PollingPolicy | None = None,
    progress: PaidProgress = quiet,
    tell: Callable[[str], None] = lambda _line: None,
    beat: Beat | None = None,
) -> list[Bill]:
    """Run every order by batches, all judges concurrently; return their bills in order.

    Open batches of the judges are collected first, including those of other processes. The `budget` holds for all
    orders together. `tell` gets one line per event, `beat` is as in `ask`. Errors: ProviderError on a fatal answer or a
    batch that its vendor refuses as a whole, BudgetError at the budget, Interrupted on Ctrl-C, RunFailed if replies
    name another model than before, Unreadable if a round gave nothing readable. Batches then continue at the vendors,
    and the next call collects them. A second Ctrl-C drops the step in flight.
    """
    budget = budget or Budget()
    budget.admit({order.provider.name: order.price for order in orders})
    session = Session(ledger, Batches(ledger), pace or PollingPolicy(), Purse(budget, ledger), progress, tell)
    asking = _Asking(session)
    return complete(asking.all(orders, beat), asking.interrupt)


def no_batch(name: str) -> str:
    """Return the line for a judge that is asked online because its address offers no batch API."""
    return f"judges.{name}: its address offers no batch API (set batch: true if it does); asked online"


@dataclass
class _Asking:
    """One call of `ask_batches`: all judges of a session."""

    session: Session
    running: list[asyncio.Task[Bill]] = field(default_factory=list)

    async def all(self, orders: Sequence[BatchJob], beat: Beat | None) -> list[Bill]:
        """Fill every order, or raise the reason why not."""
        judges, session = [JudgeBatches(self.session, order) for order in orders], self.session
        with session.purse.open(session.halt), interruptible(self.interrupt), beating(beat, session.halt):
            self.running = [asyncio.create_task(self._fill(judge)) for judge in judges]
            filled = await asyncio.gather(*self.running, return_exceptions=True)
        for order in orders:
            await order.provider.close()
        if session.stop is not None:
            batch_ids = [flight.batch_id for judge in judges for flight in judge.flights]
            if batch_ids:
                names = ", ".join(batch_ids[:_NAMED]) + (", ..." if len(batch_ids) > _NAMED else "")
                session.tell(f"{len(batch_ids)} batches go on at the vendors ({names}); the same command collects them")
            raise session.stop
        return [bill for bill in filled if isinstance(bill, Bill)]

    async def _fill(self, judge: JudgeBatches) -> Bill:
        try:
            return await judge.fill()
        except Halted:
            raise
        except BaseException as error:
            self.session.halt(error)
            raise

    def interrupt(self) -> None:
        if self.session.stop is not None:
            for task in self.running:
                task.cancel()
        self.session.halt(
            Interrupted(
                "stopped; every answer that was collected is kept, batches go on at the vendors, and the same command "
                "collects them"
            )
        )
