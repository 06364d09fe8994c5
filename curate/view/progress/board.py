"""The steps that are under way: what each last said of itself, and its rate."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from curate.core.progress import WORKING
from curate.view.progress.meter import RateMeter

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
