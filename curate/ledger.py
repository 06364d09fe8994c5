"""The ledger: every paid call and every rating, appended once, never changed, shared by all runs.

Text decides, not ids: a rating belongs to the digests of query and passage as shown, the judge, the rubric and
the replicate. It outlives runs, so a pair that was rated before under the same rubric is never paid again.

The store is one SQLite file in WAL mode, on a local disk. Processes on one machine may share it: readers wait for
nobody, and a writer waits up to a minute for another one's transaction. What was committed survives a kill.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

import polars as pl

from curate.config import Json, canonical, digest
from curate.errors import DataError
from curate.records import Grade, Status

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOCK_WAIT_S = 60
"""How long a writer waits for another process's transaction before it gives up."""

_REMEDIES = {
    "SQLITE_BUSY": "another process writes to it for over a minute; wait until that one is done",
    "SQLITE_CANTOPEN": "check that its folder may be written to, or set CURATE_HOME to another one",
    "SQLITE_CORRUPT": "it is damaged; put a copy of it back, or move it away",
    "SQLITE_FULL": "no space left on the disk, so free some; everything written before is kept",
    "SQLITE_IOERR": "perhaps no space left on the disk, so free some or check it; everything written before is kept",
    "SQLITE_NOTADB": "that file is something else; move it away, or set CURATE_HOME to another folder",
    "SQLITE_READONLY": "allow writing to that file and its folder, or set CURATE_HOME to another one",
}


@dataclass(frozen=True, slots=True)
class Rating:
    """What one judge said of one (query, passage): a grade only if the status is `rated`."""

    query_digest: str
    passage_digest: str
    judge_digest: str
    rubric_digest: str
    replicate: int
    grade: Grade | None
    status: Status
    slot: int
    """Position of the passage in its prompt, from 0."""
    batch_size: int
    """Passages in that prompt."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a model, as it was sent and answered. Tokens and cost are None where the vendor gave none."""

    purpose: str
    run: str
    """Id of the run that the call was made for."""
    judge_digest: str
    request_digest: str
    model: str
    """Model id as the reply named it; empty where it named none."""
    finish: str
    """How the reply ended; `error` where there was none after the last try."""
    raw: str
    """The reply as it came; for an error a JSON object with `error`, the reason, and `too_long`."""
    latency_s: float
    """Seconds from the first try to the reply, pauses between tries included."""
    created: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    foreign_labels: int = 0
    """Labels in the reply that the prompt did not hold."""
    repeated_labels: int = 0
    rubric_digest: str = ""
    replicate: int = 0
    query_digest: str = ""
    form: str = ""
    """In which form a judge's reply came: whole, partial, or why it gave nothing (`judging.form`)."""
    slots: str = "[]"
    """Digests of the passages in the order of the prompt, as a JSON list: with `raw` they give the ratings again."""


def _first(connection: "Connection") -> None:
    for statement in (
        """CREATE TABLE judges (judge_digest TEXT PRIMARY KEY, identity TEXT NOT NULL)""",
        """CREATE TABLE calls (
            call_id INTEGER PRIMARY KEY, purpose TEXT NOT NULL, run TEXT NOT NULL, judge_digest TEXT NOT NULL,
            request_digest TEXT NOT NULL, model TEXT NOT NULL, finish TEXT NOT NULL, raw TEXT NOT NULL,
            latency_s REAL NOT NULL, created TEXT NOT NULL, prompt_tokens INTEGER, cached_tokens INTEGER,
            written_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER, cost REAL,
            foreign_labels INTEGER NOT NULL, repeated_labels INTEGER NOT NULL, rubric_digest TEXT NOT NULL,
            replicate INTEGER NOT NULL, query_digest TEXT NOT NULL, form TEXT NOT NULL, slots TEXT NOT NULL)""",
        """CREATE TABLE ratings (
            rating_id INTEGER PRIMARY KEY, query_digest TEXT NOT NULL, passage_digest TEXT NOT NULL,
            judge_digest TEXT NOT NULL, rubric_digest TEXT NOT NULL, replicate INTEGER NOT NULL, grade TEXT,
            status TEXT NOT NULL, slot INTEGER NOT NULL, batch_size INTEGER NOT NULL,
            call_id INTEGER REFERENCES calls,
            CHECK (CASE status WHEN 'rated' THEN grade IS NOT NULL AND grade IN ('S', 'A', 'B', 'C', 'D')
                ELSE grade IS NULL AND status IN ('refused', 'unparsed', 'failed') END))""",
        """CREATE INDEX calls_of ON calls (judge_digest, run)""",
        """CREATE INDEX ratings_of ON ratings (judge_digest, rubric_digest, replicate)""",
    ):
        connection.exec_driver_sql(statement)


MIGRATIONS: tuple[Callable[["Connection"], None], ...] = (_first,)
"""How the store came to be, oldest first; only ever appended to."""


class Ledger:
    """An append-only store in one SQLite file; several processes may write to it."""

    def __init__(self, path: Path) -> None:
        import sqlalchemy as sa
        from filelock import FileLock

        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._sa = sa
        # A failed statement's parameters are replies and stay out of every message.
        self._engine = sa.create_engine(
            f"sqlite:///{path}", connect_args={"timeout": LOCK_WAIT_S}, hide_parameters=True
        )
        tables = sa.MetaData()
        try:
            with FileLock(f"{path}.lock"):  # SQLite lets nobody wait for a switch to WAL
                self._migrate()
            with self._transaction() as connection:
                tables.reflect(connection)
        except DataError:
            self.close()
            raise
        self._judges, self._calls, self._ratings = (tables.tables[name] for name in ("judges", "calls", "ratings"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        self._engine.dispose()

    def register(self, identity: Mapping[str, Json]) -> str:
        """Return the digest that stands for a judge, and keep what it stands for."""
        name = digest(identity)
        insert = self._sa.insert(self._judges).prefix_with("OR IGNORE")
        with self._transaction() as connection:
            connection.execute(insert, {"judge_digest": name, "identity": canonical(identity)})
        return name

    def append(self, ratings: Sequence[Rating], call: Call | None = None) -> int | None:
        """Write a call and its ratings in one transaction; return the call's id."""
        call_id: int | None = None
        with self._transaction() as connection:
            if call is not None:
                insert = self._sa.insert(self._calls).returning(self._calls.c.call_id)
                call_id = connection.execute(insert, asdict(call)).scalar_one()
            if ratings:
                rows = [{**asdict(rating), "call_id": call_id} for rating in ratings]
                connection.execute(self._sa.insert(self._ratings), rows)
        return call_id

    async def write(self, ratings: Sequence[Rating], call: Call) -> None:
        """Write a call and its ratings down, as `append`."""
        self.append(ratings, call)

    def ratings(self, judge_digest: str, rubric_digest: str, replicate: int = 0) -> pl.DataFrame:
        """Return the standing rating of every pair a judge has seen under a rubric.

        Columns: query_digest, passage_digest, grade, status, slot, batch_size, call_id. Of several rows of one
        pair the first that is rated stands, else the last.
        """
        table = self._ratings
        texts = ["query_digest", "passage_digest", "grade", "status"]
        numbers = ["slot", "batch_size", "call_id", "rating_id"]
        query = self._sa.select(*(table.c[name] for name in texts + numbers)).where(
            table.c.judge_digest == judge_digest,
            table.c.rubric_digest == rubric_digest,
            table.c.replicate == replicate,
        )
        with self._transaction() as connection:
            rows = [tuple(row) for row in connection.execute(query)]
        rated = pl.col("status") == "rated"
        return (
            pl.DataFrame(rows, dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Int64), orient="row")
            .sort(~rated, pl.when(rated).then(pl.col("rating_id")).otherwise(-pl.col("rating_id")))
            .unique(["query_digest", "passage_digest"], keep="first", maintain_order=True)
            .drop("rating_id")
        )

    def models(self, judge_digest: str, rubric_digest: str) -> list[str]:
        """Return the model ids that a judge's replies under a rubric named, first to last."""
        calls = self._calls.c
        query = (
            self._sa.select(calls.model)
            .where(calls.judge_digest == judge_digest, calls.rubric_digest == rubric_digest)
            .where(calls.model != "")  # a refusal may name no model
            .group_by(calls.model)
            .order_by(self._sa.func.min(calls.call_id))
        )
        with self._transaction() as connection:
            return [row[0] for row in connection.execute(query)]

    def replied(self, judge_digest: str, rubric_digest: str, replicate: int, since: str) -> set[str]:
        """Return the digests of the requests that a judge answered since a time, which is written as `created` is."""
        calls = self._calls.c
        query = self._sa.select(calls.request_digest).where(
            calls.judge_digest == judge_digest,
            calls.rubric_digest == rubric_digest,
            calls.replicate == replicate,
            calls.created >= since,
            calls.finish != "error",
        )
        with self._transaction() as connection:
            return set(connection.execute(query).scalars())

    def bill(self, run: str, judge_digests: Sequence[str]) -> pl.DataFrame:
        """Return what was paid for a run, a row a judge that answered.

        Columns: judge_digest, calls, prompt_tokens, cached_tokens, output_tokens, cost. Tokens and cost are None if
        one of the calls does not know its own; requests that got no reply count as free.
        """
        calls, func = self._calls, self._sa.func
        figures = ["prompt_tokens", "cached_tokens", "output_tokens", "cost"]
        known = [(calls.c[name], func.count(calls.c[name]) == func.count()) for name in figures]
        query = (
            self._sa.select(
                calls.c.judge_digest,
                func.count(),
                *(self._sa.case((every, func.sum(column))) for column, every in known),
            )
            .where(calls.c.run == run, calls.c.judge_digest.in_(judge_digests), calls.c.finish != "error")
            .group_by(calls.c.judge_digest)
            .order_by(calls.c.judge_digest)
        )
        with self._transaction() as connection:
            rows = [tuple(row) for row in connection.execute(query)]
        whole = dict.fromkeys(["calls", *figures[:3]], pl.Int64)
        return pl.DataFrame(rows, {"judge_digest": pl.String, **whole, "cost": pl.Float64}, orient="row")

    def count(self, table: Literal["judges", "calls", "ratings"]) -> int:
        """Return the number of rows of a table."""
        tables = {"judges": self._judges, "calls": self._calls, "ratings": self._ratings}
        query = self._sa.select(self._sa.func.count()).select_from(tables[table])
        with self._transaction() as connection:
            return int(connection.execute(query).scalar_one())

    @contextmanager
    def _transaction(self) -> Iterator["Connection"]:
        """Give a connection, and commit at the end; what SQLite refuses becomes a sentence with a remedy."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except self._sa.exc.DBAPIError as error:
            name = str(getattr(error.orig, "sqlite_errorname", ""))
            remedy = next((text for code, text in _REMEDIES.items() if name.startswith(code)), "check that file")
            raise DataError(f"{self.path}: {error.orig}; {remedy}") from error

    def _migrate(self) -> None:
        with self._transaction() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        with self._transaction() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # a reader that turns writer may find itself too late
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            if version > len(MIGRATIONS):
                raise DataError(f"{self.path}: written by a newer version of curate; update curate")
            for migration in MIGRATIONS[version:]:
                migration(connection)
            connection.exec_driver_sql(f"PRAGMA user_version={len(MIGRATIONS)}")


def default_path(home: Path) -> Path:
    """Return where the ledger is kept."""
    return home / "ledger.db"
