"""Client for the vendors' batch APIs: several judges side by side under one cap, until all is settled or a stop."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from curate.core.errors import Interrupted
from curate.core.protocols import PaidProgress, quiet
from curate.ledger import Ledger
from curate.ledger.batches import Batches
from curate.llm.budget import Budget
from curate.llm.client import Bill
from curate.llm.client.batch.judge_batches import JudgeBatches
from curate.llm.client.batch.records import BatchJob, PollingPolicy
from curate.llm.client.batch.session import Session
from curate.llm.client.halting import Halted
from curate.llm.client.heartbeat import Beat, beating
from curate.llm.client.interrupt import complete, interruptible
from curate.llm.client.purse import Purse

_NAMED = 5
"""Batches that a message names at most."""


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
    """Have every order answered by batches, all judges side by side; return what each came to.

    Open batches of the judges are collected first, those of other processes too. The cap of the `budget` holds for all
    orders together. `tell` is given one line per event, `beat` is as in `ask`. The asking ends early with
    ProviderError on a fatal answer or a batch that its vendor refuses as a whole, BudgetError at the cap, Interrupted
    on Ctrl-C, if replies name another model than before, or if a round gave nothing that can be read. Batches then go
    on at the vendors, and the next asking collects them. Ctrl-C while it is ending drops the step in flight.
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
    """All judges of a session, side by side."""

    session: Session
    running: list[asyncio.Task[Bill]] = field(default_factory=list)

    async def all(self, orders: Sequence[BatchJob], beat: Beat | None) -> list[Bill]:
        """Fill every order, or raise why not all could be."""
        seats, session = [JudgeBatches(self.session, order) for order in orders], self.session
        with session.purse.open(session.halt), interruptible(self.interrupt), beating(beat, session.halt):
            self.running = [asyncio.create_task(self._fill(seat)) for seat in seats]
            filled = await asyncio.gather(*self.running, return_exceptions=True)
        for order in orders:
            await order.provider.close()
        if session.stop is not None:
            self._leave([flight.batch_id for seat in seats for flight in seat.flights])
            raise session.stop
        return [each for each in filled if isinstance(each, Bill)]

    async def _fill(self, seat: JudgeBatches) -> Bill:
        try:
            return await seat.fill()
        except Halted:
            raise
        except BaseException as error:
            self.session.halt(error)
            raise

    def _leave(self, flights: Sequence[str]) -> None:
        if flights:
            names = ", ".join(flights[:_NAMED]) + (", ..." if len(flights) > _NAMED else "")
            self.session.tell(f"{len(flights)} batches go on at the vendors ({names}); the same command collects them")

    def interrupt(self) -> None:
        if self.session.stop is not None:
            for each in self.running:
                each.cancel()
        self.session.halt(
            Interrupted(
                "stopped; every answer that was collected is kept, batches go on at the vendors, and the same command "
                "collects them"
            )
        )
