"""A stand-in for the ledger's table of batches, in an SQLite file beside the ledger."""

import datetime as dt
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curate.config import canonical


@dataclass(frozen=True)
class Batch:
    """One batch."""

    batch_id: str
    run: str
    created: str
    items: Mapping[str, Any]


class Book:
    """The batches of a ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._do(
            "CREATE TABLE IF NOT EXISTS batches "
            "(batch_id PRIMARY KEY, provider, judge_digest, rubric_digest, replicate, run, state, created, items)"
        )

    def add(
        self, batch_id: str, provider: str, judge: str, rubric: str, replicate: int, run: str, items: Mapping[str, Any]
    ) -> None:
        created = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        row = (batch_id, provider, judge, rubric, replicate, run, "open", created, canonical(items))
        self._do("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def open(self, judge: str, rubric: str, replicate: int) -> list[Batch]:
        found = self._do(
            "SELECT batch_id, run, created, items FROM batches WHERE judge_digest = ? AND rubric_digest = ? "
            "AND replicate = ? AND state = 'open' ORDER BY rowid",
            *(judge, rubric, replicate),
        )
        return [Batch(name, run, created, json.loads(items)) for name, run, created, items in found]

    def known(self, batch_id: str) -> bool:
        return bool(self._do("SELECT 1 FROM batches WHERE batch_id = ?", batch_id))

    def close(self, batch_id: str, state: str) -> None:
        self._do("UPDATE batches SET state = ? WHERE batch_id = ?", state, batch_id)

    def _do(self, statement: str, *values: object) -> list[Any]:
        connection = sqlite3.connect(self.path)
        try:
            with connection:
                return connection.execute(statement, values).fetchall()
        finally:
            connection.close()
