"""Look for what a ledger should never hold: rows that contradict one another, or a damaged file.

`CHECKS` is where a further one goes; each is a function from a connection to its findings.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from curate.config import digest
from curate.ledger.store import CHUNK, Ledger
from curate.ledger.tables import calls, judges, ratings
from curate.records import GRADES, STATUSES


@dataclass(frozen=True)
class Finding:
    """Something wrong: what, in how many rows, and the key of one of them."""

    what: str
    rows: int
    example: str

    def __str__(self) -> str:
        return f"{self.what}: {self.rows:,}, such as {self.example}"


def check(ledger: Ledger) -> list[Finding]:
    """Return everything that is wrong with a ledger; nothing of it is mended."""
    with ledger.database.transaction("snapshot") as connection:
        return [finding for each in CHECKS for finding in each(connection)]


def damage(connection: sa.Connection) -> Iterator[Finding]:
    """Yield what SQLite finds wrong with its file."""
    if connection.dialect.name == "sqlite":
        said = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        if said != ["ok"]:
            yield Finding("places where the file is damaged", len(said), said[0])


def identities(connection: sa.Connection) -> Iterator[Finding]:
    """Yield judges that are not what their digest says, and rows of judges that nobody registered."""
    wrong = []
    for name, identity in connection.execute(sa.select(judges)):
        try:
            same = digest(json.loads(identity)) == name
        except ValueError:
            same = False
        if not same:
            wrong.append(name)
    yield from _some("judges that are not what their digest says", wrong)
    known = sa.select(judges.c.judge_digest)
    for table, key in ((calls, calls.c.call_id), (ratings, ratings.c.rating_id)):
        yield from _where(
            connection, f"{table.name} of an unknown judge", key, table, table.c.judge_digest.not_in(known)
        )


def grades(connection: sa.Connection) -> Iterator[Finding]:
    """Yield ratings whose grade and status do not go together."""
    row = ratings.c
    rated = (row.status == "rated") & row.grade.in_(GRADES)
    other = row.status.in_(STATUSES) & (row.status != "rated") & row.grade.is_(None)
    wrong = ~sa.func.coalesce(rated | other, sa.false())
    yield from _where(connection, "ratings whose grade and status do not go together", row.rating_id, ratings, wrong)


def payments(connection: sa.Connection) -> Iterator[Finding]:
    """Yield ratings that do not fit the call that they name, and those that should name one.

    Only a judge that reads a rubric is a model and is called; the ratings of heuristics have no call.
    """
    row, call = ratings.c, calls.c
    both = ratings.outerjoin(calls, row.call_id == call.call_id)
    named = row.call_id.is_not(None)
    shared = ("judge_digest", "rubric_digest", "replicate", "query_digest")
    for what, wrong in (
        ("ratings under a rubric without a call", ~named & (row.rubric_digest != "")),
        ("ratings of a call that is not there", named & call.call_id.is_(None)),
        ("ratings of another judge, rubric, replicate or query than their call's", _differ(shared)),
        ("ratings that are grades though their call got no reply", (row.status == "rated") & (call.finish == "error")),
    ):
        yield from _where(connection, what, row.rating_id, both, wrong)


def places(connection: sa.Connection) -> Iterator[Finding]:
    """Yield ratings that say another passage, slot or batch size than the list of passages of their call."""
    row = ratings.c
    query = (
        sa.select(row.rating_id, row.call_id, row.passage_digest, row.slot, row.batch_size, calls.c.slots)
        .join_from(ratings, calls, row.call_id == calls.c.call_id)
        .order_by(row.call_id)
    )
    wrong: list[str] = []
    shown: list[str] = []
    last = None
    for rating_id, call_id, passage, slot, size, slots in connection.execution_options(yield_per=CHUNK).execute(query):
        if call_id != last:
            last, shown = call_id, _listed(slots)
        if size != len(shown) or not 0 <= slot < size or shown[slot] != passage:
            wrong.append(rating_id)
    yield from _some("ratings whose passage, slot or batch size is not that of their call", wrong)


CHECKS: tuple[Callable[[sa.Connection], Iterator[Finding]], ...] = (damage, identities, grades, payments, places)


def _differ(names: tuple[str, ...]) -> sa.ColumnElement[bool]:
    return sa.or_(*(ratings.c[name] != calls.c[name] for name in names))


def _where(
    connection: sa.Connection,
    what: str,
    key: sa.ColumnClause[str],
    table: sa.FromClause,
    wrong: sa.ColumnElement[bool],
) -> Iterator[Finding]:
    rows, example = connection.execute(
        sa.select(sa.func.count(), sa.func.min(key)).select_from(table).where(wrong)
    ).one()
    if rows:
        yield Finding(what, rows, example)


def _some(what: str, keys: list[str]) -> Iterator[Finding]:
    if keys:
        yield Finding(what, len(keys), min(keys))


def _listed(slots: str) -> list[str]:
    try:
        found = json.loads(slots)
    except ValueError:
        return []
    return found if isinstance(found, list) else []
