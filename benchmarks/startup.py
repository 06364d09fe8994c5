"""CPU time of commands that only look, beside the libraries they cannot do without.

Each figure is user and system time of one process, the median of five; the commands take turns, so that a busy machine
slows all of them alike. Foreign CPU is that of a whole turn: one process is too short for the system's clock.

Run: python -m benchmarks.startup [RUN] [--write]     RUN is a finished run's folder, by default that of `make demo`
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks import harness
from benchmarks.harness import LIMIT, Watch, share, shown

REPEATS = 5
BASELINE = "import polars, pydantic, yaml, typer, rich"
BOUNDS = {"--help": None, "status": 2.0, "show queries": 2.0, "show pool": 2.0, "models": 3.0, "doctor": None}
"""Command -> how many times the baseline it may take; None is held against the version before instead."""


def seconds(arguments: list[str]) -> float:
    """Return the CPU time of one Python process, user and system."""
    environment = {**harness.environment(), "COLUMNS": "120"}
    with Watch() as watch:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    return watch.cpu


def measured(run: Path) -> tuple[dict[str, float], float]:
    """Return the CPU time of the baseline and of every command in a run folder, and the greatest foreign CPU."""
    processes = {BASELINE: ["-c", BASELINE]}
    for command in BOUNDS:
        where = ["--run", str(run)] if command.startswith(("status", "show")) else []
        processes[f"curate {command}"] = ["-m", "curate", *command.split(), *where]
    rounds, foreign = [], 0.0
    for _ in range(REPEATS):
        with Watch() as watch:
            rounds.append({name: seconds(arguments) for name, arguments in processes.items()})
        foreign = max(foreign, watch.figures["foreign"])
    return {name: median(times[name] for times in rounds) for name in processes}, foreign


def main(given: argparse.Namespace) -> None:
    """Measure all, and publish the table."""
    if not (given.run / "pipeline.yaml").is_file():
        raise SystemExit(f"{given.run}: no run; type `make demo` first, or name the folder of another one")
    found, foreign = measured(given.run)
    quiet, unit = foreign <= LIMIT, found[BASELINE]
    rows = []
    for name, time in found.items():
        bound = BOUNDS.get(name.removeprefix("curate "))
        rows.append([f"`{name}`", f"{time:.2f}", shown(time / unit if quiet else None), str(bound or "")])
    heads = ["process", "CPU s", "of the baseline", "bound"]
    words = f"Medians of {REPEATS}, {os.cpu_count()} cores; foreign CPU at most {share(foreign)}."
    words += "" if quiet else f" No ratio, for that is more than {LIMIT:.0%}."
    harness.publish("startup", f"{words}\n\n{harness.table(heads, rows)}", given.write)


if __name__ == "__main__":
    options = harness.parser(__doc__)
    options.add_argument("run", nargs="?", type=Path, default=Path("runs/demo"))
    main(options.parse_args())
