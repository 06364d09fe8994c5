"""Budgets shared by several processes: the amount that each of them has taken."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from curate.ledger.claims import NOW
from curate.ledger.store import Ledger

if TYPE_CHECKING:
    from sqlalchemy import Connection, Update

LEASE_S = 120.0
"""Seconds of silence after which a process of another machine counts as ended."""
KEPT_S = 30 * 86400.0
LUMP = 8
"""A process takes this fraction (1/LUMP) of the remainder at a time: few queries, and fine shares near the end."""
_TAKING = 0x63617073
"""Number of the PostgreSQL advisory lock for taking."""


@dataclass(frozen=True)
class Room:
    """The amount that one process may spend, and what the others under the same budget have taken."""

    allowed: float
    """Maximum that this process may have spent and reserved together before it asks again; 0 if there is no room."""
    elsewhere: float
    """Amount spent or reserved by others."""
    returning: bool
    """Whether others may release some of their reservations."""


class Caps:
    """One process's part in the budget named `scope`; `began` is the time of its first request, None before that.

    All processes count that were active when this one began, or later: with all they spent, and with their
    reservations even if they are `gone`, since the outcome of those calls is unknown. `take` is one transaction.
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
        """Take at least `least` in addition to spent and held amounts; if there is no room, release the unused part."""
        with self._exclusive() as (connection, moment):
            elsewhere, returning = self._taken_by_others(connection, moment)
            room = cap - elsewhere - spent - held
            granted = max(least, room / LUMP) if room >= least else 0.0
            self._write(connection, moment, spent, held + granted, asking=1)
        return Room(spent + held + granted if room >= least else 0.0, elsewhere, returning)

    def stay(self) -> None:
        """Renew this process's lease."""
        with self._exclusive() as (connection, moment):
            connection.execute(self._mine(until=moment))

    def leave(self, spent: float) -> None:
        """Release all that is not spent; the row of a process that spent nothing is deleted."""
        with self._exclusive() as (connection, moment):
            if spent:
                self._write(connection, moment, spent, 0.0, asking=0)
            else:
                connection.execute(self._table.delete().where(self._table.c.owner == self.owner))

    @contextmanager
    def _exclusive(self) -> "Iterator[tuple[Connection, float]]":
        """Yield a connection that holds the budget lock, and the database's current time."""
        with self._database.alone(_TAKING) as connection:
            clock = self._sa.literal_column(NOW[connection.dialect.name], self._sa.Float)
            yield connection, float(connection.execute(self._sa.select(clock)).scalar_one())

    def _taken_by_others(self, connection: "Connection", moment: float) -> tuple[float, bool]:
        """Return the amount taken by others, and whether an active process may release some of it."""
        columns = self._table.c
        if self.began is None:
            self.began = moment
            connection.execute(self._table.delete().where(columns.until < moment - KEPT_S))
        taken_by_others, returning = 0.0, False
        query = self._table.select().where(columns.scope == self.scope, columns.owner != self.owner)
        for row in connection.execute(query):
            is_active = bool(row.asking) and row.until >= moment - LEASE_S and not self._gone(row.owner)
            if is_active or row.until > self.began or row.owner in self._beside:
                self._beside.add(row.owner)
                taken_by_others += row.spent + row.held
                returning |= is_active and row.held > 0
        return taken_by_others, returning

    def _write(self, connection: "Connection", moment: float, spent: float, held: float, asking: int) -> None:
        values = {"until": moment, "asking": asking, "spent": spent, "held": held}
        if not connection.execute(self._mine(**values)).rowcount:
            connection.execute(self._table.insert().values(owner=self.owner, scope=self.scope, **values))

    def _mine(self, **values: float) -> "Update":
        return self._table.update().where(self._table.c.owner == self.owner).values(**values)
