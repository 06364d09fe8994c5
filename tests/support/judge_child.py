"""A process that runs the judge stage: `python judge_child.py RUN SETTINGS JUDGES [DONE]`, two of them as JSON.

After each call it writes into the file DONE how many of its pairs are settled. LEASE_S and AT_ONCE in the environment
say how it shares the pool with others, CURATE_LEDGER where the ledger is. With BATCH it asks by batches, and with
DIE=N it dies by SIGKILL after the Nth reply of a batch is written down.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from curate.ask import engine
from curate.ledger import Ledger
from curate.llm.client.batch import judge_batches
from tests.support.batching import FAST
from tests.support.pools import step


def note(_label: str, _total: int, done: int, _money: str = "") -> None:
    """Say that so many pairs are in the ledger."""
    if len(sys.argv) > 4:
        Path(sys.argv[4]).write_text(f"{done:09}", encoding="ascii")


def say(line: str) -> None:
    """Show a line of news at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def mortal(ledger: Ledger, *rows: Any) -> str | None:
    """Append, and die if it was the last time."""
    global lives
    written, lives = append(ledger, *rows), lives - 1
    if not lives:
        os.kill(os.getpid(), signal.SIGKILL)
    return written


lives, append = int(os.environ.get("DIE", "0")), Ledger.append
Ledger.append = mortal  # type: ignore[method-assign,assignment]
setattr(judge_batches, "PollingPolicy", lambda: FAST)  # noqa: B010 - mypy
engine.LEASE_S = float(os.environ.get("LEASE_S", engine.LEASE_S))
engine.PAUSE_S = 0.1
engine.AT_ONCE = int(os.environ.get("AT_ONCE", engine.AT_ONCE))
step(
    Path(sys.argv[1]),
    "judge",
    json.loads(sys.argv[2]),
    json.loads(sys.argv[3]),
    note,
    say,
    yes=True,
    batch="BATCH" in os.environ,
)
