"""Open batches of vendors, recorded before a process waits for them, so that a paid batch is collected."""

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curate.core.config import Json, canonical
from curate.core.errors import DataError
from curate.ledger.store import Ledger

OPEN = "open"


@dataclass(frozen=True, slots=True)
class Batch:
    """A submitted batch, with the items needed to read its results, without texts."""

    batch_id: str
    provider: str
    judge_digest: str
    rubric_digest: str
    replicate: int
    run: str
    """Id of the run that pays for it."""
    state: str
    """`open` until it is collected; then how it ended."""
    created: str
    items: Mapping[str, Any]
    """Request digest -> {"query_digest": ..., "slots": [passage digests in the order of the prompt], "bound": ...}.

    The bound is its maximum cost, in the currency of its price; batches of version 0.1 have none.
    """


class Batches:
    """The batches of a ledger."""

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
        """Record a batch that a vendor accepted; DataError for a known id."""
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
        """Record the final state of a batch; DataError for an unknown one."""
        change = self._table.update().where(self._table.c.batch_id == batch_id).values(state=state)
        with self._database.transaction() as connection:
            if not connection.execute(change).rowcount:
                raise DataError(f"{self._database.place}: no batch {batch_id!r}; it was never written down")
