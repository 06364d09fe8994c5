"""How fast the judge engine is, and beside it what else one could use, all in one run.

Every measurement has a server of its own (vendor_server.py) and a client of its own (contenders.py); contenders take
turns, and the medians of all rounds are shown. Seconds and CPU seconds are those of the calls alone, without imports;
foreign CPU is beside server and client, from their start to their end; peak memory is the client's.

Run: python -m benchmarks.judge_engine [--calls 3000] [--latency 0.3] [--repeats 3] [--only NAME] [--write]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import engine, harness
from benchmarks.harness import Figures, Result, Watch, ratio, share
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

    @property
    def key(self) -> str:
        """Return what no other row is called."""
        return f"{self.said}, {self.concurrency}"


SAID = {
    "sockets": "raw sockets, what the server can do",
    "curate": "curate, texts to ratings in the ledger",
    "plain": "AsyncOpenAI and a semaphore",
    "sharded": "AsyncOpenAI, a client for every 16 connections",
    "aiohttp": "AsyncOpenAI over aiohttp",
    "bespokelabs": "bespokelabs-curator",
}
LEVELS = {
    "sockets": (128, 512),
    "curate": (64, 128, 512),
    "plain": (128,),
    "sharded": (128, 512),
    "aiohttp": (128, 512),
    "bespokelabs": (128,),
}
ROWS = (
    Row("sockets", "raw sockets, answered at once", 128, latency=False),
    *(Row(name, said, level) for name, said in SAID.items() for level in LEVELS[name]),
    Row("curate", f"{SAID['curate']}, {LONGER} times as many calls", 512, times=LONGER),
)
BARE = ("plain", "sharded", "aiohttp")
"""Loops over the SDK that send calls and do nothing else."""


def environment(folder: Path) -> Path:
    """Return the Python of a new virtual environment with bespokelabs-curator; RuntimeError if it cannot be had."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "bespokelabs-curator"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return python


def measure(row: Row, python: Path, prompts: Path, calls: int, latency: float) -> Figures:
    """Return seconds, cpu, peak_mb, rate and open (most requests at a time); RuntimeError if the contender fails."""
    calls = calls * row.times
    with Watch() as watch, tempfile.TemporaryDirectory() as home, serving(latency if row.latency else 0.0) as url:
        script = ROOT / "benchmarks" / "contenders.py"
        command = [str(python), str(script), row.name, str(prompts), url, str(row.concurrency), str(calls)]
        variables = {"HOME": home} | ({} if row.name == "bespokelabs" else {"PYTHONPATH": str(ROOT)})
        done = subprocess.run(
            command, env=harness.environment() | variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{row.name}: {done.stderr.strip().splitlines()[-1]}")
        figures = json.loads(done.stdout.strip().splitlines()[-1])
        rate, most = calls / figures["seconds"], counters(url)["peak"]
    return {**figures, "rate": rate, "open": most, "foreign": watch.figures["foreign"]}


def line(row: Row, found: Result, calls: int, latency: float) -> list[str]:
    """Return the row of the table."""
    figures = found.figures
    whole = f"{figures['rate'] * latency / row.concurrency:.2f}" if row.latency else ""
    cpu = 1000 * figures["cpu"] / (calls * row.times)
    cells = [
        row.said,
        str(row.concurrency),
        f"{figures['rate']:,.0f}",
        whole,
        f"{cpu:.2f}",
        f"{figures['peak_mb']:.0f}",
    ]
    return [*cells, f"{figures['open']:.0f}", share(figures["foreign"])]


def said(found: dict[str, Result]) -> str:
    """Return how `curate` stands to the best bare loop of the same run, in words, as far as it may be said."""
    words = []
    for level in LEVELS["curate"]:
        loops = [each for name in BARE if (each := found.get(f"{SAID[name]}, {level}"))]
        ours = found.get(f"{SAID['curate']}, {level}")
        if ours and loops:
            times = ratio(ours, max(loops, key=lambda each: each.figures["rate"]), "rate")
            words += [f"{times:.2f} times as fast as the best bare loop at {level}"] if times else []
    return " ".join([f"`curate` is {', '.join(words)}." if words else "", harness.disturbed(found)]).strip()


def installed(rows: list[Row], folder: Path) -> tuple[list[Row], dict[str, Path], str]:
    """Return the rows that can be measured, the Python of each contender, and what was left out and why."""
    pythons = dict.fromkeys(SAID, Path(sys.executable))
    if all(row.name != "bespokelabs" for row in rows):
        return rows, pythons, ""
    try:
        return rows, {**pythons, "bespokelabs": environment(folder / "bespokelabs")}, ""
    except RuntimeError as reason:
        print(reason, file=sys.stderr)
        left = [row for row in rows if row.name != "bespokelabs"]
        return left, pythons, "Left out: bespokelabs-curator, which could not be installed."


def main(options: argparse.Namespace) -> None:
    """Measure every row in turns and publish the table."""
    with tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.jsonl"
        engine.prompts(options.calls, prompts)
        wanted = [row for row in ROWS if not options.only or row.name in options.only]
        rows, pythons, without = installed(wanted, Path(folder))
        turns = {
            row.key: partial(measure, row, pythons[row.name], prompts, options.calls, options.latency) for row in rows
        }
        once = [row.key for row in rows if row.times > 1]
        found = harness.interleaved(turns, options.repeats, options.again, once)
        size = prompts.stat().st_size / options.calls / 1000
    heads = ["contender", "concurrency", "calls/s", "share of concurrency / latency", "CPU s / 1,000 calls", "peak MB"]
    lines = [line(row, found[row.key], options.calls, options.latency) for row in rows]
    head = f"{options.calls:,} calls of {size:.1f} KB, latency {options.latency:g} s, medians of {options.repeats}."
    body = [head, harness.table([*heads, "most open", "foreign CPU"], lines), without, said(found)]
    harness.publish("judge_engine", "\n\n".join(part for part in body if part), options.write)


if __name__ == "__main__":
    parser = harness.parser(__doc__)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--latency", type=float, default=0.3, help="seconds from a request to its answer")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", choices=sorted(SAID), help="measure this contender; may be repeated")
    main(parser.parse_args())
