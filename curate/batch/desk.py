"""The one door to the batch APIs: several judges side by side under one cap, until all are settled or one must stop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from curate.ask import Bill
from curate.ask.beat import Beat, beating
from curate.ask.interrupt import interruptible
from curate.ask.purse import Halted, Purse
from curate.batch.records import Order, Pace
from curate.batch.seat import Seat
from curate.budget import Budget
from curate.errors import BudgetError, Interrupted, ProviderError
from curate.ledger import Ledger
from curate.ledger.batches import Batches
from curate.pauses import LONGEST_S, NAMELESS
from curate.protocols import PaidProgress, quiet

Result = TypeVar("Result")
_NAMED = 5
"""Batches that a message names at most."""


def ask_batches(
    orders: Sequence[Order],
    ledger: Ledger,
    *,
    budget: Budget | None = None,
    pace: Pace | None = None,
    progress: PaidProgress = quiet,
    tell: Callable[[str], None] = lambda _line: None,
    beat: Beat | None = None,
) -> list[Bill]:
    """Have every order answered by batches, all judges side by side; return what each came to.

    Open batches of the judges are collected first, whoever submitted them. The cap of the `budget` holds for all orders
    together. `tell` is given a line for every event, `beat` is as in `ask`. The asking ends early with ProviderError on
    a fatal answer or a batch that its vendor refuses as a whole, BudgetError at the cap, Interrupted on Ctrl-C, if
    replies name another model than before, or if a round gave nothing that can be read. Batches then go on at the
    vendors, and the next asking collects them. Ctrl-C while it is ending drops the step in flight.
    """
    unpriced = next((order.provider.name for order in orders if order.price is None), None)
    budget = budget or Budget()
    if budget.cap is not None and unpriced:
        raise BudgetError(f"{unpriced}: a cap cannot be kept without a price; give the price of the model")
    desk = Desk(ledger, Batches(ledger), pace or Pace(), Purse(budget, ledger), progress, tell)
    return asyncio.run(desk.all(orders, beat))


def no_batch(name: str) -> str:
    """Return the line for a judge that is asked online because its address offers no batch API."""
    return f"judges.{name}: its address offers no batch API (set batch: true if it does); asked online"


@dataclass
class Desk:
    """What the seats of one asking share; only its event loop touches it."""

    ledger: Ledger
    batches: Batches
    pace: Pace
    purse: Purse
    progress: PaidProgress
    tell: Callable[[str], None]
    stop: BaseException | None = None
    halted: asyncio.Event = field(default_factory=asyncio.Event)
    running: list[asyncio.Task[Bill]] = field(default_factory=list)

    @property
    def budget(self) -> Budget:
        """Return the money of the command."""
        return self.purse.budget

    async def all(self, orders: Sequence[Order], beat: Beat | None = None) -> list[Bill]:
        """Fill every order, or raise why not all could be."""
        seats = [Seat(self, order) for order in orders]
        with self.purse.open(self.halt), interruptible(self._interrupt), beating(beat, self.halt):
            self.running = [asyncio.create_task(self._fill(seat)) for seat in seats]
            filled = await asyncio.gather(*self.running, return_exceptions=True)
        for order in orders:
            await order.provider.close()
        if self.stop is not None:
            self._leave([flight.batch_id for seat in seats for flight in seat.flights])
            raise self.stop
        return [each for each in filled if isinstance(each, Bill)]

    def halt(self, why: BaseException) -> None:
        """Begin nothing more; the first reason stands."""
        self.stop = self.stop or why
        self.halted.set()

    async def pause(self, seconds: float) -> None:
        """Wait; Halted if the asking ends."""
        try:
            await asyncio.wait_for(self.halted.wait(), seconds)
        except TimeoutError:
            return
        raise Halted

    async def breathe(self) -> None:
        """Let others run in the middle of long work; Halted if the asking ends."""
        await asyncio.sleep(0)
        if self.stop is not None:
            raise Halted

    async def insist(self, step: Callable[[], Awaitable[Result]], patience: int = 1) -> Result:
        """Return what a step gives; one that fails in passing is tried again after growing pauses."""
        pause = self.pace.first_s
        for tries in range(1, self.pace.attempts * patience):
            try:
                return await step()
            except ProviderError as error:
                if error.fatal or error.useless or (error.unresolved and tries >= NAMELESS):
                    raise
                named = error.retry_after
            await self.pause(pause if named is None else min(named, LONGEST_S))
            pause = min(2 * pause, self.pace.longest_s)
        return await step()

    async def _fill(self, seat: Seat) -> Bill:
        try:
            return await seat.fill()
        except Halted:
            raise
        except BaseException as error:
            self.halt(error)
            raise

    def _leave(self, flights: Sequence[str]) -> None:
        if flights:
            names = ", ".join(flights[:_NAMED]) + (", ..." if len(flights) > _NAMED else "")
            self.tell(f"{len(flights)} batches go on at the vendors ({names}); the same command collects them")

    def _interrupt(self) -> None:
        if self.stop is not None:
            for each in self.running:
                each.cancel()
        self.halt(
            Interrupted(
                "stopped; every answer that was collected is kept, batches go on at the vendors, and the same command "
                "collects them"
            )
        )
