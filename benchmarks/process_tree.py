"""One command and all processes that it starts: seconds, CPU seconds and the greatest memory of all together."""

import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Watch

EVERY_S = 0.2


@dataclass(frozen=True)
class Cost:
    """What a command took; memory in MB, of the moment at which the tree had most."""

    wall: float
    cpu: float
    foreign: float
    """Share of the cores that other processes took meanwhile; see `harness`."""
    pss: float
    """Proportional set size: a page that several processes share counts once, and mapped files count while resident."""
    private: float
    """The part that only memory or swap can hold: without pages of files, which the system may drop at any time."""


@dataclass(frozen=True)
class DataLimit:
    """RLIMIT_DATA in bytes, which the system refuses to exceed: private memory, reserved but unused parts included."""

    command: int
    worker: int
    """Of each process that the command starts."""


UNLIMITED = DataLimit(resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def measured(command: Sequence[str], cwd: Path, environment: Mapping[str, str], limit: DataLimit = UNLIMITED) -> Cost:
    """Run a command to its end and return what it took; RuntimeError with what it printed if it fails."""
    with tempfile.TemporaryFile("w+") as printed, Watch() as watch:
        child = subprocess.Popen(command, cwd=cwd, env={**environment}, stdout=printed, stderr=subprocess.STDOUT)
        highest = _watched(child, limit)
        printed.seek(0)
        if child.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}:\n{printed.read()[-4000:]}")
    return Cost(**watch.figures, pss=highest[0], private=highest[1])


def _watched(child: subprocess.Popen[bytes], limit: DataLimit) -> tuple[float, float]:
    """Wait for a command; return the greatest sizes of its tree, whose processes are limited once seen."""
    highest, limited = (0.0, 0.0), set[int]()
    while child.poll() is None:
        tree = [*_tree(child.pid)]
        for pid in set(tree) - limited:
            most = limit.command if pid == child.pid else limit.worker
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))
            limited.add(pid)
        sizes = [_memory(pid) for pid in tree]
        highest = max(highest[0], sum(each[0] for each in sizes)), max(highest[1], sum(each[1] for each in sizes))
        time.sleep(EVERY_S)
    return highest


def _tree(root: int) -> Iterator[int]:
    yield root
    try:
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return


def _memory(pid: int) -> tuple[float, float]:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0
    sizes = {line.split()[0]: int(line.split()[1]) / 1024 for line in lines}
    return sizes.get("Pss:", 0.0), sizes.get("Pss_Anon:", 0.0) + sizes.get("Pss_Shmem:", 0.0)
