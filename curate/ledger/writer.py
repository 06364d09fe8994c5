"""Group commit: everything that waits to be written goes into one transaction, from one thread."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from curate.core.errors import DataError
from curate.core.sampling import halves

Item = TypeVar("Item")
MOST = 1_000
"""Items in one transaction; beyond it they wait for the next."""
PAUSES_S = (0.0, 5.0)
"""Before a group is tried again while the store is away: at once, for only the connection may be gone, then later."""


class Away(DataError):
    """The store can be neither read nor written just now, for reasons outside the rows."""


class Writer(Generic[Item]):
    """Give items to `commit`, together with all others that wait; each giver goes on when its own are committed.

    `commit` writes all of a group or nothing, and may be given again what it has written before.
    """

    def __init__(self, commit: Callable[[Sequence[Item]], None]) -> None:
        self._commit = commit
        self._queue: SimpleQueue[tuple[Item, asyncio.Future[None]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._unheard: BaseException | None = None

    async def put(self, item: Item) -> None:
        """Return when the item is committed; raise why it cannot be.

        An item is written even if its giver is cancelled meanwhile.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="ledger writer", daemon=True)
            self._thread.start()
        settled = asyncio.get_running_loop().create_future()
        self._queue.put((item, settled))
        await settled

    def close(self) -> None:
        """Write what waits, and end the thread; raise what went wrong where nobody waited for it any more."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        error, self._unheard = self._unheard, None
        if error is not None:
            raise error

    def _work(self) -> None:
        while group := self._group():
            errors = self._errors([item for item, _ in group])
            waiting = defaultdict(list)
            for (_, settled), error in zip(group, errors, strict=True):
                waiting[settled.get_loop()].append((settled, error))
            for loop, told in waiting.items():
                try:
                    loop.call_soon_threadsafe(self._settle, told)
                except RuntimeError:  # that loop is closed
                    self._unheard = self._unheard or next((error for _, error in told if error), None)

    def _errors(self, items: Sequence[Item]) -> list[BaseException | None]:
        """Commit items together, in halves if something is wrong with one of them; return what was wrong with each."""
        error = self._error(items)
        for pause in PAUSES_S:
            if isinstance(error, Away):
                time.sleep(pause)
                error = self._error(items)
        if error is None or isinstance(error, Away) or len(items) == 1:
            return [error] * len(items)
        return [error for half in halves(items) for error in self._errors(half)]

    def _error(self, items: Sequence[Item]) -> BaseException | None:
        try:
            self._commit(items)
        except BaseException as raised:  # noqa: BLE001 - it is raised again by everybody who waits
            return raised
        return None

    def _group(self) -> list[tuple[Item, "asyncio.Future[None]"]]:
        """Wait for an item, and return it with all others that are there; an empty list at the end."""
        group = []
        try:
            entry = self._queue.get()
            while entry is not None:
                group.append(entry)
                if len(group) == MOST:
                    return group
                entry = self._queue.get_nowait()
        except Empty:
            return group
        if group:  # the end came behind the last items: meet it again after them
            self._queue.put(None)
        return group

    def _settle(self, told: Sequence[tuple["asyncio.Future[None]", BaseException | None]]) -> None:
        for settled, error in told:
            if settled.done():  # its giver was cancelled
                self._unheard = self._unheard or error
            elif error is None:
                settled.set_result(None)
            else:
                settled.set_exception(error)
