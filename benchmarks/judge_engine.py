"""How fast the judge engine is, and beside it what else one could use, all in one run: prints a table in Markdown.

Every measurement has a server of its own (vendor_server.py) and a client of its own (contenders.py); contenders take
turns, and the medians of all rounds are shown. Seconds and CPU seconds are those of the calls alone, without imports;
peak memory is the process's. Run: python -m benchmarks.judge_engine [--calls 3000] [--latency 0.3] [--repeats 3]
[--only NAME]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import engine
from benchmarks.vendor_server import counters, serving

ROOT = Path(__file__).resolve().parents[1]
LONGER = 10
"""How many times more calls the run has that shows whether memory stays flat; it is done once."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a contender at a concurrency."""

    name: str
    said: str
    concurrency: int
    times: int = 1
    """How many times `--calls` it makes."""
    latency: bool = True
    """False: the server answers at once."""


SAID = {
    "sockets": "raw sockets, what the server can do",
    "curate": "curate, texts to ratings in the ledger",
    "plain": "AsyncOpenAI and a semaphore",
    "sharded": "AsyncOpenAI, a client for every 16 connections",
    "aiohttp": "AsyncOpenAI over aiohttp",
    "bespokelabs": "bespokelabs-curator",
}
LEVELS = {
    "sockets": (64, 128, 512),
    "curate": (64, 128, 512),
    "plain": (64, 128),
    "sharded": (128, 512),
    "aiohttp": (128, 512),
    "bespokelabs": (128,),
}
ROWS = (
    Row("sockets", "raw sockets, answered at once", 64, latency=False),
    *(Row(name, said, level) for name, said in SAID.items() for level in LEVELS[name]),
    Row("curate", f"{SAID['curate']}, {LONGER} times as many calls", 512, times=LONGER),
)
Figures = Mapping[str, float]


def environment(folder: Path) -> Path:
    """Return the Python of a new virtual environment with bespokelabs-curator; RuntimeError if it cannot be had."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "bespokelabs-curator"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return python


def measure(row: Row, python: Path, prompts: Path, calls: int, latency: float) -> Figures:
    """Return seconds, cpu, peak_mb, rate and open (most requests at a time); RuntimeError if the contender fails."""
    calls = calls * row.times
    with serving(latency if row.latency else 0.0) as url, tempfile.TemporaryDirectory() as home:
        script = ROOT / "benchmarks" / "contenders.py"
        command = [python, script, row.name, prompts, url, str(row.concurrency), str(calls)]
        shown = {"HOME": home} | ({} if row.name == "bespokelabs" else {"PYTHONPATH": str(ROOT)})
        done = subprocess.run(command, env=os.environ | shown, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{row.name}: {done.stderr.strip().splitlines()[-1]}")
        figures = json.loads(done.stdout.strip().splitlines()[-1])
        return {**figures, "rate": calls / figures["seconds"], "open": counters(url)["peak"]}


def line(row: Row, rounds: list[Figures], calls: int, latency: float) -> str:
    """Return the row of the table: medians of all rounds."""
    found = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    share = f"{found['rate'] * latency / row.concurrency:.2f}" if row.latency else ""
    cpu = 1000 * found["cpu"] / (calls * row.times)
    cells = [row.said, str(row.concurrency), f"{found['rate']:,.0f}", share, f"{cpu:.2f}", f"{found['peak_mb']:.0f}"]
    return "| " + " | ".join([*cells, f"{found['open']:.0f}"]) + " |"


def main(options: argparse.Namespace) -> None:
    """Measure every row in turns and print the table."""
    rows = [row for row in ROWS if not options.only or row.name in options.only]
    found: dict[Row, list[Figures]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        prompts, pythons = Path(folder) / "prompts.jsonl", dict.fromkeys(SAID, Path(sys.executable))
        engine.prompts(options.calls, prompts)
        if any(row.name == "bespokelabs" for row in rows):
            try:
                pythons["bespokelabs"] = environment(Path(folder) / "bespokelabs")
            except RuntimeError as reason:
                print(f"Left out: bespokelabs-curator, which could not be installed ({reason}).\n")
                rows = [row for row in rows if row.name != "bespokelabs"]
        for turn in range(options.repeats):
            for row in rows:
                if row.times == 1 or turn == 0:
                    print(f"round {turn + 1}: {row.said}, {row.concurrency}", file=sys.stderr)
                    found[row].append(measure(row, pythons[row.name], prompts, options.calls, options.latency))
        size = prompts.stat().st_size / options.calls / 1000
    print(f"{options.calls:,} calls of {size:.1f} KB, latency {options.latency:g} s, medians of {options.repeats}:\n")
    print(
        "| contender | concurrency | calls/s | of concurrency / latency | CPU s / 1,000 calls | peak MB | most open |"
    )
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for row in rows:
        print(line(row, found[row], options.calls, options.latency))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--latency", type=float, default=0.3, help="seconds from a request to its answer")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", choices=sorted(SAID), help="measure this contender; may be repeated")
    main(parser.parse_args())
