"""Ctrl-C while an event loop works: a call instead of an exception in the middle of things."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")
LISTENING_S = 0.2
"""A thread that waits hears of Ctrl-C only when it wakes up, where the system gave the signal to another one."""


@contextmanager
def interruptible(pressed: Callable[[], None]) -> Iterator[None]:
    """Call `pressed` on Ctrl-C while the block lasts, where this is the main thread: only that one can."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, pressed)
    except (NotImplementedError, ValueError, RuntimeError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def complete(work: Coroutine[Any, Any, Result], pressed: Callable[[], None]) -> Result:
    """Return what a coroutine returns, as `asyncio.run` does; in a thread where this one has a loop that runs already.

    So it is in a notebook. `pressed` is called there on Ctrl-C, which raises KeyboardInterrupt in this thread while it
    waits; elsewhere the coroutine asks `interruptible` for that.
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
