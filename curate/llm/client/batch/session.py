"""Shared state of judges that are asked by batches: money, pace, and the first reason to stop."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from curate.core.protocols import PaidProgress
from curate.ledger import Ledger
from curate.ledger.batches import Batches
from curate.llm.budget import Budget
from curate.llm.client.accounting import Purse
from curate.llm.client.batch.records import PollingPolicy
from curate.llm.client.interrupt import Haltable, Halted
from curate.system.retries import insist

Result = TypeVar("Result")


@dataclass(eq=False)
class Session(Haltable):
    """State shared by the judges of one call; not thread-safe, used in one event loop."""

    ledger: Ledger
    batches: Batches
    pace: PollingPolicy
    purse: Purse
    progress: PaidProgress
    tell: Callable[[str], None]

    @property
    def budget(self) -> Budget:
        """Return the budget of the command."""
        return self.purse.budget

    async def breathe(self) -> None:
        """Yield to other tasks during long work; Halted if the session stops."""
        await asyncio.sleep(0)
        if self.stop is not None:
            raise Halted

    async def insist(self, step: Callable[[], Awaitable[Result]], patience: int = 1) -> Result:
        """Return the result of a step; transient errors are retried after growing pauses."""
        return await insist(step, self.pace.attempts * patience, self.pace.first_s, self.pace.longest_s, self.pause)
