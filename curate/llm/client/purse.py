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
"""Between two looks at what others gave back, at first; each is twice as long as the one before."""
LONGEST_S = 5.0


class Purse:
    """What an asking may spend; only its event loop touches it."""

    def __init__(self, budget: Budget, ledger: Ledger) -> None:
        self.budget = budget
        self.news = asyncio.Condition()
        """Notified when some of the money came free, and when an asking ends."""
        self.elsewhere = 0.0
        """What other processes under this cap have spent or hold."""
        self.returning = False
        """Whether some of that may come back."""
        self._allowed = self._again = 0.0
        self._pause = PAUSE_S
        self._taking = asyncio.Lock()
        self._ledger, self._caps = ledger, cast("Caps | None", None)

    @contextmanager
    def open(self, halt: Callable[[BaseException], None]) -> Iterator[None]:
        """Be seen by the other processes while the block lasts, and give back in the end what is not spent."""
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
                with suppress(DataError):  # what is not given back counts until this process is gone
                    caps.leave(budget.spent)

    async def fits(self, amount: float) -> bool:
        """Say whether the cap leaves room for an amount beside all that is spent or held, here and elsewhere."""
        budget, cap = self.budget, self.budget.policy.amount
        if self._caps is None or cap is None or not amount:  # a model without a price is outside of any cap
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
        """Hold an amount; near the cap wait for calls in flight, which mostly come to less than is held for them.

        BudgetError, in the name of who asks, if there is no room and nothing that may come back; Halted if the asking
        ends meanwhile.
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
        """Give back what was held for a call that is over, and tell those who wait."""
        hold.turn(0.0)
        self._again = 0.0
        async with self.news:
            self.news.notify_all()

    def exceeded(self, who: str, what: str) -> BudgetError:
        """Return the error of a request that may pass the cap."""
        return self.budget.policy.exceeded(who, what, self.budget.spent, self.elsewhere)
