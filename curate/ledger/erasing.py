"""Erasing from the ledger, the one exception to appending: ratings of withdrawn texts, replies that quote them.

Calls stay, with their tokens and cost, so that bills still add up; their reply becomes empty.
"""

import json
import re
from collections.abc import Collection, Iterator

import sqlalchemy as sa

from curate.ledger.store import CHUNK, Ledger
from curate.ledger.tables import calls, passages, ratings

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_LEAST = 8
"""Minimum number of characters of a piece of text whose occurrence in a reply counts as a quotation."""
_AT_ONCE = 500


def pieces(text: str) -> set[str]:
    """Return the parts of a text by which a quotation is recognised: its clauses, or all of a short one."""
    clauses = {clause.strip() for clause in re.split(r"[。！？；，、,.!?;:：\n\r\t]+", text)}
    return {clause for clause in clauses if len(clause) >= _LEAST} or ({text.strip()} if text.strip() else set())


def erase(
    ledger: Ledger, queries: Collection[str], documents: Collection[str], quoted: Collection[str]
) -> dict[str, int]:
    """Delete ratings of these query and passage digests, and empty replies about them or with a piece of `quoted`.

    Returns the number of ratings and of replies. An SQLite file is rewritten, so that no byte of them remains.
    """
    with ledger.database.transaction() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete=ON")
        emptied = list(_quoting(connection, set(queries), set(documents), re.compile("|".join(map(re.escape, quoted)))))
        for start in range(0, len(emptied), _AT_ONCE):
            names = emptied[start : start + _AT_ONCE]
            connection.execute(sa.update(calls).where(calls.c.call_id.in_(names)).values(raw=""))
        deleted = 0
        for column, digests in ((ratings.c.query_digest, queries), (ratings.c.passage_digest, documents)):
            deleted += connection.execute(sa.delete(ratings).where(column.in_(sorted(digests)))).rowcount
        connection.execute(sa.delete(passages).where(passages.c.passage_digest.in_(sorted(documents))))
    if ledger.database.path is not None:
        with ledger.database.transaction("statement") as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return {"ratings": deleted, "replies": len(emptied)}


def _quoting(
    connection: sa.Connection, queries: set[str], documents: set[str], quotation: re.Pattern[str]
) -> Iterator[str]:
    """Yield the ids of calls that asked about one of the digests, or whose reply holds a piece of a text."""
    row = calls.c
    replies = sa.select(row.call_id, row.query_digest, row.slots, row.raw).where(row.raw != "")
    for name, query, slots, raw in connection.execute(replies.execution_options(yield_per=CHUNK)):
        of_record = query in queries or not documents.isdisjoint(json.loads(slots))
        if of_record or (quotation.pattern and quotation.search(_unescaped(raw))):
            yield name


def _unescaped(raw: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), raw) if "\\u" in raw else raw
