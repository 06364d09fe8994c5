"""Caps that several processes keep together: what each has taken out of the one cap that all were given."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from curate.ledger.claims import NOW
from curate.ledger.store import Ledger

if TYPE_CHECKING:
    from sqlalchemy import Connection, Update

LEASE_S = 120.0
"""A process that says nothing for so long is taken for gone, where nobody can look."""
KEPT_S = 30 * 86400.0
LUMP = 8
"""A process takes this part of what is left at a time, so it seldom has to ask; the last of it is shared finely."""
_TAKING = 0x63617073
"""Number of the lock under which one PostgreSQL client at a time takes."""


@dataclass(frozen=True)
class Room:
    """What a process may spend, and what the others under its cap have."""

    allowed: float
    """Most that this process may have spent and hold together before it asks again; 0 if there is no room."""
    elsewhere: float
    """What others have spent or hold."""
    returning: bool
    """Whether some of that may come back."""


class Caps:
    """One process's part in the cap that `scope` names; `began` is when it asked first, None before that.

    Everybody counts who was asking when this process began, or later: with all that was spent, and with what is held
    even if the holder is `gone`, for nobody knows what became of it. Each taking is one transaction.
    """

    def __init__(
        self, ledger: Ledger, owner: str, scope: str, gone: Callable[[str], bool], began: float | None = None
    ) -> None:
        import sqlalchemy as sa

        from curate.ledger import tables

        self.owner, self.scope, self.began, self._gone = owner, scope, began, gone
        self._sa, self._database, self._table = sa, ledger.database, tables.caps
        self._beside = set[str]()

    def take(self, cap: float, spent: float, held: float, least: float) -> Room:
        """Take `least` or more beside what is spent and held; if the others leave no room, give back what is unused."""
        with self._alone() as (connection, moment):
            elsewhere, returning = self._others(connection, moment)
            room = cap - elsewhere - spent - held
            granted = max(least, room / LUMP) if room >= least else 0.0
            self._write(connection, moment, spent, held + granted, asking=1)
        return Room(spent + held + granted if room >= least else 0.0, elsewhere, returning)

    def stay(self) -> None:
        """Say that this process is still there."""
        with self._alone() as (connection, moment):
            connection.execute(self._mine(until=moment))

    def leave(self, spent: float) -> None:
        """Give back all that is not spent; who spent nothing was never there."""
        with self._alone() as (connection, moment):
            if spent:
                self._write(connection, moment, spent, 0.0, asking=0)
            else:
                connection.execute(self._table.delete().where(self._table.c.owner == self.owner))

    @contextmanager
    def _alone(self) -> "Iterator[tuple[Connection, float]]":
        """Give a connection beside which nobody takes, and the time by the database's clock."""
        with self._database.alone(_TAKING) as connection:
            clock = self._sa.literal_column(NOW[connection.dialect.name], self._sa.Float)
            yield connection, float(connection.execute(self._sa.select(clock)).scalar_one())

    def _others(self, connection: "Connection", moment: float) -> tuple[float, bool]:
        """Return what others have taken, and whether another process is there that may give some of it back."""
        columns = self._table.c
        if self.began is None:
            self.began = moment
            connection.execute(self._table.delete().where(columns.until < moment - KEPT_S))
        taken, returning = 0.0, False
        query = self._table.select().where(columns.scope == self.scope, columns.owner != self.owner)
        for row in connection.execute(query):
            there = bool(row.asking) and row.until >= moment - LEASE_S and not self._gone(row.owner)
            if there or row.until > self.began or row.owner in self._beside:
                self._beside.add(row.owner)
                taken += row.spent + row.held
                returning |= there and row.held > 0
        return taken, returning

    def _write(self, connection: "Connection", moment: float, spent: float, held: float, asking: int) -> None:
        values = {"until": moment, "asking": asking, "spent": spent, "held": held}
        if not connection.execute(self._mine(**values)).rowcount:
            connection.execute(self._table.insert().values(owner=self.owner, scope=self.scope, **values))

    def _mine(self, **values: float) -> "Update":
        return self._table.update().where(self._table.c.owner == self.owner).values(**values)
