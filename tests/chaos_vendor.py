"""The vendor of the long chaos run, in a process of its own: `python -m tests.chaos_vendor FOLDER PAIRS BATCH SECONDS`.

It bills every request that it worked on, also those whose answer never reached the caller, and writes each into
FOLDER/bills.jsonl at once. Answers take as long as spreads the PAIRS that are left over the SECONDS that are left.
The port stands in FOLDER/port once it listens.
"""

import json
import logging
import random
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from tests.vendor import Answer, Call, Fault, Vendor, chaos, error, refusal, slow, vendor
from tests.vendor.scripts import last

LANES = 8
"""Calls that the caller has in flight at the most."""
USEFUL = 0.6
"""About the share of answers that faults and kills leave of all."""
SLOWEST_S, TIMEOUT_S = 10.0, 15.0
"""What an answer takes at the most, and how long the caller waits."""
PRICES: Mapping[str, tuple[float, float]] = {"m-1": (2.0, 8.0), "m-2": (3.0, 15.0)}
"""Model -> price of a million prompt and output tokens."""
STUBBORN = "第7组"
"""Passages that are refused at every try begin so, when they are asked about with the first query."""
MORE: Mapping[str, Fault] = {"gateway": error(504), "timeout": slow(TIMEOUT_S + 3)}
BILLED = {200, 504}


class Bills:
    """Draws the faults, keeps the pace, and writes the bills."""

    def __init__(self, out: TextIO, pairs: int, batch: int, seconds: float) -> None:
        self.out, self.pairs, self.batch = out, pairs, batch
        self.until = time.monotonic() + seconds
        self.chaos, self.chance, self.good = chaos(seed=29), random.Random(31), set[tuple[str, str, str]]()
        self.server: Vendor

    def __call__(self, call: Call) -> Fault:
        """Return the fault of a call, which bills it."""
        self.server.latency = self.pace()
        kind, fault = self.drawn(call)

        def billing(plain: Answer) -> Answer:
            given = fault(plain) if fault else plain
            self.write(call, kind, plain, given)
            return given

        return billing

    def pace(self) -> float:
        """Return the seconds that an answer takes now."""
        left = max(1.0, (self.pairs - len(self.good)) / self.batch)
        return min(SLOWEST_S, max(0.02, (self.until - time.monotonic()) * USEFUL * LANES / left))

    def drawn(self, call: Call) -> tuple[str, Fault | None]:
        """Return the name of a fault and the fault; those of the connection that `chaos` lacks come beside it."""
        if "第0号" in call.query and any(text.startswith(STUBBORN) for text in call.passages.values()):
            return "stubborn", refusal
        if self.chance.random() < 0.01:
            return (kind := self.chance.choice(sorted(MORE))), MORE[kind]
        before = self.chaos.drawn.copy()
        fault = self.chaos(call)
        return next(iter(self.chaos.drawn - before), ""), fault

    def write(self, call: Call, kind: str, plain: Answer, given: Answer) -> None:
        """Write down what a call costs, and whether a sound answer was sent."""
        usage, (dear, dearer) = plain.usage or {}, PRICES[call.model]
        billed = given.status in BILLED
        cost = (usage["prompt"] * dear + usage["output"] * dearer) / 1e6 if billed else 0.0
        row = {"model": call.model, "kind": kind, "billed": billed, "cost": cost, "read": given.paid}
        self.out.write(json.dumps(row | {"query": call.query, "texts": list(call.passages.values())}) + "\n")
        self.out.flush()
        if kind in ("", "slow", "dribbled", "fenced", "no usage"):
            self.good.update(call.pairs)


def main() -> None:
    """Serve until SIGTERM."""
    folder, pairs, batch, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of every caller that was killed
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    with (folder / "bills.jsonl").open("w", encoding="utf-8") as out:
        bills = Bills(out, pairs, batch, seconds)
        with vendor(last, bills, keep=False) as bills.server:
            (folder / "part").write_text(bills.server.url, encoding="ascii")
            (folder / "part").replace(folder / "port")
            signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main()
