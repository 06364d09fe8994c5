"""Group commit: everything that waits to be written goes into one transaction, from one thread."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")
MOST = 1_000
"""Items in one transaction; beyond it they wait for the next."""


class Writer(Generic[Item]):
    """Give items to `commit`, together with all others that wait; each giver goes on when its own are committed."""

    def __init__(self, commit: Callable[[Sequence[Item]], None]) -> None:
        self._commit = commit
        self._queue: SimpleQueue[tuple[Item, asyncio.Future[None]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._unheard: BaseException | None = None

    async def put(self, item: Item) -> None:
        """Return when the item is committed; raise what its transaction raised.

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
            error: BaseException | None = None
            try:
                self._commit([item for item, _ in group])
            except BaseException as raised:  # noqa: BLE001 - it is raised again by everybody who waits
                error = raised
            waiting = defaultdict(list)
            for _, settled in group:
                waiting[settled.get_loop()].append(settled)
            for loop, futures in waiting.items():
                try:
                    loop.call_soon_threadsafe(_settle, futures, error)
                except RuntimeError:  # that loop is closed
                    self._unheard = self._unheard or error

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


def _settle(futures: Sequence["asyncio.Future[None]"], error: BaseException | None) -> None:
    for each in futures:
        if each.done():  # its giver was cancelled
            continue
        if error is None:
            each.set_result(None)
        else:
            each.set_exception(error)
