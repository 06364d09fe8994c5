"""A process at the ledger that $CURATE_LEDGER names: `python ledger_child.py append|write|claim NAME ROWS [GO]`.

It waits for the file GO, and prints the number of each row once that row is written, or each key that it took.
"""

import asyncio
import sys
import time
from pathlib import Path

from curate.ledger import Call, Claims, Ledger, Rating
from curate.pipeline.stage import ledger_place

what, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def rows(number: int) -> tuple[list[Rating], Call]:
    query = f"{name}-{number}"
    ratings = [Rating(query, str(slot), "j", "r", 0, "S", "rated", slot, 3) for slot in range(3)]
    return ratings, Call("judge", "run", "j", query, "m", "stop", "x" * 2000, 0.1, "2026")


def append(ledger: Ledger) -> None:
    for number in range(count):
        ledger.append(*rows(number))
        say(number)


async def write(ledger: Ledger) -> None:
    """Keep 50 writes waiting, as as many calls in flight do."""
    numbers = iter(range(count))

    async def one_after_another() -> None:
        for number in numbers:
            await ledger.write(*rows(number))
            say(number)

    await asyncio.gather(*(one_after_another() for _ in range(50)))


def claim(ledger: Ledger) -> None:
    """Take all keys in small handfuls, and stay until told to go: the claims are held by a living owner."""
    claims = Claims(ledger, name, lease_s=600)
    keys = [str(number) for number in range(count)]
    for start in range(0, count, 7):
        for key in claims.take(keys[start : start + 7]):
            say(key)
    say("done")
    sys.stdin.read()


while len(sys.argv) > 4 and not Path(sys.argv[4]).exists():
    time.sleep(0.001)
with Ledger(ledger_place()) as opened:
    if what == "write":
        asyncio.run(write(opened))
    else:
        {"append": append, "claim": claim}[what](opened)
