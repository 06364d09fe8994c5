"""The rate of a step over the last seconds, and the time that is left at this rate."""

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


# The steps that are under way: what each last said of itself, and its rate.

Clock = Callable[[], float]
ENDED_S = 0.1
"""Seconds between two ends of one step that are handed on: some steps are begun a thousand times."""


@dataclass
class ShownStep:
    """One step as it was last reported."""

    stage: str
    label: str
    unit: str
    total: int
    done: int
    money: str
    began: float
    """When it was first reported."""
    at: float
    """When it was last reported."""
    meter: RateMeter

    @property
    def key(self) -> tuple[str, str]:
        """Return what identifies the step."""
        return self.stage, self.label

    @property
    def whole(self) -> bool:
        """Whether it is of one piece, so that nothing is known of it but the time that it took."""
        return self.total <= 1

    @property
    def name(self) -> str:
        """Return stage and label."""
        return f"{self.stage}: {self.label}" if self.stage else self.label


class StepBoard:
    """All steps under way; `report` may be called from any thread, as often as one likes."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self._steps: dict[tuple[str, str], ShownStep] = {}
        self._lock = threading.Lock()
        self._stage = ""
        self._ended: dict[tuple[str, str], float] = {}

    def report(self, label: str, total: int, done: int, money: str = "") -> ShownStep | None:
        """Take note of how far a step is; return it if it ended and others are to hear of it."""
        now, stage = self.clock(), getattr(label, "stage", "")
        key = (stage, str(label))
        with self._lock:
            step = self._steps.get(key)
            if step is None or done < step.done:
                self._enter(stage)
                unit = getattr(label, "unit", "")
                step = ShownStep(stage, str(label), unit, total, done, money, now, now, RateMeter(done, now))
                self._steps[key] = step
            step.total, step.done, step.money, step.at = total, done, money, now
            return self._end(step, now) if done >= total else None

    def steps(self) -> Sequence[ShownStep]:
        """Return the steps under way, the oldest first, after a look at the rate of each.

        A stage that is working is among them only where none of its steps is: its time is that since the last one.
        """
        with self._lock:
            for step in self._steps.values():
                step.meter.look(step.done, step.at)
            exact = [step for step in self._steps.values() if step.label != WORKING]
            return exact or list(self._steps.values())

    def _enter(self, stage: str) -> None:
        """Forget what an earlier stage left unfinished."""
        if stage and stage != self._stage:
            self._stage = stage
            self._steps = {key: step for key, step in self._steps.items() if step.stage in (stage, "")}

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
"""Seconds between two plain lines on one step."""
JSON_EVERY_S = 1.0
"""Seconds between two JSON objects on one step."""


def plain(step: ShownStep, now: float) -> str:
    """Return a step as one line: `judge: asking gpt-4o: 3,200 of 20,000 pairs, 41/s, about 6 min left, CNY 1.20`."""
    if step.whole:
        return f"{step.name}: {wording.elapsed(now - step.began)} so far"
    rate, left = step.meter.rate(now), step.meter.seconds_left(step.total, now)
    parts = [wording.count(step.done, step.total, step.unit)]
    parts += [] if rate is None else [wording.rate(rate, step.unit)]
    parts += [] if left is None else [wording.left(left)]
    parts += [step.money] if step.money else []
    return f"{step.name}: {', '.join(parts)}"


def event(step: ShownStep, now: float) -> dict[str, Any]:
    """Return a step as the event `progress`; what is unknown is None."""
    rate, left = (None, None) if step.whole else (step.meter.rate(now), step.meter.seconds_left(step.total, now))
    return {
        "event": "progress",
        "stage": step.stage or None,
        "label": step.label,
        "unit": step.unit or None,
        "done": step.done,
        "total": step.total,
        "rate": None if rate is None else float(f"{rate:.4g}"),
        "seconds_left": None if left is None else round(left),
        "cost": step.money or None,
    }


class _Due:
    """Which steps have waited long enough for their next line."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._last: dict[tuple[str, str, float], float] = {}

    def of(self, steps: Sequence[ShownStep], now: float) -> list[ShownStep]:
        """Return these steps, and count their time from now."""
        keys = {(*step.key, step.began): step for step in steps}
        self._last = {key: self._last.get(key, step.began) for key, step in keys.items()}
        due = [key for key, last in self._last.items() if now - last >= self._every]
        self._last |= dict.fromkeys(due, now)
        return [keys[key] for key in due]


class PlainLines:
    """Lines for people who read a log."""

    period_s = 0.5

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write, self._due = write, _Due(EVERY_S)

    def draw(self, steps: Sequence[ShownStep], now: float) -> None:
        """Print a line on each step that has had none for ten seconds."""
        for step in self._due.of(steps, now):
            self._write(plain(step, now))

    def tell(self, line: str) -> None:
        """Print a line of news."""
        self._write(line)

    def ended(self, step: ShownStep, now: float) -> None:
        """Print nothing of a step that has ended: what comes next says so."""

    def close(self) -> None:
        """Leave everything as it is."""


class JsonLines:
    """Events for machines, on standard output."""

    period_s = 0.5

    def __init__(self, write: Callable[[dict[str, Any]], None] = output_mode.emit) -> None:
        self._write, self._due = write, _Due(JSON_EVERY_S)

    def draw(self, steps: Sequence[ShownStep], now: float) -> None:
        """Emit an event on each step that has had none for a second."""
        for step in self._due.of(steps, now):
            self._write(event(step, now))

    def tell(self, line: str) -> None:
        """Emit a line of news."""
        self._write({"event": "line", "text": line})

    def ended(self, step: ShownStep, now: float) -> None:
        """Emit the last event of a step."""
        self._write(event(step, now))

    def close(self) -> None:
        """Leave everything as it is."""
