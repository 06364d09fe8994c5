"""An SQLite file or PostgreSQL database: opening, migrations, group commits, and errors with remedies."""

import asyncio
import logging
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Generic, Literal, TypeVar

import sqlalchemy as sa
from filelock import FileLock

from curate.core.errors import ConfigError, DataError
from curate.core.sampling import halves
from curate.ledger.identities import seal
from curate.ledger.tables import MIGRATIONS, migrate, ratings, version
from curate.system.extras import needed

Item = TypeVar("Item")
MOST = 1_000
"""Maximum number of items in one transaction."""
PAUSES_S = (0.0, 5.0)
"""Seconds before each retry if the store is unreachable: first at once, because only the connection may be lost."""


class Away(DataError):
    """The store is unreachable; the rows to be written are not the reason."""


class Writer(Generic[Item]):
    """Thread that passes items to `commit` in groups; every caller continues when its own items are committed.

    `commit` writes all items of a group or none, and must accept items that it has written before.
    """

    def __init__(self, commit: Callable[[Sequence[Item]], None]) -> None:
        self._commit = commit
        self._queue: SimpleQueue[tuple[Item, asyncio.Future[None]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._unheard: BaseException | None = None

    async def put(self, item: Item) -> None:
        """Wait until the item is committed; raise the error if it cannot be.

        The item is written even if the caller is cancelled.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="ledger writer", daemon=True)
            self._thread.start()
        settled = asyncio.get_running_loop().create_future()
        self._queue.put((item, settled))
        await settled

    def close(self) -> None:
        """Write all pending items and end the thread; raise an error for which no caller was waiting."""
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
        """Commit items together, or in halves if one of them fails; return the error of each item, None for success."""
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
        """Wait for an item, and return it with all others that are pending; [] at the end."""
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


# One SQLite file or PostgreSQL database: opening, migration, and errors with remedies.

LOCK_WAIT_S = 60
"""Maximum seconds for which a writer waits for another process's transaction."""
CONNECT_WAIT_S = 30
MIGRATING = 0x637572617465
"""Number of the PostgreSQL advisory lock for migrations."""
MANY = 100_000
"""Number of ratings from which a migration is announced; it takes about a second for these."""
ROOM = 1_200
"""Bytes of disk per rating that an SQLite migration needs, mostly temporary; 1,060 were measured."""

DAMAGED = (
    "it is damaged; put a copy of it back, or look with `PRAGMA integrity_check` of the program sqlite3, save what can "
    "be read with its `.recover` into a new file, and move this one away"
)
_ELSEWHERE = "it holds other tables than this version's; move it away or name another place"
_REMEDIES = {
    "SQLITE_BUSY": "another process writes to it for over a minute; wait until that one is done",
    "SQLITE_CANTOPEN": "check that its folder may be written to, or set CURATE_HOME to another one",
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_ERROR": _ELSEWHERE,
    "SQLITE_FULL": "no space left on the disk, so free some; everything written before is kept",
    "SQLITE_IOERR": "perhaps no space left on the disk, so free some or check it; everything written before is kept",
    "SQLITE_NOTADB": "that file is something else; move it away, or set CURATE_HOME to another folder",
    "SQLITE_READONLY": "allow writing to that file and its folder, or set CURATE_HOME to another one",
    "08": "the connection is gone; check the server and run again; everything written before is kept",
    "28": "check user and password in CURATE_LEDGER",
    "3D000": "make that database first, or name another in CURATE_LEDGER",
    "42501": "let that user create and write tables in the database",
    "42": _ELSEWHERE,
    "53100": "no space left on the server's disk, so free some; everything written before is kept",
    "53300": "it serves as many clients as it may; wait, or raise its max_connections",
    "57": "the server ended the connection; run again when it is up; everything written before is kept",
}
"""Prefix of SQLite's error name, or of PostgreSQL's SQLSTATE -> remedy."""
_UNREACHED = "check that the server runs, and host, port, user, password and database in CURATE_LEDGER"


class Database:
    """An SQLAlchemy engine, and its location without the password, for messages."""

    def __init__(self, where: Path | str) -> None:
        url = url_of(where)
        self.path = Path(url.database or "") if url.get_backend_name() == "sqlite" else None
        self.place = str(self.path or url.set(password=None, query={}).render_as_string())
        # A failed statement's parameters are replies and stay out of every message.
        arguments: dict[str, object] = (
            {"connect_args": {"timeout": LOCK_WAIT_S}}
            if self.path
            else {
                "connect_args": {"connect_timeout": CONNECT_WAIT_S},
                "pool_pre_ping": True,
            }
        )
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with needed(f"{self.place}: a ledger on a server"):
            self.engine = sa.create_engine(url, hide_parameters=True, **arguments)
        try:
            self._migrate()
        except DataError:
            self.engine.dispose()
            raise

    @contextmanager
    def transaction(self, kind: Literal["", "snapshot", "statement"] = "") -> Iterator[sa.Connection]:
        """Yield a connection, and commit at the end of the block; database errors become DataErrors with a remedy.

        `snapshot` reads a consistent state while others write. `statement` is autocommit, so that others do not wait
        for a client that stops between statements.
        """
        try:
            with self.engine.connect() as connection:
                if kind == "statement":
                    connection.execution_options(isolation_level="AUTOCOMMIT")
                if kind == "snapshot" and not self.path:
                    connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    if kind == "snapshot" and self.path:
                        connection.exec_driver_sql("BEGIN")  # the driver itself begins only in front of a change
                    yield connection
        except sa.exc.DBAPIError as error:
            # PostgreSQL repeats the refused row, which may be a reply, in what it raises: so that is left out.
            kind_of = Away if isinstance(error, sa.exc.OperationalError) else DataError
            raise kind_of(f"{self.place}: {_message_of(error.orig)}; {self._remedy(error.orig)}") from None

    @contextmanager
    def alone(self, lock: int) -> Iterator[sa.Connection]:
        """Yield a connection in a transaction that excludes others with the same lock number."""
        with self.transaction() as connection:
            # a reader that turns writer may find itself too late
            connection.exec_driver_sql("BEGIN IMMEDIATE" if self.path else f"SELECT pg_advisory_xact_lock({lock})")
            yield connection

    def _remedy(self, error: BaseException | None) -> str:
        name = getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None)
        if name is None and type(error).__name__ == "OperationalError":
            return DAMAGED if self.path else _UNREACHED  # a text that is no UTF-8; no connection
        return next((text for code, text in _REMEDIES.items() if str(name).startswith(code)), "check what is in it")

    def _migrate(self) -> None:
        # SQLite lets nobody wait for a switch to WAL, nor for over a minute
        with FileLock(f"{self.path}.lock") if self.path else nullcontext():
            if self.path and self.path.is_file() and not self.path.stat().st_size:  # SQLite would take it for a new one
                raise DataError(f"{self.place}: an empty file and no ledger; put a copy of it back, or remove it")
            if self.path:
                with self.transaction() as connection:
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            with self.alone(MIGRATING) as connection:
                current, newest = version(connection), len(MIGRATIONS)
                if current > newest:
                    raise DataError(f"{self.place}: written by a newer version of curate; update curate")
                if 0 < current < newest:
                    self._prepare(connection)
                migrate(connection, current)
                sealed = seal(connection)
            if (sealed or 0 < current < newest) and self.path:
                with self.transaction("statement") as connection:
                    if not sealed:  # then it only frees disk, and waits for no reader
                        connection.exec_driver_sql("PRAGMA busy_timeout = 0")
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                    connection.exec_driver_sql(f"PRAGMA busy_timeout = {LOCK_WAIT_S * 1000}")

    def _prepare(self, connection: sa.Connection) -> None:
        """Log that the migration will take long (to standard error by default).

        DataError if the disk has too little space.
        """
        rows = connection.execute(sa.select(sa.func.count()).select_from(ratings)).scalar_one()
        needed = rows * ROOM if self.path else 0
        if self.path and (free := shutil.disk_usage(self.path.parent).free) < needed:
            raise DataError(
                f"{self.place}: bringing its {rows:,} ratings to this version's form takes {needed / 1e6:,.0f} MB of "
                f"disk for a while, and {free / 1e6:,.0f} are free; free some, nothing was changed"
            )
        if rows >= MANY:
            logging.getLogger(__name__).warning(
                "%s: bringing its %s ratings to this version's form, once; if this is stopped, nothing was changed",
                self.place,
                f"{rows:,}",
            )


def url_of(where: Path | str) -> sa.URL:
    """Return the location of a ledger as a URL.

    ConfigError (without the text, which may hold a password) if it is invalid.
    """
    if isinstance(where, Path) or "://" not in where:
        return sa.URL.create("sqlite", database=str(where))
    expected = "expected postgresql://USER:PASSWORD@HOST/DATABASE, with @ in a password written as %40"
    try:
        url = sa.make_url(where)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise ConfigError(f"CURATE_LEDGER: not a URL; {expected}") from error
    if url.get_backend_name() == "sqlite" and url.database:
        return url.set(drivername="sqlite")
    if url.get_backend_name() not in ("postgresql", "postgres") or "@" in (url.host or ""):
        raise ConfigError(f"CURATE_LEDGER: {expected}")
    return url.set(drivername="postgresql+psycopg")


def _message_of(error: BaseException | None) -> str:
    """Return the database's error message on one line, without row contents."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return str(primary or " ".join(str(error).split()))
