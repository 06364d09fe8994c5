"""Parallel work on batches in processes of this machine, and unique names of processes that share a ledger."""

import os
import signal
import socket
import sys
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Thing = TypeVar("Thing")
Batch = TypeVar("Batch")
Result = TypeVar("Result")
AHEAD = 2
"""Maximum number of batches in work or waiting per process, so that memory is bounded."""

_own: Callable[[Any], Any]
"""The function that a worker process applies to batches; built once per process."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(
    build: Callable[[], Callable[[Batch], Result]], batches: Iterable[tuple[Thing, Batch]], processes: int
) -> Iterator[tuple[Thing, Result]]:
    """Yield (tag, result) for every (tag, batch) in order; the result is that of the function that `build` returns.

    Each process calls `build` once. With one process, no other is started. `build`, batches and results are pickled.
    """
    if processes < 2:
        work = build()
        yield from ((thing, work(batch)) for thing, batch in batches)
        return
    waiting: deque[tuple[Thing, Future[Result]]] = deque()
    # A fork would copy locks that other threads hold, as those of polars.
    with ProcessPoolExecutor(processes, get_context("spawn"), _start, (build,)) as pool:
        for thing, batch in batches:
            with _uninterrupted(), without_script():
                waiting.append((thing, pool.submit(_work, batch)))
            if len(waiting) >= processes * AHEAD:
                yield _next(waiting)
        while waiting:
            yield _next(waiting)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Block Ctrl-C within the block, so that a process started there never receives it; it ends with its parent."""
    earlier_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier_mask)


@contextmanager
def without_script() -> Iterator[None]:
    """Hide the script of this process from processes that are spawned within the block.

    A spawned process would import the script and, without `if __name__ == "__main__"`, start its work again. It does
    not need it, since the functions of workers are defined in modules.
    """
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.pop("__file__", None)
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


def _next(waiting: deque[tuple[Thing, Future[Result]]]) -> tuple[Thing, Result]:
    thing, future = waiting.popleft()
    return thing, future.result()


def _start(build: Callable[[], Callable[[Any], Any]]) -> None:
    global _own  # noqa: PLW0603 - a worker process has one function, and no other place to keep it
    _own = build()


def _work(batch: Batch) -> Any:  # noqa: ANN401 - what the function returns
    return _own(batch)


# Names of processes that share a ledger, so that others can tell whether one has ended.


def owner() -> str:
    """Return a unique name of this process, on any machine: `MACHINE:PID:RANDOM`; a new one per call."""
    return f"{_machine()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def gone(name: str) -> bool:
    """Return whether the process with this name (see `owner`) has ended; False for one of another machine."""
    machine, _, process = name.rpartition(":")[0].rpartition(":")
    return machine == _machine() and process.isdecimal() and not _alive(int(process))


@cache
def _machine() -> str:
    """Return a name of this process-id namespace, since containers may share a host name.

    Without /proc it is the host name.
    """
    host, boot = socket.gethostname(), Path("/proc/sys/kernel/random/boot_id")
    try:
        return f"{host}/{boot.read_text(encoding='ascii').strip()}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return host


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        return True
    return True
