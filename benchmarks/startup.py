"""CPU time of commands that only look, beside the libraries they cannot do without; a Markdown table.

Run `python -m benchmarks.startup RUN`, with the folder of a finished run. Each figure is user and system time of one
process, the best of five; the commands take turns, so that a busy machine slows all of them alike.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

REPEATS = 5
BASELINE = "polars, pydantic, yaml, typer, rich"
BOUNDS = {"--help": None, "status": 2.0, "show queries": 2.0, "show pool": 2.0, "models": 3.0}
"""Command -> how many times the baseline it may take; None is held against the version before instead."""


def seconds(arguments: list[str]) -> float:
    """Return the CPU time of one Python process, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env={**os.environ, "COLUMNS": "120"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(run: Path) -> dict[str, float]:
    """Return the best CPU time of the baseline and of every command in a run folder."""
    processes = {f"import {BASELINE}": ["-c", f"import {BASELINE}"]}
    for command in BOUNDS:
        where = [] if command == "--help" else ["--run", str(run)]
        processes[f"curate {command}"] = ["-m", "curate", *command.split(), *where]
    rounds = [{name: seconds(arguments) for name, arguments in processes.items()} for _ in range(REPEATS)]
    return {name: min(times[name] for times in rounds) for name in processes}


if __name__ == "__main__":
    figures = measured(Path(sys.argv[1]))
    unit = figures[f"import {BASELINE}"]
    print("| process | CPU s | of the baseline | bound |\n| --- | ---: | ---: | ---: |")
    for name, time in figures.items():
        bound = BOUNDS.get(name.removeprefix("curate "))
        print(f"| `{name}` | {time:.2f} | {time / unit:.2f} | {bound or '-'} |")
