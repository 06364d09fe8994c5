"""Consistency checks of a ledger (append-only record of every model reply): contradicting rows, a damaged file.

A check is a function that takes a database connection and yields faults; all are listed in `CHECKS`.
"""

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from curate.ask import rating
from curate.ask.judges.llm import LlmJudge
from curate.core.config import digest
from curate.core.figures import Record, figure
from curate.core.messages import Reply
from curate.core.records import STATUSES
from curate.core.scale import FIVE, Scale
from curate.ledger.database import DAMAGED
from curate.ledger.identities import RENAMED, Noted, noted
from curate.ledger.store import CHUNK, Ledger
from curate.ledger.tables import calls, judges, ratings
from curate.llm.parse import parse
from curate.llm.prompts import labels
from curate.llm.providers import PROVIDERS, Reader, reader
from curate.llm.providers.sdk import inner

REPLIES = 500
"""Number of calls fetched from the database at a time; small, since replies may be long."""


class LedgerFault(Record, schema_name="row"):
    """A row per kind of mistake in the ledger; an error if there is any."""

    what: str = figure("type of the mistake")
    rows: int = figure("rows with this mistake")
    example: str = figure("key of one of them")

    def __str__(self) -> str:
        return f"{self.what}: {self.rows:,}, such as {self.example}"


def check(ledger: Ledger) -> list[LedgerFault]:
    """Return all faults of a ledger; repairs nothing."""
    with ledger.database.transaction("snapshot") as connection:
        return [finding for ledger_check in CHECKS for finding in ledger_check(connection)]


def damage(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield damage of the database file, by SQLite's own integrity check; nothing for other databases."""
    if connection.dialect.name == "sqlite":
        messages = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        if messages != ["ok"]:
            yield LedgerFault("places where the file is damaged", len(messages), f"{messages[0]} ({DAMAGED})")


def identities(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield judges whose identity does not match its digest, and rows of unregistered judges."""
    wrong = []
    for name, identity in connection.execute(sa.select(judges)):
        try:
            content = json.loads(identity)
            same = digest(content) == name or set(content) == {RENAMED}
        except ValueError:
            same = False
        if not same:
            wrong.append(name)
    if wrong:
        yield LedgerFault("judges that are not what their digest says", len(wrong), min(wrong))
    registered = sa.select(judges.c.judge_digest)
    for table, key in ((calls, calls.c.call_id), (ratings, ratings.c.rating_id)):
        yield from _location(
            connection, f"{table.name} of an unknown judge", key, table, table.c.judge_digest.not_in(registered)
        )


def grades(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield rubrics with an unreadable scale, and ratings of other rubrics whose grade contradicts status or scale."""
    row, scales = ratings.c, noted(connection)
    lost = sorted(name for name, scale in scales.rubrics.items() if scale is None)
    if lost:
        yield LedgerFault("rubrics whose scale cannot be read", len(lost), lost[0])
    rated = (row.status == "rated") & _of_scale(scales)
    ungraded = row.status.in_(STATUSES) & (row.status != "rated") & row.grade.is_(None)
    wrong = ~sa.func.coalesce(rated | ungraded, sa.false()) & row.rubric_digest.not_in(lost)
    yield from _location(
        connection, "ratings whose grade is not of their status or scale", row.rating_id, ratings, wrong
    )


def _of_scale(scales: Noted) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a rating's grade is a label of its scale; scales are found as by `Noted.of`."""
    row = ratings.c
    names_by_labels: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    for index, scale_by_name in enumerate((scales.rubrics, scales.judges)):
        for name, scale in scale_by_name.items():
            if scale is not None:
                names_by_labels.setdefault(scale.labels, ([], []))[index].append(name)
    cases = [
        (row.rubric_digest.in_(rubrics) | (row.rubric_digest == "") & row.judge_digest.in_(free), row.grade.in_(labels))
        for labels, (rubrics, free) in names_by_labels.items()
    ]
    five = row.grade.in_(FIVE.labels)
    return sa.case(*cases, else_=five) if cases else five


def payments(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield ratings that contradict their call, and ratings of models without a call.

    Only judges with a rubric are models; the ratings of heuristics have no call.
    """
    row, call = ratings.c, calls.c
    both = ratings.outerjoin(calls, row.call_id == call.call_id)
    has_call = row.call_id.is_not(None)
    shared = ("judge_digest", "rubric_digest", "replicate", "query_digest")
    for what, wrong in (
        ("ratings under a rubric without a call", ~has_call & (row.rubric_digest != "")),
        ("ratings of a call that is not there", has_call & call.call_id.is_(None)),
        (
            "ratings of another judge, rubric, replicate or query than their call's",
            sa.or_(*(row[name] != call[name] for name in shared)),
        ),
        ("ratings that are grades though their call got no reply", (row.status == "rated") & (call.finish == "error")),
    ):
        yield from _location(connection, what, row.rating_id, both, wrong)


def replies(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield ratings that differ from the reply of their call, parsed again.

    Passage, slot and batch size are compared with the call's list of passages, too. A reply that an older version could
    not parse may be readable now: its ratings may be missing. A reply is skipped if the scale of its rubric is
    unreadable, or if the provider of its judge is unknown or has no function `reply`. Calls and ratings are read in the
    order of calls, with bounded memory.
    """
    faults: dict[str, tuple[int, str]] = {}
    readers, scales = _readers(connection), noted(connection)
    for call, rows in _by_call(connection):
        scale, read = scales.of(call.judge_digest, call.rubric_digest), readers.get(call.judge_digest)
        misread = _misread(call, rows, read, scale) if read and scale else ()
        for what, key in (*_misplaced(call, rows), *misread):
            number, example = faults.get(what, (0, key))
            faults[what] = number + 1, min(example, key)
    for what, (number, example) in sorted(faults.items()):
        yield LedgerFault(what, number, example)


def _by_call(connection: sa.Connection) -> Iterator[tuple[Any, list[Any]]]:
    """Yield every call with its ratings; ratings of a missing call are skipped."""
    rows = sa.select(ratings).where(ratings.c.call_id.is_not(None)).order_by(ratings.c.call_id)
    groups = groupby(connection.execute(rows.execution_options(yield_per=CHUNK)), attrgetter("call_id"))
    name, call_ratings = next(groups, ("", iter(())))
    ordered = sa.select(calls).order_by(calls.c.call_id).execution_options(yield_per=REPLIES)
    for call in connection.execute(ordered):
        while name and name < call.call_id:
            name, call_ratings = next(groups, ("", iter(())))
        yield call, list(call_ratings) if name == call.call_id else []


def _misplaced(call: Any, rows: list[Any]) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - rows of a query
    passages = _listed(call.slots)
    for row in rows:
        if (
            row.batch_size != len(passages)
            or not 0 <= row.slot < row.batch_size
            or passages[row.slot] != row.passage_digest
        ):
            yield "ratings whose passage, slot or batch size is not that of their call", row.rating_id


def _misread(call: Any, rows: list[Any], read: Reader, scale: Scale) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    """Yield (fault, id) for differences between a call's ratings and those parsed again from its reply.

    With several passages, one without a grade need not have a rating.
    """
    if call.purpose != "judge" or call.finish == "error" or not call.raw:  # erased: it quoted a withdrawn record
        return
    reply, number = read(call.raw), len(_listed(call.slots))
    if reply is None and call.finish == "refusal":  # a content filter's, whose text names no model
        reply = Reply(None, "refusal", "", None)
    if reply is None:
        yield "calls whose reply is in no form that its provider knows", call.call_id
        return
    parsed = parse(reply.text, labels(number), scale, cut=reply.finish == "length")
    graded = enumerate((outcome.grade, outcome.status) for outcome in LlmJudge.outcomes(reply, parsed))
    expected = {slot: graded_status for slot, graded_status in graded if number == 1 or graded_status[0] is not None}
    if call.form not in ("", rating.form(reply, parsed)):
        rated = {row.slot for row in rows if row.status != "unparsed"}
        rows = [row for row in rows if row.slot in rated]
        expected = {slot: graded_status for slot, graded_status in expected.items() if slot in rated}
    for row in rows:
        if expected.get(row.slot) != (row.grade, row.status):
            yield "ratings that are not what the reply of their call says", row.rating_id
    for _slot in expected.keys() - {row.slot for row in rows}:
        yield "ratings that the reply of a call says, and that are not there", call.call_id


def _readers(connection: sa.Connection) -> dict[str, Reader]:
    """Return digest of a judge -> function that parses its replies, for judges of known providers."""
    readers, providers = {}, PROVIDERS.names()
    for name, identity in connection.execute(sa.select(judges)):
        kind = inner(_json(identity), "model", "kind")
        read = reader(kind) if isinstance(kind, str) and kind in providers else None
        if read is not None:
            readers[name] = read
    return readers


CHECKS: tuple[Callable[[sa.Connection], Iterator[LedgerFault]], ...] = (damage, identities, grades, payments, replies)


def _location(
    connection: sa.Connection,
    what: str,
    key: sa.ColumnClause[str],
    table: sa.FromClause,
    wrong: sa.ColumnElement[bool],
) -> Iterator[LedgerFault]:
    rows, example = connection.execute(
        sa.select(sa.func.count(), sa.func.min(key)).select_from(table).where(wrong)
    ).one()
    if rows:
        yield LedgerFault(what, rows, example)


def _listed(slots: str) -> list[str]:
    content = _json(slots)
    return content if isinstance(content, list) else []


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
