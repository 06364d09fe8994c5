"""Run the command and die by SIGKILL around its nth step on disk: `python killer.py before|after N ARGUMENTS...`.

A step is a rename or a transaction of the ledger: the moments at which something becomes true. With N = 0 nothing is
killed and the number of steps is written to steps.txt.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from curate.cli.main import main
from curate.ledger import Ledger

when, target = sys.argv[1], int(sys.argv[2])
steps = 0


def deadly(step: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **named: Any) -> Any:
        global steps  # noqa: PLW0603 - one counter for the whole process
        steps += 1
        if steps == target and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = step(*args, **named)
        if steps == target and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return wrapped


Path.replace = deadly(Path.replace)  # type: ignore[method-assign]
Ledger._commit = deadly(Ledger._commit)  # type: ignore[method-assign]
sys.argv = ["curate", *sys.argv[3:]]
try:
    main()
finally:
    Path("steps.txt").write_text(str(steps), encoding="ascii")
