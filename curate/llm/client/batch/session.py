"""Shared state of judges that are asked by batches: money, pace, and the first reason to stop."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from curate.core.protocols import PaidProgress
from curate.ledger import Ledger
from curate.ledger.batches import Batches
from curate.llm.budget import Budget
from curate.llm.client.batch.records import PollingPolicy
from curate.llm.client.halting import Haltable, Halted
from curate.llm.client.purse import Purse
from curate.system.retries import insist

Result = TypeVar("Result")


@dataclass(eq=False)
class Session(Haltable):
    """What the judges of one asking share; only its event loop touches it."""

    ledger: Ledger
    batches: Batches
    pace: PollingPolicy
    purse: Purse
    progress: PaidProgress
    tell: Callable[[str], None]

    @property
    def budget(self) -> Budget:
        """Return the money of the command."""
        return self.purse.budget

    async def breathe(self) -> None:
        """Let others run in the middle of long work; Halted if the asking ends."""
        await asyncio.sleep(0)
        if self.stop is not None:
            raise Halted

    async def insist(self, step: Callable[[], Awaitable[Result]], patience: int = 1) -> Result:
        """Return what a step gives; one that fails in passing is tried again after growing pauses."""
        return await insist(step, self.pace.attempts * patience, self.pace.first_s, self.pace.longest_s, self.pause)
