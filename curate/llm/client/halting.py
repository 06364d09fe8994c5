"""Early end of an asking, or of one judge's part in it: the first reason stands, and nothing more is sent."""

import asyncio
from dataclasses import dataclass, field


class Halted(Exception):
    """A request is not sent: the asking ended while it waited for its turn, or another process has taken it over."""


@dataclass(eq=False)
class Haltable:
    """What can be ended early, and waits no longer then."""

    stop: BaseException | None = field(default=None, init=False)
    halted: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def halt(self, why: BaseException) -> None:
        """Send nothing more; the first reason stands."""
        self.stop = self.stop or why
        self.halted.set()

    async def pause(self, seconds: float) -> None:
        """Wait; Halted if the end comes meanwhile."""
        try:
            await asyncio.wait_for(self.halted.wait(), seconds)
        except TimeoutError:
            return
        raise Halted
