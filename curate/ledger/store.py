"""The ledger: append and read calls and ratings; every method is one transaction."""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl

from curate.core.config import Json, canonical, text_digest
from curate.core.errors import DataError
from curate.core.scale import Scale
from curate.ledger.rows import LOST, Call, Kept, PassageRow, Rating, Row, Rows, standing, storable

PER_MS = 1 << 16
"""Maximum number of ids per millisecond; further ids use the next millisecond."""


class TimeOrderedIds:
    """Generator of ids that sort by time as text: milliseconds, number within them, 40 random bits per writer."""

    def __init__(self) -> None:
        self._writer = secrets.token_hex(5)
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> str:
        """Return a new id of 26 characters."""
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1_000_000 * PER_MS)
            return f"{self._last:016x}{self._writer}"


def first_of(second: float) -> str:
    """Return a prefix that sorts before all ids created from a time on, in seconds since the epoch."""
    return f"{int(second * 1000) * PER_MS:016x}"


def second_of(name: str) -> float:
    """Return the creation time of an id, in seconds since the epoch."""
    return int(name[:16], 16) / PER_MS / 1000


# Append to the ledger and read it; every method is one transaction.

CHUNK = 20_000
"""Number of rows fetched from the database at a time."""

_of_call: Callable[[Call], Row] = attrgetter(*(field.name for field in fields(Call)))
_of_rating: Callable[[Rating], Row] = attrgetter(*(field.name for field in fields(Rating)))


class Ledger:
    """An append-only store in an SQLite file or at a PostgreSQL URL; several processes may write to it."""

    def __init__(self, where: Path | str) -> None:
        import sqlalchemy as sa

        from curate.ledger import identities, tables
        from curate.ledger.appending import Appending
        from curate.ledger.database import Database, Writer

        self._sa, self._tables, self._identities = sa, tables, identities
        self.database = Database(where)
        self._appending = Appending(self.database)
        self._ids = TimeOrderedIds()
        self._writer = Writer(self._commit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.database.place!r})"

    @property
    def path(self) -> Path:
        """Return the SQLite file; DataError if the ledger is on a server."""
        if self.database.path is None:
            raise DataError(f"{self.database.place}: no file; ask that server for its tables")
        return self.database.path

    def close(self) -> None:
        """Write all pending rows, and close the file or connections."""
        try:
            self._writer.close()
        finally:
            self.database.engine.dispose()

    def register(self, identity: Mapping[str, Json]) -> str:
        """Return the digest of a judge's identity, which is stored with the judge's first row."""
        return self._appending.register(identity)

    def note_scale(self, rubric_digest: str, scale: Scale) -> None:
        """Declare the scale of a rubric before anything is stored under it; the scale is stored with the first row.

        Without a declaration a rubric has the scale FIVE. DataError if its ratings are on another scale. Grades that
        are not on the scale are rejected; a judge without rubric has the `scale` of its identity, or FIVE.
        """
        self._appending.note_scale(rubric_digest, scale)

    def current(self, judge_digest: str) -> str:
        """Return the current name of a judge, which may have been renamed (see `identities`)."""
        with self.database.transaction() as connection:
            return self._identities.current(connection, judge_digest)

    def append(self, ratings: Sequence[Rating], call: Call | None = None) -> str | None:
        """Store a call and its ratings in one transaction; return the call's id, None without a call."""
        call_id, rows = self._rows(ratings, call)
        self._commit([rows])
        return call_id

    async def write(self, ratings: Sequence[Rating], call: Call | None = None) -> str | None:
        """Store a call and its ratings as `append` does, in one transaction with all pending rows.

        Return after the commit. An error of these rows is raised here and does not affect the others.
        """
        call_id, rows = self._rows(ratings, call)
        await self._writer.put(rows)
        return call_id

    def note(self, passages: Iterable[PassageRow]) -> None:
        """Store properties of passages; existing rows are unchanged."""
        rows = [
            (passage.passage_digest, passage.tokens, passage.cut, passage.whole_tokens, canonical(passage.flags))
            for passage in passages
        ]
        self.merge("passages", rows)

    def record(self, content: Mapping[str, Json], follows: str = "") -> str:
        """Store a record unless it is there, and return its digest; `follows` is the digest of another record or empty.

        A record is what is known before or besides the calls, such as the pool that a panel was given.
        """
        text = canonical(content)
        self.merge("records", [(text_digest(text), follows, text)])
        return text_digest(text)

    def recorded(self, record_digest: str) -> dict[str, Any] | None:
        """Return the content of a record; None if there is none, or if it was changed."""
        records = self._tables.records.c
        query = self._sa.select(records.content).where(records.record_digest == record_digest)
        with self.database.transaction() as connection:
            text = connection.execute(query).scalar()
        if text is None or text_digest(text) != record_digest:
            return None
        content: dict[str, Any] = json.loads(text)
        return content

    def following(self, record_digest: str) -> list[dict[str, Any]]:
        """Return the contents of the records that follow a record, sorted by digest."""
        records = self._tables.records.c
        query = self._sa.select(records.content).where(records.follows == record_digest).order_by(records.record_digest)
        with self.database.transaction() as connection:
            return [json.loads(text) for text in connection.execute(query).scalars()]

    def merge(self, table: Kept, rows: Sequence[Row]) -> None:
        """Add complete rows, columns in the order of the table; rows with existing keys are skipped."""
        self._appending.merge(table, rows)

    def ratings(
        self, judge_digest: str, rubric_digest: str, replicate: int = 0, queries: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Return the valid rating of every pair that a judge rated under a rubric, in no order.

        With `queries` (digests), only of their pairs. Columns: query_digest, passage_digest, grade, status, slot,
        batch_size, call_id. If a pair has several ratings, the first with a grade is valid, else the last.
        """
        ratings = self._tables.ratings.c
        texts = ["query_digest", "passage_digest", "grade", "status", "call_id", "rating_id"]
        schema = dict.fromkeys(texts[:4], pl.String) | dict.fromkeys(["slot", "batch_size"], pl.Int64)
        schema |= dict.fromkeys(texts[4:], pl.String)
        query = self._sa.select(*(ratings[name] for name in schema)).where(
            ratings.judge_digest == judge_digest,
            ratings.rubric_digest == rubric_digest,
            ratings.replicate == replicate,
        )
        if queries is not None:
            query = query.where(ratings.query_digest.in_(queries))
        return standing(self._frame(query, schema)).drop("rating_id")

    def passages(self) -> list[PassageRow]:
        """Return the properties of all passages, sorted by digest."""
        passages = self._tables.passages
        query = self._sa.select(passages).order_by(passages.c.passage_digest)
        with self.database.transaction() as connection:
            rows = [row._asdict() for row in connection.execute(query)]
        return [PassageRow(**{**row, "flags": tuple(json.loads(row["flags"]))}) for row in rows]

    def models(self, judge_digest: str, rubric_digest: str) -> list[str]:
        """Return the model ids in a judge's replies under a rubric, in order of time."""
        calls = self._tables.calls.c
        query = (
            self._sa.select(calls.model)
            .where(calls.judge_digest == judge_digest, calls.rubric_digest == rubric_digest)
            .where(calls.model != "")  # a refusal may name no model
            .group_by(calls.model)
            .order_by(self._sa.func.min(calls.call_id))
        )
        with self.database.transaction() as connection:
            return [row[0] for row in connection.execute(query)]

    def costs(self, run: str) -> dict[str, float]:
        """Return currency -> sum of the known costs of all calls of a run; calls without a currency are left out."""
        calls, func = self._tables.calls.c, self._sa.func
        query = (
            self._sa.select(calls.currency, func.sum(calls.cost))
            .where(calls.run == run, calls.cost.is_not(None), calls.currency.is_not(None))
            .group_by(calls.currency)
            .order_by(calls.currency)
        )
        with self.database.transaction() as connection:
            return {currency: float(cost) for currency, cost in connection.execute(query)}

    def bill(self, run: str, judge_digests: Sequence[str]) -> pl.DataFrame:
        """Return the cost of a run: one row per judge and currency.

        Columns: judge_digest, calls, prompt_tokens, cached_tokens, output_tokens, cost, currency. Tokens and cost are
        None if any reply has none. A rejected request is free; one with unknown outcome is not in `calls` but has its
        maximum cost.
        """
        calls, func = self._tables.calls.c, self._sa.func
        figures = ["prompt_tokens", "cached_tokens", "output_tokens", "cost"]
        replied = calls.finish != "error"
        replies = func.count(self._sa.case((replied, 1)))
        columns = [(calls[name], func.count(self._sa.case((replied, calls[name]))) == replies) for name in figures]
        query = (
            self._sa.select(
                calls.judge_digest,
                replies,
                *(self._sa.case((every, func.coalesce(func.sum(column), 0))) for column, every in columns),
                calls.currency,
            )
            .where(calls.run == run, calls.judge_digest.in_(judge_digests), replied | calls.cost.is_not(None))
            .group_by(calls.judge_digest, calls.currency)
            .order_by(calls.judge_digest, calls.currency)
        )
        integers = dict.fromkeys(["calls", *figures[:3]], pl.Int64)
        return self._frame(query, {"judge_digest": pl.String, **integers, "cost": pl.Float64, "currency": pl.String})

    def forms(self, run: str, judge_digests: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return judge -> form of a reply (whole, partial, refused, cut, ...) -> number of a run's calls with it."""
        calls, func = self._tables.calls.c, self._sa.func
        query = (
            self._sa.select(calls.judge_digest, calls.form, func.count())
            .where(calls.run == run, calls.judge_digest.in_(judge_digests))
            .group_by(calls.judge_digest, calls.form)
            .order_by(calls.judge_digest, calls.form)
        )
        counts: dict[str, dict[str, int]] = {}
        with self.database.transaction() as connection:
            for judge, form, count in connection.execute(query):
                counts.setdefault(judge, {})[form] = count
        return counts

    def last_form(self, judge_digest: str, purpose: str) -> str:
        """Return the form of a judge's newest reply for a purpose; empty without one."""
        calls = self._tables.calls.c
        query = (
            self._sa.select(calls.form)
            .where(calls.judge_digest == judge_digest, calls.purpose == purpose, calls.finish != "error")
            .order_by(calls.call_id.desc())
            .limit(1)
        )
        with self.database.transaction() as connection:
            return connection.execute(query).scalar() or ""

    def refusals(self, run: str, judge_digests: Sequence[str]) -> dict[str, str]:
        """Return judge -> its provider's most frequent error in a run."""
        calls, func = self._tables.calls.c, self._sa.func
        query = (
            self._sa.select(calls.judge_digest, calls.raw)
            .where(calls.run == run, calls.judge_digest.in_(judge_digests), calls.finish == "error", calls.form != LOST)
            .group_by(calls.judge_digest, calls.raw)
            .order_by(func.count(), calls.raw)  # the last one stays
        )
        with self.database.transaction() as connection:
            reasons = {judge: json.loads(raw) for judge, raw in connection.execute(query)}
        return {judge: str(reason.get("error", "")) for judge, reason in reasons.items()}

    def replied(
        self, judge_digest: str, rubric_digest: str, replicate: int, since: str = "", after: str = ""
    ) -> set[str]:
        """Return the digests of the requests that a judge answered, optionally only recent ones.

        `since` is a time in the format of `created`; `after` is the id of a call, which is excluded.
        """
        calls = self._tables.calls.c
        query = self._sa.select(calls.request_digest).where(
            calls.judge_digest == judge_digest,
            calls.rubric_digest == rubric_digest,
            calls.replicate == replicate,
            calls.created >= since,
            calls.call_id > after,
            calls.finish != "error",
        )
        with self.database.transaction() as connection:
            return set(connection.execute(query).scalars())

    def generations(
        self, judge_digest: str, rubric_digest: str, replicate: int = 0, since: str = ""
    ) -> list[tuple[str, str, str, str, str]]:
        """Return (call_id, request_digest, finish, raw, form) of a model's calls with one prompt, oldest first.

        Includes errors; with `since`, only calls from this id on. Replies that are no ratings, such as labels and
        generated texts, are stored only here.
        """
        calls = self._tables.calls.c
        query = (
            self._sa.select(calls.call_id, calls.request_digest, calls.finish, calls.raw, calls.form)
            .where(
                calls.judge_digest == judge_digest,
                calls.rubric_digest == rubric_digest,
                calls.replicate == replicate,
                calls.call_id >= since,
            )
            .order_by(calls.call_id)
        )
        with self.database.transaction() as connection:
            return [(call, key, finish, raw, form) for call, key, finish, raw, form in connection.execute(query)]

    def recent(self, judge_digest: str, since: float) -> list[tuple[float, int | None]]:
        """Return (time, tokens) of a judge's calls since a time, oldest first; times in seconds since the epoch.

        The time is that of storage. Tokens are those of prompt and answer; None if unknown.
        """
        calls = self._tables.calls.c
        query = (
            self._sa.select(calls.call_id, calls.judge_digest, calls.prompt_tokens + calls.output_tokens)
            .where(calls.call_id >= first_of(since))  # ids are sorted by time, and by the judge there may be far more
            .order_by(calls.call_id)
        )
        with self.database.transaction() as connection:
            rows = connection.execute(query)
            return [(second_of(name), tokens) for name, judge, tokens in rows if judge == judge_digest]

    def count(self, table: Kept) -> int:
        """Return the number of rows of a table."""
        query = self._sa.select(self._sa.func.count()).select_from(self._tables.KEPT[table])
        with self.database.transaction() as connection:
            return int(connection.execute(query).scalar_one())

    def _rows(self, ratings: Sequence[Rating], call: Call | None) -> tuple[str | None, Rows]:
        """Return the call's id (None without a call), and the rows to insert, with new ids."""
        name = self._ids.next()
        call_id = None if call is None else name
        calls = [] if call is None else [storable((name, *_of_call(call)))]
        return call_id, (
            calls,
            [(f"{name}{number:06x}", *_of_rating(rating), call_id) for number, rating in enumerate(ratings)],
        )

    def _commit(self, group: Sequence[Rows]) -> None:
        self._appending.commit(group)

    def _frame(self, query: Any, schema: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:  # noqa: ANN401 - any select
        """Return the result of a query, fetched in chunks, so that not all rows are Python objects at the same time."""
        frames = [pl.DataFrame(schema=schema)]
        with self.database.transaction() as connection:
            cursor = connection.execution_options(yield_per=CHUNK).execute(query)
            frames.extend(pl.DataFrame(list(zip(*rows, strict=True)), schema) for rows in cursor.partitions())
        return pl.concat(frames)


def default_path(home: Path) -> Path:
    """Return the default path of the ledger."""
    return home / "ledger.db"
