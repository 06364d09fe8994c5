"""Claims: who asks what just now, so that several processes and machines judge one pool without asking twice."""

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
"""Keys in one statement."""
NOW = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch FROM clock_timestamp())::double precision",
}
"""Seconds of the epoch by the clock of the database."""


class Claims:
    """The claims of one owner, whose name nobody else uses; each ends when its lease does, unless it is renewed.

    Keys are taken by two changes, each a statement that the database commits by itself. The first makes one row per key
    that has none; the second takes the rows that are free, and passes over those that another transaction has locked
    (`FOR UPDATE SKIP LOCKED`). So nobody waits for a machine that stops in the middle of claiming, and two that claim
    the same keys cannot lock each other out. In SQLite writers take turns anyway. Time is the database's, or that of
    one clock which all owners share.
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
        """Return those of the keys that are this owner's now: free ones, expired ones, and its own, renewed.

        A key that is left out is another's, or was being released at that moment.
        """
        columns, now = self._table.c, self._now()
        taken, until = set[str](), self._ends()
        for chunk in chunks(sorted(set(keys)), AT_ONCE):  # in one order: who waits for another is never waited for
            self._ensure(chunk)
            free = (
                self._sa.select(columns.key)
                .where(columns.key.in_(chunk), (columns.expires <= now) | (columns.owner == self.owner))
                .order_by(columns.key)
                .with_for_update(skip_locked=True)  # SQLite knows no such lock, and it is left out there
            )
            taken |= self._change(self._ours().where(columns.key.in_(free)))
        self._until = min(self._until, until) if self.held else until
        self.held |= taken
        return taken

    def renew(self) -> set[str]:
        """Let the lease of every key that is still this owner's begin again, and return them."""
        before, until = frozenset(self.held), self._ends()
        ours = self._change(self._ours().where(self._table.c.owner == self.owner))
        self.held -= before - ours  # another thread may have taken more meanwhile
        self._until = until
        return ours

    def sure(self) -> bool:
        """Say whether what is `held` is certainly this owner's: by a clock that no sleep stops its lease still runs."""
        return self._until > (self._clock or time.time)()

    def release(self, keys: Collection[str]) -> None:
        """Give keys back; those that another has taken over meanwhile stay that one's."""
        self.held.difference_update(keys)
        mine = self._table.delete().where(self._table.c.owner == self.owner)
        for chunk in chunks(sorted(set(keys)), AT_ONCE):
            self._change(mine.where(self._table.c.key.in_(chunk)))

    def owners(self) -> set[str]:
        """Return the owners of claims, expired ones too."""
        with self._database.transaction() as connection:
            return set(
                connection.scalars(self._sa.select(self._table.c.owner).distinct().where(self._table.c.owner != ""))
            )

    def forget(self, owner: str) -> None:
        """Give back all that an owner holds, who is known to be gone."""
        self._change(self._table.delete().where(self._table.c.owner == owner))

    def _ensure(self, keys: Sequence[str]) -> None:
        """Make rows for keys that have none; where there is one, even ON CONFLICT would wait for who is changing it."""
        column = self._table.c.key
        with self._database.transaction("statement") as connection:
            there = set(connection.scalars(self._sa.select(column).where(column.in_(keys))))
            rows = [(key, "", 0.0) for key in keys if key not in there]
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
