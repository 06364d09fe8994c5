"""Who may open the pages of a sample: personal links and one-time codes, roles, passes of browsers, and a log.

All is kept in `access.jsonl` of the sample's folder, which is only appended to. A token is 256 random bits and kept as
its SHA-256; a code has eight digits and is kept as salted scrypt, since otherwise all codes could be tried on the file.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from curate.core.errors import ConfigError, DataError, NotFound, suggestion
from curate.review.desk import Desk, checked, history
from curate.review.sheets.files import fold
from curate.system.files import append_lines, read_lines

Role = Literal["assessor", "adjudicator", "lead", "reader"]
ROLES: tuple[Role, ...] = get_args(Role)
ENTER = "/enter"
"""Path at which a personal link or a code becomes a pass."""
FILE = "access.jsonl"
DAYS = 30
"""Days for which a link is valid."""
_CODE_HOURS = 24
_TRIES = 5
"""Wrong codes after which every open code ends: a wrong code names nobody."""
_WRONG = "wrong code"
EVENTS = ("invited", "entered", "ended", "answered", "revealed", "conflict", "flagged", "settled")


def public(url: str) -> str:
    """Return a public URL without a slash at its end; ConfigError for one that is no https address of a host."""
    address = urlsplit(url)
    if address.scheme != "https" or not address.hostname or address.query or address.fragment or address.username:
        raise ConfigError(
            f"--public-url: found {url!r}, expected an address with TLS; give https://HOST or https://HOST/PATH"
        )
    return url.rstrip("/")


@dataclass(frozen=True)
class AccessEvent:
    """A line of `access.jsonl`; fields that an event has no use for are empty."""

    event: str
    person: str
    at: str
    """Time in UTC, ISO 8601."""
    item: str = ""
    role: str = ""
    until: str = ""
    """End of a link, of a code, or of the passes that it gave."""
    digest: str = ""
    """Of an invitation: SHA-256 of its token, or salt and scrypt of its code; of an entry: SHA-256 of the pass."""
    link: str = ""
    """Of an entry: `digest` of the invitation that was used."""


@dataclass(frozen=True)
class Invitation:
    """A person's link or code, and its state."""

    person: str
    role: Role
    until: str
    state: Literal["open", "entered", "ended", "expired"]
    browsers: int
    """Number of browsers that entered by it."""
    digest: str

    @property
    def valid(self) -> bool:
        """Return whether its passes are valid."""
        return self.state in ("open", "entered")


class Access:
    """The people of a sample: invites them, lets their browsers in, and logs what they do."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._file = desk.sample.folder / FILE

    def invite(self, person: str, role: Role, days: int = DAYS, *, code: bool = False) -> tuple[Invitation, str]:
        """Return a new invitation and its secret, a token or a code, which is kept nowhere.

        ConfigError for an assessor who reads no row of the sample, an adjudicator who reads some, or a name that
        differs from another in case or width alone.
        """
        checked(person, "person")
        if role == "assessor" and person not in self.desk.assessors:
            raise ConfigError(
                f"invite {person}: found no assessor of this name; {suggestion(person, self.desk.assessors)}"
            )
        if role == "adjudicator" and person in self.desk.assessors:
            raise ConfigError(
                f"invite {person}: found an assessor of the sample, expected a person who has not read it; "
                "name another adjudicator"
            )
        names = {fold(name): name for name in (*self.desk.assessors, *(one.person for one in self.invitations()))}
        if (alike := names.get(fold(person), person)) != person:
            raise ConfigError(f"invite {person}: found {alike!r}, another spelling of this name; give that one")
        if code:
            secret, until = f"{secrets.randbelow(10**8):08}", _now() + timedelta(hours=_CODE_HOURS)
            digest = _scrypt(secret, secrets.token_hex(16))
        else:
            secret, until = secrets.token_urlsafe(32), _now() + timedelta(days=days)
            digest = _sha256(secret)
        self.log("invited", person, role=role, until=_text(until), digest=digest)
        return Invitation(person, role, _text(until), "open", 0, digest), secret

    def revoke(self, person: str) -> int:
        """End a person's links, codes and passes; return how many were valid, NotFound if there never were any."""
        of_person = [invitation for invitation in self.invitations() if invitation.person == person]
        if not of_person:
            names = [invitation.person for invitation in self.invitations()]
            raise NotFound(f"invite {person} --revoke: found no link of this name; {suggestion(person, names)}")
        self.log("ended", person)
        return sum(invitation.valid for invitation in of_person)

    def invitations(self) -> list[Invitation]:
        """Return every invitation with its state, oldest first."""
        return self._invitations(list(self.events()))

    def _invitations(self, events: Sequence[AccessEvent]) -> list[Invitation]:
        now = _text(_now())
        wrong = [number for number, event in enumerate(events) if event.event == _WRONG]
        invitations = []
        for number, event in enumerate(events):
            if event.event != "invited":
                continue
            browsers = sum(later.link == event.digest for later in events)
            is_code = ":" in event.digest
            tried_out = is_code and not browsers and sum(position > number for position in wrong) >= _TRIES
            ended = any(later.event == "ended" and later.person == event.person for later in events[number:])
            state: Literal["open", "entered", "ended", "expired"] = (
                "ended"
                if ended or tried_out
                else "expired"
                if event.until <= now
                else "entered"
                if browsers
                else "open"
            )
            role = next(role for role in ROLES if role == event.role)
            invitations.append(Invitation(event.person, role, event.until, state, browsers, event.digest))
        return invitations

    def enter(self, secret: str) -> tuple[Invitation, str] | None:
        """Return the invitation of a token or a code, and a new pass for the browser; None if it gives none.

        A code gives one pass; a wrong code counts against every open code.
        """
        digest = _sha256(secret)
        is_code = len(secret) == len("00000000") and secret.isascii() and secret.isdecimal()
        for invitation in reversed(self.invitations()):
            of_code = ":" in invitation.digest
            if not invitation.valid or of_code != is_code or (of_code and invitation.browsers):
                continue
            own_digest = _scrypt(secret, invitation.digest.partition(":")[0]) if of_code else digest
            if hmac.compare_digest(own_digest, invitation.digest):
                browser_pass = secrets.token_urlsafe(32)
                until = invitation.until if not of_code else _text(_now() + timedelta(days=DAYS))
                self.log(
                    "entered",
                    invitation.person,
                    role=invitation.role,
                    until=until,
                    digest=_sha256(browser_pass),
                    link=invitation.digest,
                )
                return invitation, browser_pass
        if is_code and any(one.valid and ":" in one.digest and not one.browsers for one in self.invitations()):
            self.log(_WRONG, "")  # without an open code the file does not grow
        return None

    def holder(self, browser_pass: str) -> Invitation | None:
        """Return whose pass a browser has; None if it is unknown, expired, or ended."""
        digest, now, events = _sha256(browser_pass), _text(_now()), list(self.events())
        entry = next((event for event in events if event.event == "entered" and event.digest == digest), None)
        if entry is None or entry.until <= now:
            return None
        link = next(one for one in self._invitations(events) if one.digest == entry.link)
        is_code = ":" in link.digest  # a code ends in a day, its pass does not
        return link if link.valid or (is_code and link.state == "expired") else None

    def events(self) -> Iterator[AccessEvent]:
        """Yield all lines; DataError for a damaged one."""
        for line, record in read_lines(self._file):
            try:
                yield AccessEvent(**record)
            except TypeError as error:
                raise DataError(
                    f"{self._file}:{line}: found a damaged line, expected an event; take the line out"
                ) from error

    def log(self, event: str, person: str, item: str = "", **more: str) -> None:
        """Append an event; it is on the disk when this returns."""
        append_lines(self._file, [_nonempty(asdict(AccessEvent(event, person, _text(_now()), item, **more)))])

    def history(self) -> list[AccessEvent]:
        """Return who did what when, answers too, in the order of time; without secrets and wrong codes."""
        answered = [
            AccessEvent("answered", person, answer.time, answer.row_id)
            for person in self.desk.people()
            for answer in history(self.desk.sample.folder, person)
        ]
        return sorted((*(event for event in self.events() if event.event in EVENTS), *answered), key=lambda one: one.at)


def _nonempty(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: field for name, field in record.items() if field or name in ("event", "person", "at")}


def _now() -> datetime:
    return datetime.now(UTC)


def _text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _scrypt(code: str, salt: str) -> str:
    digest = hashlib.scrypt(code.encode(), salt=salt.encode(), n=1 << 14, r=8, p=1)
    return f"{salt}:{digest.hex()}"
