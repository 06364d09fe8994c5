"""Money of a set of requests: reserved before anything is sent, shared with other processes under the same cap."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import cast

from curate.core.errors import BudgetError, DataError
from curate.ledger import Ledger
from curate.ledger.caps import LEASE_S, Caps
from curate.llm.budget import Budget, Hold
from curate.llm.client.halting import Halted
from curate.llm.client.heartbeat import beating
from curate.system.owners import gone, owner

PAUSE_S = 0.25
"""First pause in seconds between checks whether others released money; doubles up to LONGEST_S."""
LONGEST_S = 5.0


class Purse:
    """Budget shared with other processes; not thread-safe, used in one event loop."""

    def __init__(self, budget: Budget, ledger: Ledger) -> None:
        self.budget = budget
        self.news = asyncio.Condition()
        """Notified when money is released, and when a judge stops."""
        self.elsewhere = 0.0
        """Amount spent or reserved by other processes under this budget."""
        self.returning = False
        """Whether another process may release some of its reservation."""
        self._allowed = self._again = 0.0
        self._pause = PAUSE_S
        self._taking = asyncio.Lock()
        self._ledger, self._caps = ledger, cast("Caps | None", None)

    @contextmanager
    def open(self, halt: Callable[[BaseException], None]) -> Iterator[None]:
        """Take part in the shared budget within the block; unspent reservations are released at its end."""
        budget, cap = self.budget, self.budget.policy
        if cap.amount is None:
            yield
            return
        budget.member = budget.member or owner()
        scope = f"{budget.shared}:{cap.amount!r}:{cap.currency}"
        self._caps = caps = Caps(self._ledger, budget.member, scope, gone, budget.began)
        try:
            with beating((LEASE_S / 8, caps.stay), halt):
                yield
        finally:
            budget.began = caps.began
            if caps.began is not None:
                with suppress(DataError):  # an unreleased amount counts until this process ends
                    caps.leave(budget.spent)

    async def fits(self, amount: float) -> bool:
        """Return whether the budget covers an amount on top of what this and other processes have spent or reserved."""
        budget, cap = self.budget, self.budget.policy.amount
        if self._caps is None or cap is None or not amount:  # a model without a price does not count
            return True
        async with self._taking:
            if budget.spent + budget.held + amount <= self._allowed:
                return True
            if not budget.fits(amount):
                self.returning = False
                return False
            if time.monotonic() < self._again:
                return False
            room = await asyncio.to_thread(self._caps.take, cap, budget.spent, budget.held, amount)
            self._allowed, self.elsewhere, self.returning = room.allowed, room.elsewhere, room.returning
            if budget.spent + budget.held + amount <= self._allowed:
                self._pause = PAUSE_S
                return True
            self._again, self._pause = time.monotonic() + self._pause, min(2 * self._pause, LONGEST_S)
            return False

    async def hold(self, amount: float, who: str, stopped: Callable[[], object]) -> Hold:
        """Reserve an amount; near the limit wait for calls in flight, which mostly cost less than reserved.

        BudgetError, with `who` as subject, if nothing can be released any more; Halted if `stopped` meanwhile.
        """
        budget = self.budget
        async with self.news:
            while not stopped() and not await self.fits(amount):
                if not budget.flying and not self.returning:
                    raise self.exceeded(who, "call")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.news.wait(), self._pause if self.returning else None)
        if stopped():
            raise Halted
        return budget.hold(amount)

    async def release(self, hold: Hold) -> None:
        """Release the reservation of a completed call, and wake calls that wait for room in the budget."""
        hold.turn(0.0)
        self._again = 0.0
        async with self.news:
            self.news.notify_all()

    def exceeded(self, who: str, what: str) -> BudgetError:
        """Return the error for a request that may exceed the budget."""
        return self.budget.policy.exceeded(who, what, self.budget.spent, self.elsewhere)
