"""What an HTTP reply says about asking again: whether, and after how many seconds."""

import datetime as dt
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST_S = 300.0
"""No pause that a server asks for is kept to for longer than this: who reads one cuts it, or gives up."""
NAMELESS = 3
"""Tries after which a host whose name leads to no address is given up: time mends that of no name that is misspelt."""
_PASSING = frozenset({408, 409, 425, 429, 499})
_NOT_IMPLEMENTED = 501


def may_pass(status: int) -> bool:
    """Say whether the same request may succeed later, after a reply with this HTTP status."""
    return status in _PASSING or (status >= 500 and status != _NOT_IMPLEMENTED)


def asked(headers: Mapping[str, str], now: dt.datetime) -> float | None:
    """Return the seconds that a reply asks to wait, 0 or more: from retry-after-ms, else Retry-After (seconds, a date).

    None if it names no time. A wait of hours comes back as it is, so that it can be told from one of minutes.
    `headers` is looked up by lower-case names; `now` needs a time zone, and a date without one is UTC.
    """
    milliseconds, value = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    seconds = _number(value) if milliseconds is None else milliseconds / 1000
    if seconds is None:
        seconds = _until(value, now)
    return None if seconds is None else max(seconds, 0.0)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(value: str, now: dt.datetime) -> float | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=dt.UTC)
    return (aware - now).total_seconds()
