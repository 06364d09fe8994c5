"""A process that writes to a ledger: `python ledger_child.py LEDGER NAME ROWS [GO]`; it waits for the file GO.

It prints the number of each row once that row is written.
"""

import sys
import time
from pathlib import Path

from curate.ledger import Call, Ledger, Rating

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
while len(sys.argv) > 4 and not Path(sys.argv[4]).exists():
    time.sleep(0.001)
with Ledger(path) as ledger:
    for number in range(count):
        call = Call("judge", "run", "j", f"{name}-{number}", "m", "stop", "x" * 2000, 0.1, "2026")
        ledger.append(
            [Rating(f"{name}-{number}", str(slot), "j", "r", 0, "S", "rated", slot, 3) for slot in range(3)], call
        )
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
