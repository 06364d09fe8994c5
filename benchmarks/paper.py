"""Data of the paper's size for benchmarks: a corpus whose sentences are drawn from real ones, and clustered vectors."""

import json
import random
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.system import resources
from curate.system.files import TableWriter, frame, write_table

DIM, NEAR, BLOCK = 768, 0.4, 20_000
SENTENCE = re.compile(r"[^。！？!?;；.]+[。！？!?;；.]*")
Vectors = npt.NDArray[np.float32]


def sentences(path: Path | None) -> list[list[str]]:
    """Return the sentences of every text of a JSONL file with `text`; without a path, of the packaged demo's corpus."""
    lines = (path or resources.demo() / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [SENTENCE.findall(str(json.loads(line)["text"])) for line in lines]


def corpus(folder: Path, size: int, queries: int, source: Path | None) -> None:
    """Write tables `corpus` and `queries`: each document is as long as a real one, each query is one sentence."""
    draw, real = random.Random(1), [each for each in sentences(source) if each]
    known = [sentence for each in real for sentence in each]
    with TableWriter(folder, "corpus") as writer:
        for number in range(size):
            text = "".join(draw.choices(known, k=len(draw.choice(real))))
            writer.add({"doc_id": f"d{number:07d}", "title": "", "text": text, "source": "drawn"})
    rows = [{"query_id": f"q{number:05d}", "text": draw.choice(known)[:80]} for number in range(queries)]
    write_table(folder, "queries", frame("queries", rows))


def vectors(path: Path, size: int, seed: int) -> None:
    """Write unit vectors, float32 (size, 768), of which two in five lie near another one, as similar texts do."""
    draw = np.random.default_rng(seed)
    found = np.lib.format.open_memmap(path, "w+", np.float32, (size, DIM))
    for start in range(0, size, BLOCK):
        part = draw.standard_normal((min(BLOCK, size - start), DIM), dtype=np.float32)
        near = np.flatnonzero(draw.random(len(part)) < NEAR)
        part[near] = 0.5 * part[near] + part[draw.integers(0, len(part), len(near))]
        found[start : start + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)


class Clock:
    """Seconds of the clock and of the processor, children included, and the greatest memory, by step."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, float]] = {}
        self._last = self._now()

    def __call__(self, label: str, _total: int, _done: int) -> None:
        """Book the time since the last call on the step that it names: the progress of a stage."""
        self.book(label)

    def book(self, label: str) -> None:
        """Book the time since the last call on a step."""
        now = self._now()
        step = self.steps.setdefault(label, {"s": 0.0, "cpu": 0.0})
        step["s"] += now[0] - self._last[0]
        step["cpu"] += now[1] - self._last[1]
        step["mb"] = highest()
        self._last = now

    @staticmethod
    def _now() -> tuple[float, float]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime


def highest() -> int:
    """Return the greatest size of this process so far, mapped files included, in megabytes (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("VmHWM"))) // 1024


def read_queries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield id and text of the queries."""
    yield from pl.read_parquet(folder / "queries.parquet").select("query_id", "text").iter_rows()
