"""How fast agreement is measured: a million pairs, three judges, five grades, beside statsmodels' path to one kappa.

Everything of `measures.on_grades` (all measures on the grades and on the cut, Cohen's kappa of every pair of judges),
without intervals, and with 1,000 samples of 734 queries; and `aggregate_raters` with `fleiss_kappa`, which gives one
figure of all these. They take turns, each in a process of its own, after imports and one small call; medians. Peak
memory is above what the process had with its imports and the ratings (Linux only).

Run: python -m benchmarks.agreement [--repeats 5] [--write]
"""

import argparse
import json
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks import harness, paper
from benchmarks.harness import Watch, ratio, share, shown
from curate.core.scale import FIVE
from curate.panel.agreement_figures import on_grades

PAIRS, JUDGES, GRADES, QUERIES = 1_000_000, ("a", "b", "c"), 5, 734
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


def measure(name: str) -> dict[str, float]:
    """Return seconds of one task, and by how many megabytes it made this process grow."""
    TASKS[name](*ratings(1_000))
    codes, queries = ratings(PAIRS)
    before = paper.highest()
    with Watch() as watch:
        TASKS[name](codes, queries)
    return {**watch.figures, "peak": float(paper.highest() - before)}


def main(given: argparse.Namespace) -> None:
    """Measure every task in turns, and publish the table."""
    turns = {name: partial(harness.child, "agreement", "--measure", name) for name in TASKS}
    found = harness.interleaved(turns, given.repeats, given.again)
    base, rows = found[next(iter(TASKS))], []
    for name, each in found.items():
        cells = (f"{each.figures[key]:.2f}" for key in ("wall", "cpu"))
        times = shown(ratio(each, base, "cpu"))
        rows.append([name, *cells, share(each.figures["foreign"]), times, f"{each.figures['peak']:.0f}"])
    heads = ["task", "s", "CPU s", "foreign CPU", "x statsmodels' CPU s", "peak MB above the ratings"]
    head = f"{PAIRS:,} pairs, {len(JUDGES)} judges, {GRADES} grades, medians of {given.repeats}."
    harness.publish("agreement", "\n\n".join([head, harness.table(heads, rows), harness.disturbed(found)]), given.write)


if __name__ == "__main__":
    options = harness.parser(__doc__)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--measure", help=argparse.SUPPRESS)
    typed = options.parse_args()
    if typed.measure:
        print(json.dumps(measure(typed.measure)))
    else:
        main(typed)
