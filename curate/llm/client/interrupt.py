"""Ctrl-C, early stop and heartbeat of requests under way."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

Result = TypeVar("Result")
LISTENING_S = 0.2
"""Seconds between wake-ups of a waiting thread, which otherwise may not notice a Ctrl-C that another one got."""


@contextmanager
def interruptible(pressed: Callable[[], None]) -> Iterator[None]:
    """Call `pressed` on Ctrl-C within the block; only in the main thread, which alone can handle signals."""
    loop, earlier_handler = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, pressed)
    except (NotImplementedError, ValueError, RuntimeError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, earlier_handler)


def complete(work: Coroutine[Any, Any, Result], pressed: Callable[[], None]) -> Result:
    """Return the result of a coroutine, like `asyncio.run`; in another thread if this one runs a loop (notebook).

    There Ctrl-C raises KeyboardInterrupt in this thread, which then calls `pressed`; elsewhere the coroutine uses
    `interruptible` itself.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    loop = asyncio.new_event_loop()

    def run() -> Result:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(work)

    with ThreadPoolExecutor(1, "curate-asking") as thread:
        result = thread.submit(copy_context().run, run)
        while not result.done():
            try:
                wait([result], LISTENING_S)
            except KeyboardInterrupt:
                with suppress(RuntimeError):  # the loop was closed meanwhile: the result is there
                    loop.call_soon_threadsafe(pressed)
        return result.result()


# Early stop of requests, of all judges or of one: the first reason counts, and nothing more is sent.


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


# Heartbeat beside requests under way, such as the renewal of claims.

Beat = tuple[float, Callable[[], object]]
"""Seconds between two calls of a function, and the function."""


@contextmanager
def beating(beat: Beat | None, halt: Callable[[BaseException], None]) -> Iterator[None]:
    """Call a function periodically, in a thread, while the block runs; its exceptions are passed to `halt`."""
    running = asyncio.create_task(_beat(*beat, halt)) if beat else None
    try:
        yield
    finally:
        if running is not None:
            running.cancel()


async def _beat(seconds: float, step: Callable[[], object], halt: Callable[[BaseException], None]) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(step)
        except Exception as error:  # noqa: BLE001 - raised once what is in flight is written
            halt(error)
