"""The machine that a speed was measured on: figures of different machines are never set side by side."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from curate.core.config import Json, digest
from curate.stats.tally import Floats

CPU = Path("/proc/cpuinfo")
"""Where Linux names the processor."""


def identity() -> dict[str, Json]:
    """Return what the machine is, and `id`, the digest of it; its name on the network is no part of it."""
    parts: dict[str, Json] = {
        "processor": _processor(),
        "cores": _cores(),
        "gpus": _gpus(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    return {**parts, "id": digest(parts)[:16]}


def load() -> float | None:
    """Return how many processes wanted the processors, on the mean of the last minute; None where nothing tells."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):  # Windows has no such call
        return None


def threads() -> dict[str, Json]:
    """Return how many threads the matrix products of torch take, and what the environment asks of others."""
    import torch

    return {"torch": torch.get_num_threads(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}


def _cores() -> int:
    """Return how many processors this process may use."""
    usable: Any = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _processor() -> str:
    lines = CPU.read_text(encoding="utf-8").splitlines() if CPU.is_file() else []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return named or platform.processor() or platform.machine()


def _gpus() -> list[str]:
    import torch

    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]


# Timing of several callables in turn, so that a noisy machine disturbs all of them alike.

Ask = Callable[[range], object]
"""Answers the queries at these places."""
Clock = Callable[[], tuple[float, float]]
BATCH, WARM_UPS, REPEATS = 64, 3, 5
DIGITS = 6


def clock() -> tuple[float, float]:
    """Return seconds of the wall, and processor seconds of this process with all of its threads."""
    return perf_counter(), process_time()


@dataclass(frozen=True)
class Timings:
    """Seconds of one callable: of the wall, and of the processor."""

    batched: Floats
    """Shape (repeats, chunks, 2)."""
    single: Floats
    """Shape (repeats, queries, 2)."""

    @property
    def queries(self) -> int:
        """Return how many queries were answered in each repeat."""
        return int(self.single.shape[1])

    @property
    def typical(self) -> Floats:
        """Return the seconds of all chunks, of wall and processor, each the median of its repeats."""
        return np.asarray(np.median(self.batched, axis=0).sum(axis=0))

    def shown(self) -> dict[str, float]:
        """Return the figures: queries per second by batch with the slowest and fastest repeat, latencies one by one.

        A chunk's and a query's time is the median of its repeats, so that p95 is of slow queries and not of a busy
        moment.
        """
        whole, typical = self.queries / self.batched.sum(axis=1), self.queries / self.typical
        latency = 1000 * np.median(self.single[..., 0], axis=0)
        return {
            "queries": self.queries,
            "qps": _rounded(typical[0]),
            "qps_low": _rounded(whole[:, 0].min()),
            "qps_high": _rounded(whole[:, 0].max()),
            "per_cpu_second": _rounded(typical[1]),
            "p50_ms": _rounded(np.median(latency)),
            "p95_ms": _rounded(np.quantile(latency, 0.95)),
            "single_per_cpu_second": _rounded(np.median(self.queries / self.single[..., 1].sum(axis=1))),
        }


def ratio(one: Timings, other: Timings) -> dict[str, dict[str, float]]:
    """Return how many times as many queries the first answers in the same time, by batch, of wall and processor.

    Each chunk of each repeat is a pair, measured one right after the other: `value` is the median of all pairs, `low`
    and `high` are the least and the greatest median of a repeat.
    """
    pairs = other.batched / one.batched
    repeats = np.median(pairs, axis=1)
    return {
        name: {
            "value": _rounded(np.median(pairs[..., at])),
            "low": _rounded(repeats[:, at].min()),
            "high": _rounded(repeats[:, at].max()),
        }
        for at, name in enumerate(("wall", "cpu"))
    }


def in_turn(
    asks: Mapping[str, Ask],
    queries: int,
    told: Callable[[int], None] = lambda _answered: None,
    timed: Clock = clock,
    batch: int = BATCH,
    repeats: int = REPEATS,
) -> dict[str, Timings]:
    """Return the timings of every callable; `told` hears how many queries all of them have answered, in all repeats."""
    chunks = [range(start, min(start + batch, queries)) for start in range(0, queries, batch)]
    for ask in asks.values():
        for _ in range(WARM_UPS):
            ask(chunks[0])
            ask(chunks[0][:1])
    found = {name: Timings(np.zeros((repeats, len(chunks), 2)), np.zeros((repeats, queries, 2))) for name in asks}
    names, answered = list(asks), 0
    for repeat in range(repeats):
        for place, chunk in enumerate(chunks):
            order = _rotated(names, repeat + place)
            for name in order:
                found[name].batched[repeat, place] = _seconds(asks[name], chunk, timed)
            for name in order:
                for query in chunk:
                    found[name].single[repeat, query] = _seconds(asks[name], range(query, query + 1), timed)
                answered += len(chunk)
                told(answered)
    return found


def _seconds(ask: Ask, places: range, timed: Clock) -> Floats:
    before = timed()
    ask(places)
    return np.maximum(np.subtract(timed(), before), 1e-9)  # a coarse clock may stand still


def _rotated(names: Sequence[str], by: int) -> list[str]:
    at = by % len(names)
    return [*names[at:], *names[:at]]


def _rounded(value: float) -> float:
    return round(float(value), DIGITS)
