"""A process that runs the judge stage: `python judge_child.py RUN SETTINGS JUDGES [DONE]`, two of them as JSON.

After each call it writes into the file DONE how many of its pairs are settled. LEASE_S and AT_ONCE in the environment
say how it shares the pool with others, CURATE_LEDGER where the ledger is.
"""

import json
import os
import sys
from pathlib import Path

from curate import sharing
from tests.pools import step


def note(_label: str, _total: int, done: int) -> None:
    """Say that so many pairs are in the ledger."""
    if len(sys.argv) > 4:
        Path(sys.argv[4]).write_text(f"{done:09}", encoding="ascii")


sharing.LEASE_S = float(os.environ.get("LEASE_S", sharing.LEASE_S))
sharing.AT_ONCE = int(os.environ.get("AT_ONCE", sharing.AT_ONCE))
step(Path(sys.argv[1]), "judge", json.loads(sys.argv[2]), json.loads(sys.argv[3]), note, yes=True)
