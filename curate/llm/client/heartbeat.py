"""A function that is called periodically while requests are in flight, for example to renew claims."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
