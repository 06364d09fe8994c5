"""The vendor in a process of its own: it survives the kills of its callers, and takes no time from theirs."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.vendor.state import Pairs, merged

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Remote:
    """A vendor that runs elsewhere: its address, and its counters when they are asked for."""

    url: str

    def counters(self) -> dict[str, Any]:
        """Return everything that is counted."""
        return dict(_get(f"{self.url}/counters"))

    def pressed(self) -> dict[str, int]:
        """Return calls, answers, busy and peak: cheap enough to be asked for many times a second."""
        return dict(_get(f"{self.url}/pressed"))

    def pairs(self, name: str) -> Pairs:
        """Return one of the counters of pairs: paid, paid_in_batches or lost."""
        return merged(self.counters(), name)


@contextmanager
def elsewhere(script: str = "last", **options: float | int | str | Path) -> Iterator[Remote]:
    """Run `python -m tests.vendor` while the block lasts; see there for the options, as in `latency=0.05`."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "port"
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        command = [sys.executable, "-m", "tests.vendor", "--port-file", str(told), "--script", script, *words]
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            yield Remote(f"http://127.0.0.1:{_port(told, process)}")
        finally:
            process.terminate()
            process.wait()


def _port(told: Path, process: "subprocess.Popen[bytes]") -> str:
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            return told.read_text()
        time.sleep(0.01)
    raise RuntimeError("the vendor did not start")


def _get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=120) as reply:
        return json.load(reply)
