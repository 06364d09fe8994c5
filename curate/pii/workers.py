"""Mask batches of texts on all cores, in order."""

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from curate.pii.masking import Masked, Masker
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from curate.records import Span

Batch = tuple[Sequence[str], Mapping[int, Sequence[Span]]]
"""Texts, and the spans that are known of some, by row."""
Thing = TypeVar("Thing")
AHEAD = 2
"""Batches a process that wait for it, so that memory stays bounded."""

_own: Masker
"""The masker of a worker process, which is built once."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def mask_batches(
    config: Masking, language: str, key: bytes, batches: Iterable[tuple[Thing, Batch]], processes: int
) -> Iterator[tuple[Thing, list[Masked]]]:
    """Yield every batch masked, in order, with whatever came with it; one process means this one."""
    if processes < 2:
        here = masker(config, language, key)
        yield from ((thing, mask_all(here, *batch)) for thing, batch in batches)
        return
    waiting: deque[tuple[Thing, Future[list[Masked]]]] = deque()
    # A fork would copy locks that other threads hold, as those of polars.
    with ProcessPoolExecutor(processes, get_context("spawn"), _start, (config, language, key)) as pool:
        for thing, batch in batches:
            with _uninterrupted():
                waiting.append((thing, pool.submit(_mask, batch)))
            if len(waiting) >= processes * AHEAD:
                yield _next(waiting)
        while waiting:
            yield _next(waiting)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back: a process that is started meanwhile never gets it, and ends with the one that started it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _next(waiting: deque[tuple[Thing, Future[list[Masked]]]]) -> tuple[Thing, list[Masked]]:
    thing, future = waiting.popleft()
    return thing, future.result()


def _start(config: Masking, language: str, key: bytes) -> None:
    global _own  # noqa: PLW0603 - a worker process has one masker, and no other place to keep it
    _own = masker(config, language, key)


def _mask(batch: Batch) -> list[Masked]:
    return mask_all(_own, *batch)
