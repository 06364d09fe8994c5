"""What a long step says of itself while it works: its label, the unit that it counts, and how far it is."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from curate.core.protocols import PaidProgress, Progress

Item = TypeVar("Item")
WORKING = "working"
"""Label of a whole stage: shown where nothing more exact is known of what it does."""


class StepLabel(str):
    """The label of a step, with the unit that it counts and the stage that it belongs to.

    It is its text, so it stands wherever a progress takes a plain label. Unit `bytes` is shown in MB.
    """

    __slots__ = ("stage", "unit")
    unit: str
    stage: str
    """Empty outside of a run's stages."""

    def __new__(cls, text: str, unit: str = "", stage: str = "") -> "StepLabel":
        """Return the label: what is done and to what, as in "encoding documents, e5"."""
        made = super().__new__(cls, text)
        made.unit, made.stage = unit, stage
        return made


def in_stage(progress: PaidProgress, stage: str) -> PaidProgress:
    """Return a progress that puts every label under a stage."""

    def within(label: str, total: int, done: int, money: str = "", /) -> None:
        progress(StepLabel(label, getattr(label, "unit", ""), stage), total, done, money)

    return within


def counting(items: Iterable[Item], progress: Progress, label: str, total: int) -> Iterator[Item]:
    """Yield items and say how many are done: none before the first, `total` at the end even if there were fewer."""
    done = 0
    progress(label, total, 0)
    for done, item in enumerate(items, start=1):
        yield item
        progress(label, max(total, done), done)
    if done < total:
        progress(label, total, total)


def furthest(progress: Progress, label: str, total: int) -> Callable[[int], None]:
    """Return a function to call with how many units are done, by several that need not agree: the most counts."""
    most = 0

    def told(done: int) -> None:
        nonlocal most
        most = max(most, done)
        progress(label, total, most)

    return told


@contextmanager
def waiting(progress: Progress, label: str) -> Iterator[None]:
    """Say that a step of one piece lasts as long as the block does; it is shown by its elapsed time alone."""
    progress(label, 1, 0)
    yield
    progress(label, 1, 1)
