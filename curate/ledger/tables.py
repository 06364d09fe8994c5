"""Tables of the ledger and their migrations: the same statements for SQLite and PostgreSQL, except one."""

from collections.abc import Mapping
from dataclasses import fields

import sqlalchemy as sa

from curate.ledger.rows import Call, Kept, PassageRow, Rating


def _table(name: str, *columns: str | sa.ColumnClause[bool]) -> sa.TableClause:
    return sa.table(name, *(sa.column(column) if isinstance(column, str) else column for column in columns))


def _names(record: type) -> list[str]:
    return [field.name for field in fields(record)]


judges = _table("judges", "judge_digest", "identity")
calls = _table("calls", "call_id", *_names(Call))
ratings = _table("ratings", "rating_id", *_names(Rating), "call_id")
passages = _table("passages", *(sa.column(name, sa.Boolean) if name == "cut" else name for name in _names(PassageRow)))
claims = _table("claims", "key", "owner", "expires")
rubrics = _table("rubrics", "rubric_digest", "scale")
records = _table("records", "record_digest", "follows", "content")
batches = _table(
    "batches",
    *("batch_id", "provider", "judge_digest", "rubric_digest", "replicate", "run", "state", "created", "items"),
)
caps = _table("caps", "owner", "scope", "until", "asking", "spent", "held")

KEPT: Mapping[Kept, sa.TableClause] = {
    "judges": judges,
    "rubrics": rubrics,
    "calls": calls,
    "passages": passages,
    "records": records,
    "ratings": ratings,
}
"""The append-only tables in the order of copying: a rating always follows its call and its scale."""

_ANY_LABEL = """CONSTRAINT grade_means_rated CHECK (
    CASE status WHEN 'rated' THEN grade IS NOT NULL AND length(grade) BETWEEN 1 AND 40
    ELSE grade IS NULL AND status IN ('refused', 'unparsed', 'failed') END)"""
_RATINGS_4 = (
    "rating_id, query_digest, passage_digest, judge_digest, rubric_digest, replicate, grade, status, slot, batch_size, "
    "call_id"
)

Step = str | Mapping[str, tuple[str, ...]]
"""A statement for both databases, or database -> statements if they must differ."""
MIGRATIONS: tuple[tuple[Step, ...], ...] = (
    (
        """CREATE TABLE judges (judge_digest {text} PRIMARY KEY, identity TEXT NOT NULL)""",
        """CREATE TABLE calls (
            call_id {text} PRIMARY KEY, purpose TEXT NOT NULL, run {text} NOT NULL, judge_digest {text} NOT NULL,
            request_digest {text} NOT NULL, model {text} NOT NULL, finish TEXT NOT NULL, raw TEXT NOT NULL,
            latency_s DOUBLE PRECISION NOT NULL, created {text} NOT NULL, prompt_tokens INTEGER, cached_tokens INTEGER,
            written_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER, cost DOUBLE PRECISION,
            foreign_labels INTEGER NOT NULL, repeated_labels INTEGER NOT NULL, rubric_digest {text} NOT NULL,
            replicate INTEGER NOT NULL, query_digest {text} NOT NULL, form TEXT NOT NULL, slots TEXT NOT NULL)""",
        """CREATE TABLE ratings (
            rating_id {text} PRIMARY KEY, query_digest {text} NOT NULL, passage_digest {text} NOT NULL,
            judge_digest {text} NOT NULL, rubric_digest {text} NOT NULL, replicate INTEGER NOT NULL, grade TEXT,
            status TEXT NOT NULL, slot INTEGER NOT NULL, batch_size INTEGER NOT NULL, call_id {text},
            CONSTRAINT grade_means_rated CHECK (
                CASE status WHEN 'rated' THEN grade IS NOT NULL AND grade IN ('S', 'A', 'B', 'C', 'D')
                ELSE grade IS NULL AND status IN ('refused', 'unparsed', 'failed') END))""",
        """CREATE INDEX calls_of ON calls (judge_digest, run)""",
        """CREATE INDEX ratings_of ON ratings (judge_digest, rubric_digest, replicate, query_digest)""",
        """CREATE TABLE passages (
            passage_digest {text} PRIMARY KEY, tokens INTEGER NOT NULL, cut BOOLEAN NOT NULL,
            whole_tokens INTEGER NOT NULL, flags TEXT NOT NULL)""",
        """CREATE TABLE claims (key {text} PRIMARY KEY, owner {text} NOT NULL, expires DOUBLE PRECISION NOT NULL)""",
        """CREATE INDEX claims_of ON claims (owner)""",
        """CREATE TABLE batches (
            batch_id {text} PRIMARY KEY, provider TEXT NOT NULL, judge_digest {text} NOT NULL,
            rubric_digest {text} NOT NULL, replicate INTEGER NOT NULL, run {text} NOT NULL, state TEXT NOT NULL,
            created {text} NOT NULL, items TEXT NOT NULL)""",
    ),
    ("""ALTER TABLE calls ADD COLUMN currency {text}""",),
    (
        """CREATE TABLE caps (
            owner {text} PRIMARY KEY, scope {text} NOT NULL, until DOUBLE PRECISION NOT NULL, asking INTEGER NOT NULL,
            spent DOUBLE PRECISION NOT NULL, held DOUBLE PRECISION NOT NULL)""",
    ),
    (
        """CREATE TABLE rubrics (rubric_digest {text} PRIMARY KEY, scale TEXT NOT NULL)""",
        {
            # SQLite changes no constraint of a table. Who reads meanwhile goes on reading the old one.
            "sqlite": (
                "PRAGMA secure_delete = OFF",  # the same rows stand beside: no need to overwrite the old ones first
                f"""CREATE TABLE ratings_4 (
                    rating_id TEXT PRIMARY KEY, query_digest TEXT NOT NULL, passage_digest TEXT NOT NULL,
                    judge_digest TEXT NOT NULL, rubric_digest TEXT NOT NULL, replicate INTEGER NOT NULL, grade TEXT,
                    status TEXT NOT NULL, slot INTEGER NOT NULL, batch_size INTEGER NOT NULL, call_id TEXT,
                    {_ANY_LABEL})""",
                f"INSERT INTO ratings_4 ({_RATINGS_4}) SELECT {_RATINGS_4} FROM ratings",  # noqa: S608 - own words
                """DROP TABLE ratings""",
                """ALTER TABLE ratings_4 RENAME TO ratings""",
                """CREATE INDEX ratings_of ON ratings (judge_digest, rubric_digest, replicate, query_digest)""",
            ),
            # In PostgreSQL a new table is empty to every snapshot that is older: an export under way would miss all.
            "postgresql": (
                "LOCK TABLE calls IN ACCESS EXCLUSIVE MODE",  # changed later; who writes locks it before ratings, too
                f"""ALTER TABLE ratings DROP CONSTRAINT grade_means_rated, ADD {_ANY_LABEL}""",
            ),
        },
    ),
    ("""ALTER TABLE calls ADD COLUMN estimated_tokens INTEGER""",),
    (
        """CREATE TABLE records (record_digest {text} PRIMARY KEY, follows {text} NOT NULL, content TEXT NOT NULL)""",
        """CREATE INDEX records_of ON records (follows)""",
    ),
)
"""Migrations, oldest first; never change an old one. `{text}` is text that is sorted bytewise in both databases."""
ADDED = {"currency": 2, "rubrics": 4, "estimated_tokens": 5, "records": 6}
"""Column or table that a later migration added -> its version; exports of earlier versions lack it."""


def version(connection: sa.Connection) -> int:
    """Return the number of migrations applied to a store, 0 for a new one."""
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY)")
    return int(connection.exec_driver_sql("SELECT coalesce(max(version), 0) FROM versions").scalar_one())


def migrate(connection: sa.Connection, applied: int) -> None:
    """Apply the missing migrations in one transaction; `applied` is the current version."""
    text = 'TEXT COLLATE "C"' if connection.dialect.name == "postgresql" else "TEXT"
    for number, steps in enumerate(MIGRATIONS[applied:], start=applied + 1):
        for step in steps:
            for statement in (step,) if isinstance(step, str) else step[connection.dialect.name]:
                connection.exec_driver_sql(statement.format(text=text))
        connection.execute(sa.insert(sa.table("versions", sa.column("version"))).values(version=number))


def insert(table: sa.TableClause, dialect: sa.Dialect, rows: int = 1) -> str:
    """Return the statement that inserts rows, given as tuples in the table's order.

    Rows with existing keys are skipped.
    """
    mark = "?" if dialect.paramstyle == "qmark" else "%s"
    row = f"({', '.join([mark] * len(table.c))})"
    values = ", ".join([row] * rows)
    return f"INSERT INTO {table.name} ({', '.join(table.c.keys())}) VALUES {values} ON CONFLICT DO NOTHING"  # noqa: S608
