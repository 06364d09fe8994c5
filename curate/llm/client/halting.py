"""Early stop of requests, of all judges or of one: the first reason counts, and nothing more is sent."""

import asyncio
from dataclasses import dataclass, field


class Halted(Exception):
    """A request is not sent: requests were stopped while it waited, or another process has taken it over."""


@dataclass(eq=False)
class Haltable:
    """Cancellable wait: a stop ends all pauses."""

    stop: BaseException | None = field(default=None, init=False)
    halted: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def halt(self, why: BaseException) -> None:
        """Stop; the first reason counts."""
        self.stop = self.stop or why
        self.halted.set()

    async def pause(self, seconds: float) -> None:
        """Wait so many seconds; Halted if stopped meanwhile."""
        try:
            await asyncio.wait_for(self.halted.wait(), seconds)
        except TimeoutError:
            return
        raise Halted
