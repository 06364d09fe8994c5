"""The rate of a step over the last seconds, and the time that is left at this rate."""

from collections import deque

WINDOW_S = 20.0
"""The rate is that of so many seconds: a start that was slow, or units that a cache held, are soon forgotten."""
LEAST_S = 1.0
"""Seconds below which a rate is no more than noise."""


class RateMeter:
    """Moving rate of one step; units done before the first look count for nothing."""

    def __init__(self, done: int, now: float) -> None:
        self._looks = deque([(now, done)])

    def look(self, done: int, now: float) -> None:
        """Take note of how many units were done at a moment."""
        if done == self._looks[-1][1]:
            return
        self._looks.append((now, done))
        while len(self._looks) > 2 and self._looks[1][0] <= now - WINDOW_S:
            self._looks.popleft()

    def rate(self, now: float) -> float | None:
        """Return units per second, None if unknown.

        A pause lowers the rate once it is longer than the time that the units took.
        """
        (first, before), (last, done) = self._looks[0], self._looks[-1]
        seconds = max(last - first, now - last)
        return (done - before) / seconds if done > before and seconds >= LEAST_S else None

    def seconds_left(self, total: int, now: float) -> float | None:
        """Return the seconds that the rest takes at this rate, None if unknown."""
        rate = self.rate(now)
        return None if rate is None else max(total - self._looks[-1][1], 0) / rate
