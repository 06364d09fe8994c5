"""Progress of long steps: label, unit, and units completed so far."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from curate.core.protocols import PaidProgress, Progress

Item = TypeVar("Item")
WORKING = "working"
"""Label of a whole stage, shown while no step of it reports progress."""


class StepLabel(str):
    """The label of a step, with the unit that it counts and the stage to which it belongs.

    A subclass of `str`, so it can be passed as a plain label. The unit `bytes` is shown in MB.
    """

    __slots__ = ("stage", "unit")
    unit: str
    stage: str
    """Name of the stage; empty outside of a run."""

    def __new__(cls, text: str, unit: str = "", stage: str = "") -> "StepLabel":
        """Return a label; `text` names the work and its object, as in "encoding documents, e5"."""
        step = super().__new__(cls, text)
        step.unit, step.stage = unit, stage
        return step


def in_stage(progress: PaidProgress, stage: str) -> PaidProgress:
    """Return a progress function that adds the name of a stage to every label."""

    def within(label: str, total: int, completed: int, money: str = "", /) -> None:
        progress(StepLabel(label, getattr(label, "unit", ""), stage), total, completed, money)

    return within


def counting(items: Iterable[Item], progress: Progress, label: str, total: int) -> Iterator[Item]:
    """Yield items and report their count: 0 before the first, `total` at the end even if there were fewer."""
    completed = 0
    progress(label, total, 0)
    for completed, item in enumerate(items, start=1):
        yield item
        progress(label, max(total, completed), completed)
    if completed < total:
        progress(label, total, total)


def furthest(progress: Progress, label: str, total: int) -> Callable[[int], None]:
    """Return a function that reports the highest count that it was called with, for several independent callers."""
    most = 0

    def report(completed: int) -> None:
        nonlocal most
        most = max(most, completed)
        progress(label, total, most)

    return report


@contextmanager
def waiting(progress: Progress, label: str) -> Iterator[None]:
    """Report a step without countable units: 0 of 1 until the block ends, so that only its elapsed time is shown."""
    progress(label, 1, 0)
    yield
    progress(label, 1, 1)
