"""Group commit: all pending items are written in one transaction, by one thread."""

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
"""Maximum items in one transaction."""
PAUSES_S = (0.0, 5.0)
"""Seconds before retries while the store is unreachable: at once, since only the connection may be lost, then later."""


class Away(DataError):
    """The store is unreachable, for reasons unrelated to the rows."""


class Writer(Generic[Item]):
    """Pass items to `commit` in groups; every caller continues when its own are committed.

    `commit` writes all of a group or nothing, and may get items again that it has written before.
    """

    def __init__(self, commit: Callable[[Sequence[Item]], None]) -> None:
        self._commit = commit
        self._queue: SimpleQueue[tuple[Item, asyncio.Future[None]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._unheard: BaseException | None = None

    async def put(self, item: Item) -> None:
        """Return when the item is committed; raise the error if it cannot be.

        An item is written even if its caller is cancelled meanwhile.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="ledger writer", daemon=True)
            self._thread.start()
        settled = asyncio.get_running_loop().create_future()
        self._queue.put((item, settled))
        await settled

    def close(self) -> None:
        """Write all pending items, and end the thread; raise errors that no caller was waiting for."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        error, self._unheard = self._unheard, None
        if error is not None:
            raise error

    def _work(self) -> None:
        while group := self._group():
            errors = self._errors([pending_item for pending_item, _ in group])
            waiting = defaultdict(list)
            for (_, settled), error in zip(group, errors, strict=True):
                waiting[settled.get_loop()].append((settled, error))
            for loop, outcomes in waiting.items():
                try:
                    loop.call_soon_threadsafe(self._settle, outcomes)
                except RuntimeError:  # that loop is closed
                    self._unheard = self._unheard or next((error for _, error in outcomes if error), None)

    def _errors(self, items: Sequence[Item]) -> list[BaseException | None]:
        """Commit items together, in halves if one of them fails; return the error of each."""
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
        """Wait for an item, and return it with all other pending ones; [] at the end."""
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

    def _settle(self, outcomes: Sequence[tuple["asyncio.Future[None]", BaseException | None]]) -> None:
        for settled, error in outcomes:
            if settled.done():  # its giver was cancelled
                self._unheard = self._unheard or error
            elif error is None:
                settled.set_result(None)
            else:
                settled.set_exception(error)
