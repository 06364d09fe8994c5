"""How fast agreement is measured: a million pairs, three judges, five grades, beside statsmodels' path to one kappa.

Everything of `measures.on_grades` (all measures on the grades and on the cut, Cohen's kappa of every pair of judges),
without intervals, and with 1,000 samples of 734 queries; and `aggregate_raters` with `fleiss_kappa`, which gives one
figure of all these. They take turns in one process, after imports and one small call of each; medians of five, of the
clock and of the processor, for a machine may be shared. Peak memory is that of a process of its own for each, above
what it had with its imports and the ratings (Linux only).

Run: python -m benchmarks.agreement
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from curate.core.scale import FIVE
from curate.panel.agreement_figures import on_grades

PAIRS, JUDGES, GRADES, QUERIES, REPEATS = 1_000_000, ("a", "b", "c"), 5, 734, 5
Codes = npt.NDArray[np.int64]


def ratings(pairs: int) -> tuple[Codes, Codes]:
    """Return grades of three judges who agree in part, and the query of each pair."""
    random = np.random.default_rng(1)
    truth = random.choice(GRADES, (pairs, 1), p=[0.05, 0.1, 0.15, 0.25, 0.45])
    heard = random.random((pairs, len(JUDGES))) < 0.8
    codes = np.where(heard, truth, random.integers(0, GRADES, (pairs, len(JUDGES))))
    return codes, np.sort(random.integers(0, QUERIES, pairs))


def statsmodels(codes: Codes, _queries: Codes) -> None:
    """Count and take Fleiss' kappa as statsmodels does."""
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    fleiss_kappa(aggregate_raters(codes, GRADES)[0])


def everything(codes: Codes, queries: Codes) -> None:
    """Measure everything, without intervals."""
    on_grades(codes, JUDGES, queries, FIVE, seed=1, replicates=0)


def with_intervals(codes: Codes, queries: Codes) -> None:
    """Measure everything, with intervals."""
    on_grades(codes, JUDGES, queries, FIVE, seed=1)


TASKS: dict[str, Callable[[Codes, Codes], None]] = {
    "statsmodels, Fleiss' kappa on the grades": statsmodels,
    "everything, no intervals": everything,
    "everything, 1,000 samples of 734 queries": with_intervals,
}


def peak(name: str) -> int:
    """Return how many megabytes a task adds to a process that has its imports and its ratings."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "ratings.npz", *ratings(PAIRS))
        command = [sys.executable, "-m", "benchmarks.agreement", name, folder]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def child(name: str, folder: str) -> None:
    """Print the growth of the process's greatest size in one task, in megabytes."""
    TASKS[name](*ratings(1_000))
    with np.load(Path(folder) / "ratings.npz") as stored:
        codes, queries = stored["arr_0"], stored["arr_1"]
    before = highest()
    TASKS[name](codes, queries)
    print(highest() - before)


def highest() -> int:
    """Return the greatest size of this process so far, in megabytes; ru_maxrss would begin at the parent's."""
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("VmHWM"))) // 1024


def main() -> None:
    """Print the table."""
    codes, queries = ratings(PAIRS)
    for task in TASKS.values():
        task(*ratings(1_000))
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in TASKS}
    for _ in range(REPEATS):
        for name, task in TASKS.items():
            clock, used = time.perf_counter(), time.process_time()
            task(codes, queries)
            seconds[name].append((time.perf_counter() - clock, time.process_time() - used))
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{PAIRS:,} pairs, {len(JUDGES)} judges, {GRADES} grades; {os.cpu_count()} cores, load {load}")
    found = {name: [median(each) for each in zip(*pairs, strict=True)] for name, pairs in seconds.items()}
    _, first = next(iter(found.values()))
    print("| task | s | CPU s | CPU s of statsmodels' | peak MB above the ratings |\n| --- | --: | --: | --: | --: |")
    for name, (clock, used) in found.items():
        print(f"| {name} | {clock:.2f} | {used:.2f} | {used / first:.2f} | {peak(name)} |")


if __name__ == "__main__":
    child(*sys.argv[1:]) if sys.argv[1:] else main()
