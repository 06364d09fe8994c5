"""Retry-After of HTTP replies: whether to try again, and after how many seconds."""

import datetime as dt
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST_S = 300.0
"""Maximum seconds to wait at a server's request; callers cut longer pauses, or give up."""
NAMELESS = 3
"""Maximum attempts for a host whose name does not resolve: a misspelt name never will."""
_PASSING = frozenset({408, 409, 425, 429, 499})
_NOT_IMPLEMENTED = 501


def may_pass(status: int) -> bool:
    """Return whether the same request may succeed later, after a reply with this HTTP status."""
    return status in _PASSING or (status >= 500 and status != _NOT_IMPLEMENTED)


def asked(headers: Mapping[str, str], now: dt.datetime) -> float | None:
    """Return the seconds that a reply asks to wait, 0 or more: from retry-after-ms, else Retry-After (seconds, a date).

    None if it names no time. Waits of hours are returned uncut.
    `headers` is looked up by lower-case names; `now` needs a time zone, and a date without one is UTC.
    """
    milliseconds, text = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    seconds = _number(text) if milliseconds is None else milliseconds / 1000
    if seconds is None:
        seconds = _until(text, now)
    return None if seconds is None else max(seconds, 0.0)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(text: str, now: dt.datetime) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=dt.UTC)
    return (aware - now).total_seconds()
