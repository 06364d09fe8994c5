"""Claims of keys, open batches and shared budgets of processes with a common ledger, so that nothing is paid twice."""

import datetime as dt
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from curate.core.config import Json, canonical
from curate.core.errors import DataError
from curate.core.sampling import chunks
from curate.ledger.store import Ledger

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

AT_ONCE = 1_000
"""Maximum number of keys in one statement."""
NOW = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch FROM clock_timestamp())::double precision",
}
"""Database -> SQL expression of its current time, in seconds since the epoch."""


class Claims:
    """The claims of one owner, whose name is unique; a claim expires with its lease unless it is renewed.

    Keys are claimed by two statements in autocommit mode. The first inserts missing rows; the second takes free rows
    and skips those locked by another transaction (`FOR UPDATE SKIP LOCKED`). So nobody waits for a machine that stops
    while claiming, and claims of the same keys cannot deadlock. SQLite serialises writers anyway. Time is that of the
    database, or of a clock shared by all owners.
    """

    def __init__(self, ledger: Ledger, owner: str, lease_s: float, clock: Callable[[], float] | None = None) -> None:
        import sqlalchemy as sa

        from curate.ledger import tables

        self.owner, self.lease_s, self._clock = owner, lease_s, clock
        self.held: set[str] = set()
        """Keys that were claimed, and neither released nor found to be taken over by another owner."""
        self._until = 0.0
        self._sa, self._database, self._table, self._insert = sa, ledger.database, tables.claims, tables.insert

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._change(self._table.delete().where(self._table.c.owner == self.owner))

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim keys, and return those that this owner holds: free and expired ones, and its own ones, renewed.

        The others are held by other owners, or were being released at that moment.
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
        """Renew the lease of every key that this owner still holds, and return these keys."""
        held_before, until = frozenset(self.held), self._ends()
        ours = self._change(self._ours().where(self._table.c.owner == self.owner))
        self.held -= held_before - ours  # another thread may have taken more meanwhile
        self._until = until
        return ours

    def sure(self) -> bool:
        """Return whether the lease of `held` is certainly valid; the clock also runs while the machine is suspended."""
        return self._until > (self._clock or time.time)()

    def release(self, keys: Collection[str]) -> None:
        """Release keys; those that another owner has taken over meanwhile are skipped."""
        self.held.difference_update(keys)
        delete_own = self._table.delete().where(self._table.c.owner == self.owner)
        for chunk in chunks(sorted(set(keys)), AT_ONCE):
            self._change(delete_own.where(self._table.c.key.in_(chunk)))

    def owners(self) -> set[str]:
        """Return the names of all owners of claims, including expired claims."""
        with self._database.transaction() as connection:
            return set(
                connection.scalars(self._sa.select(self._table.c.owner).distinct().where(self._table.c.owner != ""))
            )

    def forget(self, owner: str) -> None:
        """Release all claims of an owner that has ended."""
        self._change(self._table.delete().where(self._table.c.owner == owner))

    def _ensure(self, keys: Sequence[str]) -> None:
        """Insert missing rows.

        Existing ones are looked up first, because even ON CONFLICT would wait for a locked row.
        """
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


# Open batches of vendors, recorded before a process waits for them, so that a paid batch is collected.

OPEN = "open"


@dataclass(frozen=True, slots=True)
class Batch:
    """A submitted batch, with the data needed to read its results, but without texts."""

    batch_id: str
    provider: str
    judge_digest: str
    rubric_digest: str
    replicate: int
    run: str
    """Id of the run that submitted it and pays for it."""
    state: str
    """`open` until its results are collected; then its final state."""
    created: str
    items: Mapping[str, Any]
    """Request digest -> {"query_digest": ..., "slots": [passage digests in the order of the prompt], "bound": ...}.

    `bound` is the maximum cost, in the currency of the price; batches of version 0.1 have none.
    """


class Batches:
    """The submitted batches of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        from curate.ledger.tables import batches

        self._database, self._table = ledger.database, batches

    def add(
        self,
        batch_id: str,
        provider_name: str,
        judge_digest: str,
        rubric_digest: str,
        replicate: int,
        run: str,
        items: Mapping[str, Mapping[str, Json]],
    ) -> None:
        """Record a batch that a vendor accepted; DataError if its id exists."""
        row = {
            "batch_id": batch_id,
            "provider": provider_name,
            "judge_digest": judge_digest,
            "rubric_digest": rubric_digest,
            "replicate": replicate,
            "run": run,
            "state": OPEN,
            "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "items": canonical(items),
        }
        with self._database.transaction() as connection:
            connection.execute(self._table.insert(), row)

    def open(self, judge_digest: str, rubric_digest: str, replicate: int = 0) -> list[Batch]:
        """Return a judge's batches under a rubric that are not collected yet, oldest first."""
        columns = self._table.c
        query = (
            self._table.select()
            .where(columns.judge_digest == judge_digest, columns.rubric_digest == rubric_digest)
            .where(columns.replicate == replicate, columns.state == OPEN)
            .order_by(columns.created, columns.batch_id)
        )
        with self._database.transaction() as connection:
            rows = [row._asdict() for row in connection.execute(query)]
        return [Batch(**{**row, "items": json.loads(row["items"])}) for row in rows]

    def known(self, batch_id: str) -> bool:
        """Return whether a batch is recorded, open or not."""
        query = self._table.select().where(self._table.c.batch_id == batch_id)
        with self._database.transaction() as connection:
            return connection.execute(query).first() is not None

    def close(self, batch_id: str, state: str) -> None:
        """Record the final state of a batch; DataError if its id is unknown."""
        change = self._table.update().where(self._table.c.batch_id == batch_id).values(state=state)
        with self._database.transaction() as connection:
            if not connection.execute(change).rowcount:
                raise DataError(f"{self._database.place}: no batch {batch_id!r}; it was never written down")


# Budgets shared by several processes: the amount that each of them has taken.

if TYPE_CHECKING:
    from sqlalchemy import Connection, Update

LEASE_S = 120.0
"""Seconds without a renewed lease after which a process on another machine counts as ended."""
KEPT_S = 30 * 86400.0
LUMP = 8
"""A process takes 1/LUMP of the remaining budget at a time: few database queries, and small amounts near the end."""
_TAKING = 0x63617073
"""Number of the PostgreSQL advisory lock for taking parts of a budget."""


@dataclass(frozen=True)
class Room:
    """Amount that one process may spend, and the amount taken by others under the same budget."""

    allowed: float
    """Maximum sum of spent and reserved amounts until this process asks again; 0 if the budget is exhausted."""
    elsewhere: float
    """Amount spent or reserved by others."""
    returning: bool
    """Whether other processes may still release some of their reservations."""


class Caps:
    """One process's share of the budget named `scope`; `began` is the time of its first request, None before that.

    The budget counts all processes that were active when this one began, or later: the amounts that they spent and
    reserved. Reservations of ended processes (`gone`) count as well, because the outcome of their calls is unknown.
    `take` is one transaction.
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
        """Return the room after reserving at least `least` in addition to `spent` and `held`.

        If the budget has no room, the unused reservation beyond `held` is released.
        """
        with self._exclusive() as (connection, moment):
            elsewhere, returning = self._taken_by_others(connection, moment)
            room = cap - elsewhere - spent - held
            granted = max(least, room / LUMP) if room >= least else 0.0
            self._write(connection, moment, spent, held + granted, asking=1)
        return Room(spent + held + granted if room >= least else 0.0, elsewhere, returning)

    def stay(self) -> None:
        """Renew the lease of this process."""
        with self._exclusive() as (connection, moment):
            connection.execute(self._mine(until=moment))

    def leave(self, spent: float) -> None:
        """Release everything that is not spent; the row is deleted if nothing was spent."""
        with self._exclusive() as (connection, moment):
            if spent:
                self._write(connection, moment, spent, 0.0, asking=0)
            else:
                connection.execute(self._table.delete().where(self._table.c.owner == self.owner))

    @contextmanager
    def _exclusive(self) -> "Iterator[tuple[Connection, float]]":
        """Yield a connection with the budget lock, and the database's current time."""
        with self._database.alone(_TAKING) as connection:
            clock = self._sa.literal_column(NOW[connection.dialect.name], self._sa.Float)
            yield connection, float(connection.execute(self._sa.select(clock)).scalar_one())

    def _taken_by_others(self, connection: "Connection", moment: float) -> tuple[float, bool]:
        """Return the amount taken by other processes, and whether an active one may release some of it."""
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
