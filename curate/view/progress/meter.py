"""Rate of a step over the last seconds, and the remaining time at this rate."""

from collections import deque

WINDOW_S = 20.0
"""Seconds of the moving window: a slow start, or cached units, soon drop out."""
LEAST_S = 1.0
"""Minimum seconds for a rate; less is noise."""


class RateMeter:
    """Moving rate of one step; units before the first report do not count."""

    def __init__(self, done: int, now: float) -> None:
        self._looks = deque([(now, done)])

    def look(self, done: int, now: float) -> None:
        """Record the number of units at a time."""
        if done == self._looks[-1][1]:
            return
        self._looks.append((now, done))
        while len(self._looks) > 2 and self._looks[1][0] <= now - WINDOW_S:
            self._looks.popleft()

    def rate(self, now: float) -> float | None:
        """Return units per second, None if unknown.

        A pause lowers the rate once it is longer than the time between first and last report.
        """
        (first, first_done), (last, done) = self._looks[0], self._looks[-1]
        seconds = max(last - first, now - last)
        return (done - first_done) / seconds if done > first_done and seconds >= LEAST_S else None

    def seconds_left(self, total: int, now: float) -> float | None:
        """Return the remaining seconds at this rate; None if unknown."""
        rate = self.rate(now)
        return None if rate is None else max(total - self._looks[-1][1], 0) / rate
