"""Time-ordered unique ids made by the writer, so that no writer waits for a database."""

import secrets
import threading
import time

PER_MS = 1 << 16
"""Maximum ids per millisecond; further ones use the next millisecond."""


class TimeOrderedIds:
    """Ids of one writer as text that sorts by time: milliseconds, number within them, and the writer's 40 random bits.

    Within one writer each is larger than the one before, even if the clock goes back. Between machines the order
    is that of their clocks, and the same on all of them.
    """

    def __init__(self) -> None:
        self._writer = secrets.token_hex(5)
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> str:
        """Return a new id of 26 characters."""
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1_000_000 * PER_MS)
            return f"{self._last:016x}{self._writer}"


def first_of(second: float) -> str:
    """Return a prefix that sorts before every id made since a time, in seconds of the epoch."""
    return f"{int(second * 1000) * PER_MS:016x}"


def second_of(name: str) -> float:
    """Return the time at which an id was made, in seconds of the epoch."""
    return int(name[:16], 16) / PER_MS / 1000
