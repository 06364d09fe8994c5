"""Telephone numbers that a line end cuts in two or three: 1592038 and 4471 on the next line, (555) 301- and 4412."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import partial

from curate.pii.digits import THREE_DIGITS
from curate.pii.phone import PHONE, landline, mobile
from curate.pii.phone_overseas import overseas
from curate.pii.phone_western import western
from curate.pii.rewritten import Recognisers, found, rewrite
from curate.pii.spans import apart
from curate.pii.text import narrow, trigger
from curate.records import Span

_JOINT = re.compile(r"(?<=[0-9)-])[ \t]*(?:\r\n|\r|\n)[ \t]*(?=[-(]?[0-9])")
_WIDE_JOINT = r"[0-9０-９)）\u2010-\u2015\u2212－-][\s\u3000]*?[\r\n][\s\u3000]*[-－(（\u2010-\u2015\u2212]?[0-9０-９]"
_NUMBERS: Recognisers = (mobile, landline, western, overseas)
_ENDS = re.compile(r"\r\n|\r|\n")
_ANNOUNCED = re.compile(rf"{PHONE}[^0-9]{{0,6}}\Z", re.IGNORECASE)
_LINE_BEGINS, _LINE_ENDS = re.compile(r"(?:\A|[\r\n])[ \t]*\Z"), re.compile(r"[ \t]*(?:[\r\n]|\Z)")
_MOST = 2
"""Line ends in one number; a column of a table has more."""


@trigger(_WIDE_JOINT, needs=THREE_DIGITS)
def broken(text: str) -> list[Span]:
    """Return telephone numbers with a line end in them, with a hyphen or space beside it or without.

    Numbers that fill their lines are a table, unless a word for telephone stands in front, and so are three lines and
    more. What is a telephone number in one line is none that goes on in the next.
    """
    narrowed = narrow(text)
    whole = apart(span for each in _NUMBERS for span in each(narrowed))
    return apart(
        span
        for span in _joined(narrowed)
        if not _overlaps(span, whole)
        and len(_ENDS.findall(narrowed, span.start, span.end)) <= _MOST
        and not _alone(narrowed, span)
    )


def _sign(sign: str, _match: re.Match[str]) -> str:
    return sign


def _joined(text: str) -> Iterator[Span]:
    """Yield numbers that are there once lines are joined, without a sign between the digits or with a hyphen."""
    for sign in ("", "-"):
        yield from found(rewrite(text, _JOINT, partial(_sign, sign)), _NUMBERS, "broken")


def _overlaps(span: Span, others: list[Span]) -> bool:
    before = bisect_right(others, span.end - 1, key=lambda other: other.start) - 1
    return before >= 0 and others[before].end > span.start


def _alone(text: str, span: Span) -> bool:
    """Say whether the lines of a number hold nothing else, and no word for telephone stands in front."""
    front, back = text[max(0, span.start - 20) : span.start], text[span.end : span.end + 20]
    return (
        _LINE_BEGINS.search(front) is not None and _LINE_ENDS.match(back) is not None and not _ANNOUNCED.search(front)
    )
