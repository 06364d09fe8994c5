"""Links, codes, flags and the log of a sample, as commands print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curate.commands.review.samples import next_lines
from curate.core.errors import ConfigError
from curate.core.figures import Record, figure
from curate.pii.residual import on_one_line
from curate.review import flags
from curate.review.access import Access
from curate.view.answers import Result
from curate.view.text import as_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from curate.review import Desk
    from curate.review.access import Role


class Invited(Record, schema_name="invited"):
    """A new link or code, or what was ended."""

    name: str = figure("name of the person")
    role: str | None = figure("assessor, adjudicator, lead or reader; null if links were ended")
    link: str | None = figure("address to send to the person; null for a code")
    code: str | None = figure("one-time code of eight digits; null for a link")
    until: str | None = figure("time in UTC until which it is valid")
    ended: int | None = figure("valid links and codes that were ended; null for a new one")


class InvitedPerson(Record):
    """A link or code with its state."""

    name: str = figure("name of the person")
    role: str = figure("assessor, adjudicator, lead or reader")
    until: str = figure("time in UTC until which it is valid")
    state: str = figure("open, entered, ended or expired")
    browsers: int = figure("browsers that entered by it")


class InvitedPeople(Record, schema_name="people"):
    """The links and codes of a sample."""

    people: tuple[InvitedPerson, ...] = figure("a row per link or code, oldest first")


class ReviewEvent(Record):
    """What a person did."""

    at: str = figure("time in UTC")
    person: str = figure("name; of a link, of who was invited")
    event: str = figure("invited, entered, ended, answered, revealed, conflict, flagged or settled")
    item: str | None = figure("row of the sample; null if the event has none")


class ReviewLog(Record, schema_name="log"):
    """Who did what when."""

    events: tuple[ReviewEvent, ...] = figure("events in the order of time")


class RowFlag(Record):
    """A flag of an assessor on a row."""

    item: str = figure("row of the sample")
    person: str = figure("assessor")
    flag: str = figure("cannot_judge or personal_data")
    reason: str | None = figure("query, text, field or other; null for personal data")
    at: str = figure("time in UTC")


class ReviewFlags(Record, schema_name="flags"):
    """The open flags of a sample."""

    flags: tuple[RowFlag, ...] = figure("a row per flag, oldest first")
    settled: int = figure("flags that this call settled")


def listed(desk: Desk, notices: Sequence[str]) -> Result[InvitedPeople]:
    """Return all links and codes with their state."""
    people = tuple(
        InvitedPerson(one.person, one.role, one.until, one.state, one.browsers) for one in Access(desk).invitations()
    )
    lines = [as_table([person.to_json() for person in people])] if people else ["no link was made"]
    return Result(InvitedPeople(people), lines, [*notices])


def revoked(desk: Desk, name: str, notices: Sequence[str]) -> Result[Invited]:
    """Return how many links and codes of a person were ended."""
    ended = Access(desk).revoke(name)
    lines = [f"{name}: {ended:,} links and codes ended"]
    return Result(Invited(name, None, None, None, None, ended), lines, [*notices])


def invited(
    desk: Desk, name: str, role: Role, days: int, address: str, notices: Sequence[str], *, code: bool
) -> Result[Invited]:
    """Return a new link or code for the page at an address."""
    invitation, secret = Access(desk).invite(name, role, days, code=code)
    link = None if code else f"{address}#{secret}"
    lines = [
        link or f"{secret}   one-time code for {address}",
        f"for {name} ({role}), until {invitation.until[:16]} UTC; it is shown only now",
    ]
    answer = Invited(name, role, link, secret if code else None, invitation.until, None)
    return Result(answer, lines, [*notices])


def log(desk: Desk, notices: Sequence[str]) -> Result[ReviewLog]:
    """Return all events of a sample."""
    raised = [(flag.at, flag.person, "flagged", flag.row_id) for flag in flags.of(desk)]
    events = [(event.at, event.person, event.event, event.item or None) for event in Access(desk).history()]
    rows = tuple(ReviewEvent(*row) for row in sorted([*events, *raised], key=lambda row: row[0]))
    return Result(ReviewLog(rows), [as_table([row.to_json() for row in rows])] if rows else ["no event"], [*notices])


def flagged(
    desk: Desk, row_id: str | None, how: flags.Settlement | None, notices: Sequence[str]
) -> Result[ReviewFlags]:
    """Return the open flags, after those of a row were settled."""
    if (row_id is None) != (how is None):
        raise ConfigError(
            "flags: found one of --settle and --as, expected both; give --settle ROW --as harmless|masked"
        )
    settled = flags.settle(desk, row_id, how) if row_id and how else 0
    rows = tuple(
        RowFlag(flag.row_id, flag.person, flag.flag, flag.reason or None, flag.at) for flag in flags.open_flags(desk)
    )
    lines = [f"{row_id}: {settled:,} flags settled as {how}"] if settled else []
    if rows:
        lines += [as_table([row.to_json() for row in rows]), *_flagged_rows(desk, rows)]
    else:
        lines.append("no open flag")
    personal = next((row.item for row in rows if row.flag == flags.PERSONAL), None)
    lines += _ways(desk, personal) if personal else next_lines(desk)
    return Result(ReviewFlags(rows, settled), lines, [*notices])


def _flagged_rows(desk: Desk, rows: Sequence[RowFlag]) -> Iterator[str]:
    """Yield each flagged row with its ids, the notes of those who flagged it, and its texts; for display only."""
    form, ids_by_row = desk.sample.form, dict(desk.sample.survey.select("row_id", "ids").iter_rows())
    for row_id in dict.fromkeys(row.item for row in rows):
        yield f"{row_id}  {'  '.join(map(on_one_line, ids_by_row[row_id]))}"
        for person in dict.fromkeys(row.person for row in rows if row.item == row_id):
            answer = desk.said(person).get(row_id)
            if answer and answer.note:
                yield f"  {form.headers['note']} ({person}): {on_one_line(answer.note)}"
        for column, text in zip(form.texts, desk.sample.rows[row_id].texts, strict=True):
            yield f"  {form.headers[column]}: {on_one_line(text)}"


def _ways(desk: Desk, row_id: str) -> list[str]:
    """Return the two commands that settle a row, and when to type which."""
    from curate.runs.status import NextStep, step_lines

    run = desk.sample.folder.parent.parent
    listing = flags.listing(run, desk.sample.design.name)
    again = f"once mask.words or mask.patterns of {run}/pipeline.yaml hide it and the run was repeated"
    harmless = NextStep(f"{listing} --settle {row_id} --as harmless", "if it is no personal data")
    return step_lines([harmless, NextStep(f"{listing} --settle {row_id} --as masked", again)])
