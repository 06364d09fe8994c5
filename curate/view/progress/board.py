"""The running steps, with their last reports and rates."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from curate.core.progress import WORKING
from curate.view.progress.meter import RateMeter

Clock = Callable[[], float]
ENDED_S = 0.1
"""Minimum seconds between two reported ends of one step: some steps run a thousand times."""


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
    """Time of the first report."""
    at: float
    """Time of the last report."""
    meter: RateMeter

    @property
    def key(self) -> tuple[str, str]:
        """Return the key of the step."""
        return self.stage, self.label

    @property
    def whole(self) -> bool:
        """Whether the step has one unit, so that only its duration is known."""
        return self.total <= 1

    @property
    def name(self) -> str:
        """Return stage and label."""
        return f"{self.stage}: {self.label}" if self.stage else self.label


class StepBoard:
    """All running steps; `report` is thread-safe and cheap."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self._steps: dict[tuple[str, str], ShownStep] = {}
        self._lock = threading.Lock()
        self._stage = ""
        self._ended: dict[tuple[str, str], float] = {}

    def report(self, label: str, total: int, done: int, money: str = "") -> ShownStep | None:
        """Record the progress of a step; return it if its end is to be reported."""
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
        """Return the running steps, the oldest first, with updated rates.

        The step of a whole stage is included only while none of its steps runs; its time counts from the last one.
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
