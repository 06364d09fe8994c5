"""Ctrl-C while an event loop runs: a callback instead of an exception at any point."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
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
