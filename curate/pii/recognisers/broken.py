"""Telephone numbers that a line end cuts in two or three: 1592038 and 4471 on the next line, (555) 301- and 4412."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import partial

from curate.core.records import Span
from curate.pii.digits import THREE_DIGITS
from curate.pii.recognisers.phone import LINK, PHONE, landline, mobile, personal
from curate.pii.recognisers.phone_overseas import overseas
from curate.pii.recognisers.phone_western import western
from curate.pii.rewritten import Recognisers, found, rewrite
from curate.pii.spans import apart
from curate.pii.text import narrow, trigger

_CUT = r"[ \t]*(?:\r\n|\r|\n)[ \t]*(?:(?:>|&gt;)[ \t]*){0,5}"
"""A line end, and the marks of a quotation in the next line."""
_JOINT = re.compile(rf"(?<=[0-9)-]){_CUT}(?=[-(]?[0-9])")
_WIDE_JOINT = (
    r"[0-9０-９)）\u2010-\u2015\u2212－-][\s\u3000]*?[\r\n](?:[\s\u3000>＞]|&gt;)*"
    r"[-－(（\u2010-\u2015\u2212]?[0-9０-９]"
)
_NUMBERS: Recognisers = (mobile, landline, western, overseas)
_ENDS = re.compile(r"\r\n|\r|\n")
_ANNOUNCED = re.compile(rf"{PHONE}[^0-9]{{0,6}}\Z", re.IGNORECASE)
_GROUPS = re.compile(
    rf"{PHONE}{LINK}(?P<value>1[3-9][0-9]{{1,2}}-{_CUT}[0-9]{{3,4}}-{_CUT}[0-9]{{3,5}})(?![0-9-])", re.IGNORECASE
)
"""Three groups, each with a hyphen at its line end: the word and the hyphens say that they are one number, of
any length."""
_CODE = re.compile(rf"(?:\+ ?|00)\(?86\)?-?{_CUT}\Z")
_LINE_BEGINS, _LINE_ENDS = re.compile(r"(?:\A|[\r\n])[ \t>]*\Z"), re.compile(r"[ \t]*(?:[\r\n]|\Z)")
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
        if not _overlaps(narrowed, span, whole)
        and len(_ENDS.findall(narrowed, span.start, span.end)) <= _MOST
        and not _alone(narrowed, span)
    )


def _sign(sign: str, _match: re.Match[str]) -> str:
    return sign


def _joined(text: str) -> Iterator[Span]:
    """Yield numbers that are there once lines are joined, without a sign between the digits or with a hyphen."""
    for sign in ("", "-"):
        yield from found(rewrite(text, _JOINT, partial(_sign, sign)), _NUMBERS, "broken")
    for match in _GROUPS.finditer(text):
        if personal(text, *match.span("value")):
            yield Span(*match.span("value"), "phone", "broken")


def _overlaps(text: str, span: Span, others: list[Span]) -> bool:
    """Say whether a number overlaps another one, which is not what follows the country code in a line of its own."""
    before = bisect_right(others, span.end - 1, key=lambda other: other.start) - 1
    if before < 0 or others[before].end <= span.start:
        return False
    return others[before].end != span.end or not _CODE.fullmatch(text, span.start, others[before].start)


def _alone(text: str, span: Span) -> bool:
    """Say whether the lines of a number hold nothing else, and no word for telephone stands in front."""
    front, back = text[max(0, span.start - 20) : span.start], text[span.end : span.end + 20]
    return (
        _LINE_BEGINS.search(front) is not None and _LINE_ENDS.match(back) is not None and not _ANNOUNCED.search(front)
    )
