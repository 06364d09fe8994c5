"""Rows of a ledger for tests, processes that write them, and SQL on either kind of database."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from curate.ledger import Call, Ledger, Rating
from tests import ROOT

RATING = Rating("query", "passage", "judge", "rubric", 0, "A", "rated", 2, 10)
CALL = Call("judge", "run", "judge", "request", "m-1", "stop", '{"P1": "A"}', 0.5, "2026-11-21T00:00:00+00:00")
CHILD = ROOT / "tests/support/ledger_child.py"


def sql(ledger: Ledger, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement, and return its rows."""
    with ledger.database.transaction() as connection:
        result = connection.exec_driver_sql(statement)
        return [tuple(row) for row in result] if result.returns_rows else []


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Keep every other connection from writing to a SQLite file, until the connection is rolled back."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def child(place: Path | str, *arguments: object) -> "subprocess.Popen[str]":
    """Start a process at a ledger; see ledger_child.py."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CURATE_LEDGER": str(place)}
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
