"""Raw replies to a pair, read from a ledger that nothing is written to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from curate.core.errors import DataError
from curate.ledger.database import url_of
from curate.ledger.tables import calls, ratings


@dataclass(frozen=True)
class RawReply:
    """A model's reply to the prompt in which a pair was rated."""

    judge_digest: str
    rubric_digest: str
    model: str
    created: str
    slot: int
    """Position of the passage in the prompt, from 0."""
    batch_size: int
    raw: str


def replies(where: Path | str, query_digest: str, passage_digest: str) -> list[RawReply]:
    """Return the replies that rated a pair (first replicates), oldest first; [] without a ledger.

    DataError if it cannot be read.
    """
    columns = (calls.c.judge_digest, calls.c.rubric_digest, calls.c.model, calls.c.created)
    query = (
        sa.select(*columns, ratings.c.slot, ratings.c.batch_size, calls.c.raw)
        .join(calls, calls.c.call_id == ratings.c.call_id)
        .where(
            ratings.c.query_digest == query_digest,
            ratings.c.passage_digest == passage_digest,
            ratings.c.replicate == 0,
            ratings.c.status == "rated",
        )
        .order_by(calls.c.call_id)
    )
    url = url_of(where)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return []
    with _reading(url) as connection:
        return [RawReply(*row) for row in connection.execute(query)]


@contextmanager
def _reading(url: sa.URL) -> Iterator[sa.Connection]:
    """Yield a connection that cannot write."""
    error: sa.exc.DBAPIError | None = None
    for engine in _engines(url):
        try:
            connection = engine.connect()
            connection.exec_driver_sql("SELECT 1 FROM calls LIMIT 1")
        except sa.exc.DBAPIError as failed:
            error = failed
            engine.dispose()
            continue
        try:
            yield connection
        finally:
            connection.close()
            engine.dispose()
        return
    place = url.set(password=None, query={}).render_as_string()
    raise DataError(f"{place}: cannot be read; check that it is a ledger of this version") from error


def _engines(url: sa.URL) -> Iterator[sa.Engine]:
    """Yield engines that only read, the best first; a file in a read-only folder cannot be shared with writers."""
    if url.get_backend_name() != "sqlite":
        yield sa.create_engine(
            url, hide_parameters=True, connect_args={"options": "-c default_transaction_read_only=on"}
        )
        return
    path = quote(str(Path(url.database or "").resolve()))
    for mode in ("mode=ro", "immutable=1"):
        yield sa.create_engine(f"sqlite:///file:{path}?{mode}&uri=true", hide_parameters=True)
