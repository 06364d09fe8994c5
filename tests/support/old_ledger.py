"""Ledgers of an earlier version, and processes that die while they bring one up to date.

`python old_ledger.py FIRST PLACE...` opens copies of one ledger: the first to count the moments of that, each other one
in a process that is killed by SIGKILL at a moment of its own. These are spread evenly, up to the very last.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from unittest.mock import patch

import sqlalchemy as sa

from curate.ledger import Ledger, Rating, database, identities, store, tables
from tests.support.rows import CALL

VERSION = 3
"""The last one that knew the five grades alone."""
OPERATIONS = 2_000
"""Steps of SQLite's machine between two moments."""
RUBRIC = "r" * 64
SLOTS = ("p0", "p1", "p2")


@contextmanager
def older(place: Path | str) -> Iterator[Ledger]:
    """Give a ledger as a process of that version has it open: it knows no scale, and asks for none."""
    before = tables.MIGRATIONS[:VERSION]
    names = [name for name in tables.calls.c.keys() if tables.ADDED.get(name, 1) <= VERSION]  # noqa: SIM118 - a collection of columns
    old = sa.table("calls", *map(sa.column, names))
    with (
        patch.object(tables, "MIGRATIONS", before),
        patch.object(database, "MIGRATIONS", before),
        patch.dict(tables.KEPT, calls=old),
    ):
        ledger = Ledger(place)
    with (
        ledger,
        patch.object(identities, "check", lambda *_: None),
        patch.object(store, "_of_call", attrgetter(*names[1:])),
    ):
        yield ledger


def say(ledger: Ledger, first: int, calls: int = 1) -> None:
    """Append calls with three ratings each in one transaction, some of them failed."""
    judge = ledger.register({"model": {"model": "m"}})
    rows = []
    for number in range(first, first + calls):
        query, grade = f"q{number}", None if number % 7 == 0 else "SABCD"[number % 5]
        said = Rating(query, "", judge, RUBRIC, 0, grade, "rated" if grade else "failed", 0, len(SLOTS))
        call = replace(CALL, judge_digest=judge, rubric_digest=RUBRIC, query_digest=query, slots='["p0","p1","p2"]')
        ratings = [replace(said, passage_digest=passage, slot=slot) for slot, passage in enumerate(SLOTS)]
        rows.append(ledger._rows(ratings, replace(call, finish="stop" if grade else "error"))[1])
    ledger._commit(rows)


class Opening:
    """What happens while a ledger is opened, moment by moment; at the number `last` the process is killed."""

    def __init__(self, last: int = 0) -> None:
        self.count, self._last = 0, last
        for event in ("before_cursor_execute", "after_cursor_execute", "commit"):
            sa.event.listen(sa.Engine, event, self._moment)
        sa.event.listen(sa.Engine, "connect", self._watch)

    def of(self, place: str) -> int:
        """Open a ledger, and return the number of moments."""
        with Ledger(place if "://" in place else Path(place)):
            self._moment()
        return self.count

    def _moment(self, *_: object) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def _watch(self, raw: object, _: object) -> None:
        if isinstance(raw, sqlite3.Connection):
            raw.set_progress_handler(self._moment, OPERATIONS)


def main(first: str, *others: str) -> None:
    """Kill a process at each of the others, at moments that the first one has."""
    moments = Opening().of(first)
    for number, place in enumerate(others, start=1):
        if not os.fork():
            Opening(moments * number // len(others)).of(place)
            os._exit(1)
        if os.waitstatus_to_exitcode(os.wait()[1]) != -signal.SIGKILL:
            sys.exit(f"{place}: its process was not killed")
    sys.stdout.write(str(moments))


if __name__ == "__main__":
    main(*sys.argv[1:])
