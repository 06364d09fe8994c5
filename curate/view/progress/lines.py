"""Progress without a terminal: a plain line every ten seconds, or one JSON object per line for machines."""

from collections.abc import Callable, Sequence
from typing import Any

from curate.view import output_mode
from curate.view.progress import wording
from curate.view.progress.board import ShownStep

EVERY_S = 10.0
"""Seconds between two plain lines on one step."""
JSON_EVERY_S = 1.0
"""Seconds between two JSON objects on one step."""


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
    """Return a step as the event `progress`; what is unknown is None."""
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
        """Print nothing: the next line shows that the step has ended."""

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
