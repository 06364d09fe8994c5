"""One command and all processes that it starts: seconds, CPU seconds and the greatest memory of all of them together."""

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

EVERY_S = 0.2
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What a command took; memory in MB, of the moment at which the tree had most."""

    s: float
    cpu: float
    pss: float
    """Proportional set size: a page that several processes share counts once, and mapped files count while resident."""
    private: float
    """The part that only memory or swap can hold: without pages of files, which the system may drop at any time."""
    foreign: float
    """Share of all cores' time that other processes took meanwhile."""


def measured(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str], data_limit: int | None = None
) -> tuple[Cost, str]:
    """Run a command to its end and return what it took, and what it printed; RuntimeError with that if it fails.

    `data_limit` is RLIMIT_DATA in bytes, of each process of the tree: what asks for more private memory gets none.
    """

    def confine() -> None:
        if data_limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (data_limit, data_limit))

    started, busy, before = time.perf_counter(), _busy(), resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen(  # its own session, so that nothing of it outlives a failure
        command, cwd=cwd, env={**environment}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=confine,  # noqa: PLW1509 - there is one thread as yet
    )
    highest = [0.0, 0.0]
    ended = threading.Event()
    watching = threading.Thread(target=_watch, args=(child.pid, highest, ended))
    watching.start()
    said = child.communicate()[0]
    ended.set()
    watching.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, cpu = time.perf_counter() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}:\n{said[-4000:]}")
    foreign = max(0.0, (_busy() - busy - cpu) / (seconds * (os.cpu_count() or 1)))
    return Cost(seconds, cpu, *highest, foreign), said


def _watch(root: int, highest: list[float], ended: threading.Event) -> None:
    while not ended.wait(EVERY_S):
        sizes = [_memory(pid) for pid in _tree(root)]
        for place in range(2):
            highest[place] = max(highest[place], sum(size[place] for size in sizes))


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


def _busy() -> float:
    """Return the seconds that all cores have worked since the machine started."""
    fields = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:7])) / TICKS


if __name__ == "__main__":
    cost, printed = measured(sys.argv[1:], Path.cwd(), os.environ)
    print(printed, cost, sep="")
