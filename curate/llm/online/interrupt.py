"""Ctrl-C while an event loop works: a call instead of an exception in the middle of things."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
