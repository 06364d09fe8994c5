"""Run the vendor until SIGTERM: `python -m tests.vendor --port-file F --script last --counters FILE`.

The port stands in its file once the server listens. GET /counters and /pressed tell what was counted so far; what was
counted in all is written to the file of --counters at the end.
"""

import argparse
import json
import signal
from pathlib import Path

from tests.vendor import Rate, chaos, vendor
from tests.vendor.scripts import SCRIPTS


def main() -> None:
    """Serve by the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.vendor", description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="last")
    parser.add_argument("--counters", type=Path)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that every answer takes")
    parser.add_argument("--chaos", type=int, help="seed of the faults; none without it")
    parser.add_argument("--share", type=float, default=0.2, help="share of calls with a fault")
    parser.add_argument("--requests", type=int, help="most requests in a window")
    parser.add_argument("--tokens", type=int, help="most tokens in a window")
    parser.add_argument("--window", type=float, default=60.0, help="its length in seconds")
    given = parser.parse_args()
    faults = () if given.chaos is None else chaos(given.chaos, given.share)
    rate = Rate(given.requests, given.tokens, given.window)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    with vendor(SCRIPTS[given.script], faults, latency=given.latency, rate=rate, keep=False) as server:
        _write(given.port_file, server.url.rpartition(":")[2])
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
    if given.counters is not None:
        _write(given.counters, json.dumps(server.counters(), ensure_ascii=False))


def _write(path: Path, text: str) -> None:
    """Write a file that others wait for: it is there in whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


main()
