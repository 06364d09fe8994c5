"""Timing of several callables in turn, and the identity of the machine.

Speeds of different machines are not compared.
"""

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from curate.core.config import Json, digest
from curate.core.figures import Record, figure
from curate.stats.tally import Floats

CPU = Path("/proc/cpuinfo")
"""File with the name of the processor, on Linux."""


class Machine(Record):
    """A machine on which speed was measured; the host name is not included."""

    processor: str = figure("name of the processor")
    cores: int = figure("processors that this process may use")
    gpus: tuple[str, ...] = figure("names of the GPUs")
    system: str = figure("operating system and architecture")
    id: str = figure("digest of the machine; figures of two machines are not comparable")


def identity() -> Machine:
    """Return the machine."""
    import torch

    lines = CPU.read_text(encoding="utf-8").splitlines() if CPU.is_file() else []
    model_name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    usable: Any = getattr(os, "sched_getaffinity", None)  # processors that this process may use; Linux only
    machine: dict[str, Any] = {
        "processor": model_name or platform.processor() or platform.machine(),
        "cores": len(usable(0)) if usable else os.cpu_count() or 1,
        "gpus": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())],
        "system": f"{platform.system()} {platform.machine()}",
    }
    return Machine.from_json({**machine, "id": digest(machine)[:16]})


def load() -> float | None:
    """Return the load average of the last minute; None if unavailable."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):  # Windows has no such call
        return None


def threads() -> dict[str, Json]:
    """Return the number of torch threads, and OMP_NUM_THREADS."""
    import torch

    return {"torch": torch.get_num_threads(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}


# Callables are timed in turn, so that noise affects all of them equally.

Ask = Callable[[range], object]
"""Function that processes the queries at these indices."""
Clock = Callable[[], tuple[float, float]]
BATCH, WARM_UPS, REPEATS = 64, 3, 5
DIGITS = 6


def clock() -> tuple[float, float]:
    """Return wall-clock seconds, and processor seconds of all threads of this process."""
    return perf_counter(), process_time()


class Timing(Record):
    """Speed of one callable; the time of a chunk or query is the median over repeats.

    So p95 reflects slow queries instead of moments of load.
    """

    queries: int = figure("queries per repeat")
    qps: float = figure("queries per second in batches, median of the repeats")
    qps_low: float = figure("queries per second of the slowest repeat")
    qps_high: float = figure("queries per second of the fastest repeat")
    per_cpu_second: float = figure("queries per second of processor time, in batches")
    p50_ms: float = figure("median milliseconds of a single query", digits=2)
    p95_ms: float = figure("95th percentile of the milliseconds of a single query", digits=2)
    single_per_cpu_second: float = figure("queries per second of processor time, one by one")


class SpeedSpread(Record, schema_name="spread"):
    """A ratio of speeds over all pairs of consecutive measurements."""

    value: float = figure("median of the repeats")
    low: float = figure("smallest median of a repeat")
    high: float = figure("largest median of a repeat")


@dataclass(frozen=True)
class Timings:
    """Timings of one callable in seconds; the last axis is (wall clock, processor)."""

    batched: Floats
    """Seconds per chunk of queries, shape (repeats, chunks, 2)."""
    single: Floats
    """Seconds per single query, shape (repeats, queries, 2)."""

    @property
    def queries(self) -> int:
        """Return the number of queries per repeat."""
        return int(self.single.shape[1])

    @property
    def typical(self) -> Floats:
        """Return the total seconds (wall clock, processor): the sum over chunks of each chunk's median over repeats."""
        return np.asarray(np.median(self.batched, axis=0).sum(axis=0))

    def figures(self) -> Timing:
        """Return rates of batches, with the slowest and fastest repeat, and latencies of single queries."""
        rates_by_repeat, typical = self.queries / self.batched.sum(axis=1), self.queries / self.typical
        latency = 1000 * np.median(self.single[..., 0], axis=0)
        return Timing(
            queries=self.queries,
            qps=_rounded(typical[0]),
            qps_low=_rounded(rates_by_repeat[:, 0].min()),
            qps_high=_rounded(rates_by_repeat[:, 0].max()),
            per_cpu_second=_rounded(typical[1]),
            p50_ms=_rounded(np.median(latency)),
            p95_ms=_rounded(np.quantile(latency, 0.95)),
            single_per_cpu_second=_rounded(np.median(self.queries / self.single[..., 1].sum(axis=1))),
        )


def ratio(first: Timings, second: Timings) -> dict[str, SpeedSpread]:
    """Return the speed of the first callable relative to the second in batches, for wall clock and processor.

    Each chunk of each repeat is a pair of consecutive measurements.
    """
    pairs = second.batched / first.batched
    repeats = np.median(pairs, axis=1)
    return {
        name: SpeedSpread(
            _rounded(np.median(pairs[..., clock_index])),
            _rounded(repeats[:, clock_index].min()),
            _rounded(repeats[:, clock_index].max()),
        )
        for clock_index, name in enumerate(("wall", "cpu"))
    }


def in_turn(
    asks: Mapping[str, Ask],
    queries: int,
    told: Callable[[int], None] = lambda _answered: None,
    timed: Clock = clock,
    batch: int = BATCH,
    repeats: int = REPEATS,
) -> dict[str, Timings]:
    """Return the timings of every callable; `told` is called with the number of queries processed in total."""
    chunks = [range(start, min(start + batch, queries)) for start in range(0, queries, batch)]
    for ask in asks.values():
        for _ in range(WARM_UPS):
            ask(chunks[0])
            ask(chunks[0][:1])
    timings = {name: Timings(np.zeros((repeats, len(chunks), 2)), np.zeros((repeats, queries, 2))) for name in asks}
    names, answered = list(asks), 0
    for repeat in range(repeats):
        for index, chunk in enumerate(chunks):
            start = (repeat + index) % len(names)
            order = [*names[start:], *names[:start]]
            for name in order:
                timings[name].batched[repeat, index] = _seconds(asks[name], chunk, timed)
            for name in order:
                for query in chunk:
                    timings[name].single[repeat, query] = _seconds(asks[name], range(query, query + 1), timed)
                answered += len(chunk)
                told(answered)
    return timings


def _seconds(ask: Ask, indices: range, timed: Clock) -> Floats:
    start = timed()
    ask(indices)
    return np.maximum(np.subtract(timed(), start), 1e-9)  # not 0: a coarse clock may show no difference


def _rounded(seconds: float) -> float:
    return round(float(seconds), DIGITS)
