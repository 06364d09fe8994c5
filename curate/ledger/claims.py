"""Claims on work in progress, so that several processes and machines judge one pool without asking twice."""

import time
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from curate.core.sampling import chunks
from curate.ledger.store import Ledger

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

AT_ONCE = 1_000
"""Maximum keys in one statement."""
NOW = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch FROM clock_timestamp())::double precision",
}
"""Seconds of the epoch by the clock of the database."""


class Claims:
    """The claims of one owner, whose name nobody else uses; each ends when its lease does, unless it is renewed.

    Keys are taken by two statements in autocommit. The first inserts missing rows; the second takes free rows and skips
    those that another transaction has locked (`FOR UPDATE SKIP LOCKED`). So nobody waits for a machine that stops while
    claiming, and claims of the same keys cannot deadlock. In SQLite writers take turns anyway. Time is the database's,
    or that of one clock shared by all owners.
    """

    def __init__(self, ledger: Ledger, owner: str, lease_s: float, clock: Callable[[], float] | None = None) -> None:
        import sqlalchemy as sa

        from curate.ledger import tables

        self.owner, self.lease_s, self._clock = owner, lease_s, clock
        self.held: set[str] = set()
        """What was taken, and not given back or found to be another's by then."""
        self._until = 0.0
        self._sa, self._database, self._table, self._insert = sa, ledger.database, tables.claims, tables.insert

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._change(self._table.delete().where(self._table.c.owner == self.owner))

    def take(self, keys: Collection[str]) -> set[str]:
        """Return the keys that this owner holds now: free ones, expired ones, and its own, renewed.

        Other keys are held by others, or were being released at that moment.
        """
        columns, now = self._table.c, self._now()
        granted, until = set[str](), self._ends()
        for chunk in chunks(sorted(set(keys)), AT_ONCE):  # in one order: who waits for another is never waited for
            self._ensure(chunk)
            free = (
                self._sa.select(columns.key)
                .where(columns.key.in_(chunk), (columns.expires <= now) | (columns.owner == self.owner))
                .order_by(columns.key)
                .with_for_update(skip_locked=True)  # SQLite knows no such lock, and it is left out there
            )
            granted |= self._change(self._ours().where(columns.key.in_(free)))
        self._until = min(self._until, until) if self.held else until
        self.held |= granted
        return granted

    def renew(self) -> set[str]:
        """Renew the lease of every key that this owner still holds, and return these."""
        held_before, until = frozenset(self.held), self._ends()
        ours = self._change(self._ours().where(self._table.c.owner == self.owner))
        self.held -= held_before - ours  # another thread may have taken more meanwhile
        self._until = until
        return ours

    def sure(self) -> bool:
        """Return whether the lease of `held` certainly still runs, by a clock that counts sleep."""
        return self._until > (self._clock or time.time)()

    def release(self, keys: Collection[str]) -> None:
        """Release keys; those that another owner has taken over meanwhile are skipped."""
        self.held.difference_update(keys)
        delete_own = self._table.delete().where(self._table.c.owner == self.owner)
        for chunk in chunks(sorted(set(keys)), AT_ONCE):
            self._change(delete_own.where(self._table.c.key.in_(chunk)))

    def owners(self) -> set[str]:
        """Return the owners of claims, expired ones too."""
        with self._database.transaction() as connection:
            return set(
                connection.scalars(self._sa.select(self._table.c.owner).distinct().where(self._table.c.owner != ""))
            )

    def forget(self, owner: str) -> None:
        """Release all claims of an owner that is known to have ended."""
        self._change(self._table.delete().where(self._table.c.owner == owner))

    def _ensure(self, keys: Sequence[str]) -> None:
        """Insert missing rows; looked up first, since even ON CONFLICT would wait for a locked row."""
        column = self._table.c.key
        with self._database.transaction("statement") as connection:
            existing = set(connection.scalars(self._sa.select(column).where(column.in_(keys))))
            rows = [(key, "", 0.0) for key in keys if key not in existing]
            if rows:
                dialect = self._database.engine.dialect
                statement = self._insert(self._table, dialect, len(rows))
                connection.exec_driver_sql(statement, tuple(chain.from_iterable(rows)))

    def _ours(self) -> Any:  # noqa: ANN401 - an update
        return self._table.update().values(owner=self.owner, expires=self._now() + self.lease_s)

    def _change(self, change: Any) -> set[str]:  # noqa: ANN401 - an update or a deletion
        with self._database.transaction("statement") as connection:
            return set(connection.scalars(change.returning(self._table.c.key)))

    def _ends(self) -> float:
        return (self._clock or time.time)() + self.lease_s

    def _now(self) -> "ColumnElement[float]":
        if self._clock is not None:
            return self._sa.literal(self._clock())
        return self._sa.literal_column(NOW[self._database.engine.dialect.name], self._sa.Float)
