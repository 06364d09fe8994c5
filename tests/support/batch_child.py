"""A process that asks by batches and dies: `python batch_child.py KIND URL LEDGER MOMENT`.

It dies by SIGKILL right before a batch is written down (`unwritten`), right after (`written`), or after the second
reply was (`collecting`).
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from curate.ledger import Ledger
from curate.ledger.claims import Batches
from tests.support.asking import work
from tests.support.batching import collected

kind, url, path, moment = sys.argv[1:]


def deadly(work: Callable[..., Any], times: int, *, before: bool) -> Callable[..., Any]:
    """Die around the nth call."""
    calls = 0

    def wrapped(*values: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if before and calls == times:
            os.kill(os.getpid(), signal.SIGKILL)
        result = work(*values, **named)
        if calls == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return wrapped


if moment in ("unwritten", "written"):
    Batches.add = deadly(Batches.add, 1, before=moment == "unwritten")  # type: ignore[method-assign]
elif moment == "collecting":
    Ledger.append = deadly(Ledger.append, 2, before=False)  # type: ignore[method-assign]
with Ledger(Path(path)) as ledger:
    collected(url, ledger, work("SABCDSAB"), kind=kind)
