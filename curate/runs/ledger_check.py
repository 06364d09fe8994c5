"""Look for what a ledger should never hold: rows that contradict one another, or a damaged file.

`CHECKS` is where a further one goes; each is a function from a connection to its findings.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from curate.ask import rating
from curate.ask.judges.llm import LlmJudge
from curate.core.config import digest
from curate.core.messages import Reply
from curate.core.records import STATUSES
from curate.core.scale import FIVE, Scale
from curate.ledger.database import DAMAGED
from curate.ledger.identities import RENAMED
from curate.ledger.scales import Noted, noted
from curate.ledger.store import CHUNK, Ledger
from curate.ledger.tables import calls, judges, ratings
from curate.llm.parse import parse
from curate.llm.prompts import labels
from curate.llm.providers import PROVIDERS, Reader, reader
from curate.llm.providers.sdk import inner

REPLIES = 500
"""Calls that are taken from the database at a time: their replies may be long."""


@dataclass(frozen=True)
class LedgerFault:
    """Something wrong: what, in how many rows, and the key of one of them."""

    what: str
    rows: int
    example: str

    def __str__(self) -> str:
        return f"{self.what}: {self.rows:,}, such as {self.example}"


def check(ledger: Ledger) -> list[LedgerFault]:
    """Return everything that is wrong with a ledger; nothing of it is mended."""
    with ledger.database.transaction("snapshot") as connection:
        return [finding for each in CHECKS for finding in each(connection)]


def damage(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield what SQLite finds wrong with its file."""
    if connection.dialect.name == "sqlite":
        said = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        if said != ["ok"]:
            yield LedgerFault("places where the file is damaged", len(said), f"{said[0]} ({DAMAGED})")


def identities(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield judges that are not what their digest says, and rows of judges that nobody registered."""
    wrong = []
    for name, identity in connection.execute(sa.select(judges)):
        try:
            said = json.loads(identity)
            same = digest(said) == name or set(said) == {RENAMED}
        except ValueError:
            same = False
        if not same:
            wrong.append(name)
    if wrong:
        yield LedgerFault("judges that are not what their digest says", len(wrong), min(wrong))
    known = sa.select(judges.c.judge_digest)
    for table, key in ((calls, calls.c.call_id), (ratings, ratings.c.rating_id)):
        yield from _where(
            connection, f"{table.name} of an unknown judge", key, table, table.c.judge_digest.not_in(known)
        )


def grades(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield rubrics whose scale cannot be read, and of all others ratings whose grade is not of status or scale."""
    row, known = ratings.c, noted(connection)
    lost = sorted(name for name, scale in known.rubrics.items() if scale is None)
    if lost:
        yield LedgerFault("rubrics whose scale cannot be read", len(lost), lost[0])
    rated = (row.status == "rated") & _of_scale(known)
    other = row.status.in_(STATUSES) & (row.status != "rated") & row.grade.is_(None)
    wrong = ~sa.func.coalesce(rated | other, sa.false()) & row.rubric_digest.not_in(lost)
    yield from _where(connection, "ratings whose grade is not of their status or scale", row.rating_id, ratings, wrong)


def _of_scale(known: Noted) -> sa.ColumnElement[bool]:
    """Say in SQL what `Noted.of` says of a row: whether its grade is a label of its scale."""
    row = ratings.c
    named: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    for place, found in enumerate((known.rubrics, known.judges)):
        for name, scale in found.items():
            if scale is not None:
                named.setdefault(scale.labels, ([], []))[place].append(name)
    cases = [
        (row.rubric_digest.in_(rubrics) | (row.rubric_digest == "") & row.judge_digest.in_(free), row.grade.in_(given))
        for given, (rubrics, free) in named.items()
    ]
    five = row.grade.in_(FIVE.labels)
    return sa.case(*cases, else_=five) if cases else five


def payments(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield ratings that do not fit the call that they name, and those that should name one.

    Only a judge that reads a rubric is a model and is called; the ratings of heuristics have no call.
    """
    row, call = ratings.c, calls.c
    both = ratings.outerjoin(calls, row.call_id == call.call_id)
    named = row.call_id.is_not(None)
    shared = ("judge_digest", "rubric_digest", "replicate", "query_digest")
    for what, wrong in (
        ("ratings under a rubric without a call", ~named & (row.rubric_digest != "")),
        ("ratings of a call that is not there", named & call.call_id.is_(None)),
        ("ratings of another judge, rubric, replicate or query than their call's", _differ(shared)),
        ("ratings that are grades though their call got no reply", (row.status == "rated") & (call.finish == "error")),
    ):
        yield from _where(connection, what, row.rating_id, both, wrong)


def replies(connection: sa.Connection) -> Iterator[LedgerFault]:
    """Yield ratings that are not what the reply of their call says, read again by the parser of fresh replies.

    What an older version could not read, as the call's form says, may be read today: its ratings need not be there.
    Their passage, slot and batch size are compared with the call's list of passages, too. Calls and ratings are read
    side by side, in the order of the calls; no more than some of them are in memory. A reply can be read again if its
    rubric's scale can be, and its judge's provider is known here and has a function `reply`; else it is passed over.
    """
    found: dict[str, tuple[int, str]] = {}
    readers, scales = _readers(connection), noted(connection)
    for call, rows in _by_call(connection):
        scale, read = scales.of(call.judge_digest, call.rubric_digest), readers.get(call.judge_digest)
        misread = _misread(call, rows, read, scale) if read and scale else ()
        for what, key in (*_misplaced(call, rows), *misread):
            number, example = found.get(what, (0, key))
            found[what] = number + 1, min(example, key)
    for what, (number, example) in sorted(found.items()):
        yield LedgerFault(what, number, example)


def _by_call(connection: sa.Connection) -> Iterator[tuple[Any, list[Any]]]:
    """Yield every call with its ratings; ratings of a call that is not there are passed over."""
    rows = sa.select(ratings).where(ratings.c.call_id.is_not(None)).order_by(ratings.c.call_id)
    groups = groupby(connection.execute(rows.execution_options(yield_per=CHUNK)), attrgetter("call_id"))
    name, said = next(groups, ("", iter(())))
    ordered = sa.select(calls).order_by(calls.c.call_id).execution_options(yield_per=REPLIES)
    for call in connection.execute(ordered):
        while name and name < call.call_id:
            name, said = next(groups, ("", iter(())))
        yield call, list(said) if name == call.call_id else []


def _misplaced(call: Any, rows: list[Any]) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - rows of a query
    shown = _listed(call.slots)
    for row in rows:
        if row.batch_size != len(shown) or not 0 <= row.slot < row.batch_size or shown[row.slot] != row.passage_digest:
            yield "ratings whose passage, slot or batch size is not that of their call", row.rating_id


def _misread(call: Any, rows: list[Any], read: Reader, scale: Scale) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    """Compare the ratings of a call with its reply: every grade in it, and of a passage shown alone also its lack."""
    if call.purpose != "judge" or call.finish == "error":
        return
    reply, number = read(call.raw), len(_listed(call.slots))
    if reply is None and call.finish == "refusal":  # a content filter's, whose text names no model
        reply = Reply(None, "refusal", "", None)
    if reply is None:
        yield "calls whose reply is in no form that its provider knows", call.call_id
        return
    parsed = parse(reply.text, labels(number), scale, cut=reply.finish == "length")
    graded = enumerate((outcome.grade, outcome.status) for outcome in LlmJudge.outcomes(reply, parsed))
    expected = {slot: each for slot, each in graded if number == 1 or each[0] is not None}
    if call.form not in ("", rating.form(reply, parsed)):
        rated = {row.slot for row in rows if row.status != "unparsed"}
        rows = [row for row in rows if row.slot in rated]
        expected = {slot: each for slot, each in expected.items() if slot in rated}
    for row in rows:
        if expected.get(row.slot) != (row.grade, row.status):
            yield "ratings that are not what the reply of their call says", row.rating_id
    for _slot in expected.keys() - {row.slot for row in rows}:
        yield "ratings that the reply of a call says, and that are not there", call.call_id


def _readers(connection: sa.Connection) -> dict[str, Reader]:
    """Return what reads the replies of each judge."""
    found, known = {}, PROVIDERS.names()
    for name, identity in connection.execute(sa.select(judges)):
        kind = inner(_json(identity), "model", "kind")
        read = reader(kind) if isinstance(kind, str) and kind in known else None
        if read is not None:
            found[name] = read
    return found


CHECKS: tuple[Callable[[sa.Connection], Iterator[LedgerFault]], ...] = (damage, identities, grades, payments, replies)


def _differ(names: tuple[str, ...]) -> sa.ColumnElement[bool]:
    return sa.or_(*(ratings.c[name] != calls.c[name] for name in names))


def _where(
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
    found = _json(slots)
    return found if isinstance(found, list) else []


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
