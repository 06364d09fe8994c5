"""What every speed benchmark shares: turns, a process per measurement, foreign CPU, and the tables of the docs.

*Foreign CPU* is what the machine did beside the measured process and its children while they were measured: busy time
of the usable cores by /proc/stat, that which a hypervisor took included, less user and system time of the process and
of its children that have ended, as a share of cores x seconds. Above 5 % a measurement is made again, a few times; the
quietest one counts, and no ratio is given to what was disturbed in all of them. Linux only; elsewhere nothing is known
of it, so there are times and no ratios.

A block of a page lies between `<!-- bench:NAME -->` and `<!-- /bench -->`. `--write` replaces it; without it, it is
printed.
"""

import argparse
import datetime as dt
import json
import os
import platform
import re
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, Self

DOCS = Path(__file__).resolve().parents[1] / "docs"
LIMIT = 0.05
"""Of the cores, taken by something else: beyond it two times are not compared."""
AGAIN = 6
"""So many disturbed measurements are made again before ratios are given up."""
FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni", "amx_bf16", "amx_int8")
PACKAGES = ("numpy", "faiss-cpu", "torch", "sentence-transformers")
SETTINGS = re.compile(r"OPENBLAS_|OMP_|MKL_|DNNL_|ONEDNN_")
"""Variables that change how fast libraries multiply."""
Figures = Mapping[str, float]


class Watch:
    """Seconds of a block, processor seconds of this process and its children, and the share of foreign CPU."""

    wall = cpu = 0.0
    foreign: float | None = None

    def __enter__(self) -> Self:
        self._start = _now()
        return self

    def __exit__(self, *_: object) -> None:
        wall, cpu, busy = (_minus(new, old) for new, old in zip(_now(), self._start, strict=True))
        assert wall is not None
        assert cpu is not None
        self.wall, self.cpu = wall, cpu
        self.foreign = None if busy is None else max(0.0, busy - cpu) / (_cores() * wall)

    @property
    def figures(self) -> dict[str, float]:
        """Return them by name; NaN for a foreign share that nobody knows."""
        return {"wall": self.wall, "cpu": self.cpu, "foreign": float("nan") if self.foreign is None else self.foreign}


def _now() -> tuple[float, float, float | None]:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(each.ru_utime + each.ru_stime for each in used), _busy()


def _minus(new: float | None, old: float | None) -> float | None:
    return None if new is None or old is None else new - old


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _busy() -> float | None:
    """Return the seconds that the usable cores have not been idle: user, nice, system, interrupts and stolen time."""
    if sys.platform != "linux":
        return None
    usable = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    lines = [line.split() for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()]
    ticks = sum(int(line[at]) for line in lines if line[0] in usable for at in (1, 2, 3, 6, 7, 8))
    return ticks / os.sysconf("SC_CLK_TCK")


def environment() -> dict[str, str]:
    """Return the environment of a contender, without what a user's seldom has.

    OPENBLAS_* may be set for older libraries; without bytecode every start of a program compiles it again.
    """
    left = ("OPENBLAS_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(left)}


def child(module: str, *words: object) -> dict[str, Any]:
    """Return the JSON that a benchmark's own process ends with, and of the whole process what that does not have."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, words)]
    with Watch() as watch:
        done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    return {**watch.figures, **json.loads(done.stdout.splitlines()[-1])}


@dataclass(frozen=True)
class Place:
    """A folder in which commands run."""

    folder: Path
    threads: int | None = 1
    """Of numpy and torch; None takes all cores."""

    def curate(self, *words: object) -> None:
        """Print a command and run it; RuntimeError with the end of what it complained of, if it fails."""
        print("curate", shlex.join(map(str, words)), flush=True)
        limit = {} if self.threads is None else {"OMP_NUM_THREADS": str(self.threads)}
        done = subprocess.run(
            [sys.executable, "-m", "curate", *map(str, words)],
            cwd=self.folder,
            env={**os.environ, "CURATE_HOME": str(self.folder / "home"), **limit},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"curate {words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")

    def read(self, name: str) -> dict[str, Any]:
        """Return the contents of a JSON file that a command wrote."""
        contents: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return contents

    def write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write a JSONL file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


@dataclass(frozen=True)
class Result:
    """What one contender came to."""

    figures: Figures
    """Medians of its measurements; `foreign` is the greatest."""
    runs: int

    @property
    def quiet(self) -> bool:
        """Whether nothing else took much of the cores; False where that is not known."""
        return self.figures["foreign"] <= LIMIT


def interleaved(
    contenders: Mapping[str, Callable[[], Figures]], rounds: int, again: int = AGAIN, once: Collection[str] = ()
) -> dict[str, Result]:
    """Let contenders take turns; those in `once` are measured in the first round alone.

    `again` is how many disturbed measurements are made again, in all.
    """
    found: dict[str, list[Figures]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name, measure in contenders.items():
            if turn and name in once:
                continue
            tries = [measure()]
            while tries[-1]["foreign"] > LIMIT and again:
                again -= 1
                tries.append(measure())
            found[name].append(min(tries, key=lambda each: each["foreign"]))
            print(f"{name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return {name: Result(medians(each), len(each)) for name, each in found.items()}


def medians(runs: Sequence[Figures]) -> Figures:
    """Return medians of every figure, but the greatest share of foreign CPU."""
    middle = {name: median(each[name] for each in runs) for name in runs[0]}
    return {**middle, "foreign": max(each["foreign"] for each in runs)}


def ratio(one: Result, other: Result, figure: str = "wall") -> float | None:
    """Return a figure of one by that of the other; None if either was disturbed."""
    return one.figures[figure] / other.figures[figure] if one.quiet and other.quiet else None


def shown(number: float | None, form: str = ".2f") -> str:
    """Return a number as a cell; a dash for one that may not be given."""
    return "-" if number is None else format(number, form)


def share(foreign: float) -> str:
    """Return a share of foreign CPU as a cell."""
    return f"{foreign:.1%}" if foreign == foreign else "unknown"  # noqa: PLR0124 - NaN alone is not itself


def disturbed(results: Mapping[str, Result]) -> str:
    """Return why some have no ratio, as a sentence; empty if all have one."""
    names = [f"{name} ({share(each.figures['foreign'])})" for name, each in results.items() if not each.quiet]
    return f"No ratio for what had more than {LIMIT:.0%} of the cores taken: {', '.join(names)}." if names else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """Return a table in Markdown, whose first `texts` columns are words and whose others are numbers."""
    rule = ["---"] * texts + ["--:"] * (len(heads) - texts)
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, rule, *rows))


def machine() -> str:
    """Return processor, cores, system, instructions, versions, and variables that change speed, in one sentence."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if sys.platform == "linux" else []
    facts = dict(re.split(r"\s*:\s?", line, maxsplit=1) for line in lines if ":" in line)
    flags = [flag for flag in FLAGS if flag in facts.get("flags", "").split()]
    model = f"{facts.get('model name', platform.processor())}, family {facts.get('cpu family', '?')}"
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    held = [f"{name} {found}" for name in PACKAGES if (found := _version(name))]
    set_ = [f"{name}={value}" for name, value in sorted(environment().items()) if SETTINGS.match(name)]
    core = f"{model} model {facts.get('model', '?')}; {' '.join(flags) or 'no flags known'}"
    parts = [f"{_cores()} cores ({core})", system, f"Python {platform.python_version()}", *held, "OPENBLAS_* not set"]
    return ", ".join([*parts, *set_])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that all have."""
    options = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", nargs="?", const=DOCS, type=Path, metavar="DOCS", help="into the pages of a folder")
    options.add_argument("--again", type=int, default=AGAIN, help="how many disturbed measurements are made again")
    return options


def publish(name: str, body: str, docs: Path | None) -> None:
    """Print a block, with command, date and machine above what was found, or write it where its markers are."""
    arguments = ("..." if "/" in word else shlex.quote(word) for word in sys.argv[1:])
    typed = " ".join(["python -m", f"benchmarks.{name}", *arguments])
    today = dt.datetime.now(tz=dt.UTC).date()
    text = f"`{typed}`, {today}, {machine()}.\n\n{body.strip()}\n"
    if docs is None:
        print(text)
        return
    [page] = [page for page in docs.rglob("*.md") if f"<!-- bench:{name} -->" in page.read_text(encoding="utf-8")]
    page.write_text(replaced(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def replaced(page: str, name: str, text: str) -> str:
    """Return a page with another text in one block."""
    block = re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- /bench -->)", re.DOTALL)
    return block.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", page)
