"""What the patterns of all recognisers share."""

import re
from collections.abc import Iterator

from curate.records import Span

ALONE = r"(?<![0-9])(?<!(?<![0-9])0\.)"
"""No digit in front, nor the start of a decimal number below 1. Letters may stand there: `tel138...`, `wx138...`."""
ENDED = r"(?![0-9])"

_WIDE = re.compile(
    "[\u00a0\u2007\u202f\u2010-\u2015\u2212\u3000\uff05\uff08\uff09\uff0b\uff0d\uff0e\uff10-\uff19\uff20-\uff3f\uff41-\uff5a]"
)
_SPACES, _DASHES = "\u00a0\u2007\u202f\u3000", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


def narrow(text: str) -> str:
    """Return the text with full-width letters, digits, signs, dashes and spaces in ASCII; every offset stays."""
    return _WIDE.sub(_narrow, text)


def _narrow(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SPACES:
        return " "
    return "-" if character in _DASHES else chr(ord(character) - 0xFEE0)


def spans(pattern: re.Pattern[str], text: str, kind: str, recogniser: str) -> Iterator[Span]:
    """Yield a span for every match of the pattern in the narrowed text."""
    for match in pattern.finditer(narrow(text)):
        yield Span(match.start(), match.end(), kind, recogniser)
