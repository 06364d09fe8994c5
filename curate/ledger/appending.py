"""Insertion of rows into the ledger, in one transaction with the judges and scales to which they refer."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import chain
from operator import itemgetter

from sqlalchemy import Connection

from curate.core.config import Json, canonical, digest
from curate.core.scale import Scale
from curate.ledger import identities
from curate.ledger.database import Database
from curate.ledger.rows import Call, Kept, Rating, Row, Rows
from curate.ledger.tables import KEPT, insert


def _parameter_numbers(record: type, *names: str) -> list[int]:
    return [1 + [field.name for field in fields(record)].index(name) for name in names]


_of_call = itemgetter(*_parameter_numbers(Call, "judge_digest", "rubric_digest"))
_of_rating = itemgetter(*_parameter_numbers(Rating, "judge_digest", "rubric_digest"))
_said = itemgetter(*_parameter_numbers(Rating, "judge_digest", "rubric_digest", "grade"))


class Appending:
    """Inserts rows into a database; the identity and scale of a judge are stored with its first row."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._statements = {name: insert(table, database.engine.dialect) for name, table in KEPT.items()}
        self._named: dict[str, str] = {}
        """Digest -> identity of the judges without rows so far."""
        self._heard: set[str] = set()
        self._scales: dict[str, Scale] = {}
        """Digest of a rubric -> its scale, for the rubrics without rows so far."""
        self._right = set[identities.Said]()
        """Grades already checked against their scale."""

    def register(self, identity: Mapping[str, Json]) -> str:
        """Return the digest of a judge's identity, which is stored with the judge's first row."""
        name = digest(identity)
        if name not in self._heard:
            self._named[name] = canonical(identity)
        return name

    def note_scale(self, rubric_digest: str, scale: Scale) -> None:
        """Declare the scale of a rubric; DataError if the database has another one."""
        with self._database.transaction() as connection:
            identities.agree(connection, rubric_digest, scale, self._scales.get(rubric_digest))
        self._scales[rubric_digest] = scale

    def commit(self, group: Sequence[Rows]) -> None:
        """Insert rows.

        Rows with existing ids are skipped, because an earlier commit stored them and only its reply was lost.
        """
        calls = list(chain.from_iterable(calls for calls, _ in group))
        ratings = list(chain.from_iterable(ratings for _, ratings in group))
        judges_and_rubrics = (
            {*map(_of_call, calls), *map(_of_rating, ratings)} if self._named or self._scales else set()
        )
        judges = {name: self._named[name] for name, _ in judges_and_rubrics if name in self._named}
        noted = {name: self._scales[name] for _, name in judges_and_rubrics if name in self._scales}
        with self._database.transaction() as connection:
            identities.add(connection, noted)
            self._insert(connection, "judges", sorted(judges.items()))
            self._insert(connection, "calls", calls)
            self._insert(connection, "ratings", ratings)
        for name in judges:
            self._heard.add(name)
            self._named.pop(name, None)
        for name in noted:
            self._scales.pop(name, None)

    def merge(self, table: Kept, rows: Sequence[Row]) -> None:
        """Insert complete rows, with columns in the order of the table."""
        with self._database.transaction() as connection:
            self._insert(connection, table, rows)

    def _insert(self, connection: Connection, table: Kept, rows: Sequence[Row]) -> None:
        if not rows:
            return
        connection.exec_driver_sql(self._statements[table], list(rows))
        if table == "ratings" and (new := {*map(_said, rows)} - self._right):
            identities.check(connection, new)
            self._right |= new
