"""Local engine: maps a function over the parts of a corpus on this machine, one after another or in processes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context

from pydantic import Field

from curate.core.config import Section
from curate.core.errors import RunFailed
from curate.core.protocols import Result, Task
from curate.system.processes import without_script

TRIES = 4
"""Maximum number of times that processes are started, each time after one of them has died."""


class Config(Section):
    """Into how many parts a corpus is cut, and how many are worked on at once."""

    shards: int = Field(default=1, ge=1)
    processes: int = Field(default=1, ge=1)
    """Each with a copy of the model and with threads for all cores; 1 takes part after part in this process."""


class Local:
    """Engine that maps a function over tasks on this machine; tasks whose process dies are repeated."""

    def __init__(self, config: Config) -> None:
        self.config, self.shards = config, config.shards

    def workers(self) -> "Local | None":
        """Return this engine; None if it only uses this process."""
        return self if self.config.processes > 1 else None

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield the function's result for every task, in order; its errors are raised unchanged.

        RunFailed if processes keep dying.
        """
        if self.config.processes == 1:
            yield from map(function, tasks)
            return
        waiting = list(tasks)
        for _ in range(TRIES):
            # Not forked: threads of models and tables would be copied in the middle of their work.
            pool = ProcessPoolExecutor(self.config.processes, mp_context=get_context("spawn"))
            try:
                with suppress(BrokenProcessPool):
                    with without_script():
                        futures = [pool.submit(function, task) for task in waiting]
                    for future in futures:
                        result = future.result()
                        del waiting[0]
                        yield result
            finally:
                pool.shutdown(cancel_futures=True)
            if not waiting:
                return
        raise RunFailed(
            f"engine: processes died {TRIES} times; if memory is short, set more engine.shards, or fewer "
            "engine.processes"
        )
