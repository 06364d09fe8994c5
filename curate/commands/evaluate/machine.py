"""The machine that a speed was measured on: figures of different machines are never set side by side."""

import os
import platform
from pathlib import Path
from typing import Any

from curate.core.config import Json, digest

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
