"""Running steps with rates and remaining times, and their output as plain lines or JSON."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from curate.core.progress import WORKING
from curate.view import output_mode
from curate.view.progress import wording

WINDOW_S = 20.0
"""Length in seconds of the moving window for rates; a slow start, or units from a cache, soon leave it."""
LEAST_S = 1.0
"""Minimum time in seconds from which a rate is computed; less is noise."""


class RateMeter:
    """Moving rate of one step; units completed before the first report are excluded."""

    def __init__(self, done: int, now: float) -> None:
        self._looks = deque([(now, done)])

    def look(self, done: int, now: float) -> None:
        """Record the number of units completed at the time `now`."""
        if done == self._looks[-1][1]:
            return
        self._looks.append((now, done))
        while len(self._looks) > 2 and self._looks[1][0] <= now - WINDOW_S:
            self._looks.popleft()

    def rate(self, now: float) -> float | None:
        """Return units per second; None if unknown.

        A pause lowers the rate once it is longer than the time between the first and last report in the window.
        """
        (first, first_done), (last, done) = self._looks[0], self._looks[-1]
        seconds = max(last - first, now - last)
        return (done - first_done) / seconds if done > first_done and seconds >= LEAST_S else None

    def seconds_left(self, total: int, now: float) -> float | None:
        """Return the remaining seconds at the current rate; None if unknown."""
        rate = self.rate(now)
        return None if rate is None else max(total - self._looks[-1][1], 0) / rate


# The running steps, with their last reports and rates.

Clock = Callable[[], float]
ENDED_S = 0.1
"""Minimum seconds between two reported ends of the same step, because some steps run a thousand times."""


@dataclass
class ShownStep:
    """A running step as last reported."""

    stage: str
    label: str
    unit: str
    total: int
    done: int
    money: str
    began: float
    """Time of the first report."""
    at: float
    """Time of the last report."""
    meter: RateMeter

    @property
    def key(self) -> tuple[str, str]:
        """Return the key of the step: (stage, label)."""
        return self.stage, self.label

    @property
    def whole(self) -> bool:
        """Return whether the step has at most one unit, so that only its duration is known."""
        return self.total <= 1

    @property
    def name(self) -> str:
        """Return stage and label."""
        return f"{self.stage}: {self.label}" if self.stage else self.label


class StepBoard:
    """All running steps; `report` is thread-safe and fast."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self._steps: dict[tuple[str, str], ShownStep] = {}
        self._lock = threading.Lock()
        self._stage = ""
        self._ended: dict[tuple[str, str], float] = {}

    def report(self, label: str, total: int, done: int, money: str = "") -> ShownStep | None:
        """Record the progress of a step; return the step if it has ended and its end should be reported, else None."""
        now, stage = self.clock(), getattr(label, "stage", "")
        key = (stage, str(label))
        with self._lock:
            step = self._steps.get(key)
            if step is None or done < step.done:
                if stage and stage != self._stage:  # forget unfinished steps of an earlier stage
                    self._stage = stage
                    self._steps = {
                        name: running for name, running in self._steps.items() if running.stage in (stage, "")
                    }
                unit = getattr(label, "unit", "")
                step = ShownStep(stage, str(label), unit, total, done, money, now, now, RateMeter(done, now))
                self._steps[key] = step
            step.total, step.done, step.money, step.at = total, done, money, now
            return self._end(step, now) if done >= total else None

    def steps(self) -> Sequence[ShownStep]:
        """Return the running steps, oldest first, with updated rates.

        The step of a whole stage is included only while no other step of it runs; its time counts from the end of the
        last one.
        """
        with self._lock:
            for step in self._steps.values():
                step.meter.look(step.done, step.at)
            exact = [step for step in self._steps.values() if step.label != WORKING]
            return exact or list(self._steps.values())

    def _end(self, step: ShownStep, now: float) -> ShownStep | None:
        del self._steps[step.key]
        if working := self._steps.get((step.stage, WORKING)):
            working.began = now
        step.meter.look(step.done, step.at)
        if now - self._ended.get(step.key, -ENDED_S) < ENDED_S:
            return None
        self._ended[step.key] = now
        return step


# Progress without a terminal: a plain line every ten seconds, or one JSON object per line for machines.

EVERY_S = 10.0
"""Seconds between two plain lines for the same step."""
JSON_EVERY_S = 1.0
"""Seconds between two JSON objects for the same step."""


def plain(step: ShownStep, now: float) -> str:
    """Return a step as one line: `judge: asking gpt-4o: 3,200 of 20,000 pairs, 41/s, about 6 min left, CNY 1.20`."""
    if step.whole:
        return f"{step.name}: {wording.elapsed(now - step.began)} so far"
    rate, seconds_left = step.meter.rate(now), step.meter.seconds_left(step.total, now)
    cells = [wording.count(step.done, step.total, step.unit)]
    cells += [] if rate is None else [wording.rate(rate, step.unit)]
    cells += [] if seconds_left is None else [wording.left(seconds_left)]
    cells += [step.money] if step.money else []
    return f"{step.name}: {', '.join(cells)}"


def event(step: ShownStep, now: float) -> dict[str, Any]:
    """Return a step as a JSON event `progress`; unknown values are None."""
    rate, seconds_left = (
        (None, None) if step.whole else (step.meter.rate(now), step.meter.seconds_left(step.total, now))
    )
    return {
        "event": "progress",
        "stage": step.stage or None,
        "label": step.label,
        "unit": step.unit or None,
        "done": step.done,
        "total": step.total,
        "rate": None if rate is None else float(f"{rate:.4g}"),
        "seconds_left": None if seconds_left is None else round(seconds_left),
        "cost": step.money or None,
    }


class _Due:
    """Selection of the steps that are due for another line, after `every` seconds."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._last: dict[tuple[str, str, float], float] = {}

    def of(self, steps: Sequence[ShownStep], now: float) -> list[ShownStep]:
        """Return the steps that are due for a line, and restart their waiting time."""
        keys = {(*step.key, step.began): step for step in steps}
        self._last = {key: self._last.get(key, step.began) for key, step in keys.items()}
        due = [key for key, last in self._last.items() if now - last >= self._every]
        self._last |= dict.fromkeys(due, now)
        return [keys[key] for key in due]


class PlainLines:
    """Progress as plain lines, for logs."""

    period_s = 0.5

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write, self._due = write, _Due(EVERY_S)

    def draw(self, steps: Sequence[ShownStep], now: float) -> None:
        """Print a line for each step without one in the last `EVERY_S` seconds."""
        for step in self._due.of(steps, now):
            self._write(plain(step, now))

    def tell(self, line: str) -> None:
        """Print a notice."""
        self._write(line)

    def ended(self, step: ShownStep, now: float) -> None:
        """Print nothing; the line of the next step shows that this one has ended."""

    def close(self) -> None:
        """Do nothing."""


class JsonLines:
    """Progress as JSON events on standard output."""

    period_s = 0.5

    def __init__(self, write: Callable[[dict[str, Any]], None] = output_mode.emit) -> None:
        self._write, self._due = write, _Due(JSON_EVERY_S)

    def draw(self, steps: Sequence[ShownStep], now: float) -> None:
        """Emit an event for each step without one in the last `JSON_EVERY_S` seconds."""
        for step in self._due.of(steps, now):
            self._write(event(step, now))

    def tell(self, line: str) -> None:
        """Emit a notice as an event."""
        self._write({"event": "line", "text": line})

    def ended(self, step: ShownStep, now: float) -> None:
        """Emit the last event of a step."""
        self._write(event(step, now))

    def close(self) -> None:
        """Do nothing."""
