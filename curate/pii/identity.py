"""Identity numbers."""

import re
from datetime import date

from curate.pii.text import ALONE, ENDED, narrow
from curate.records import Span

_NUMBER = re.compile(rf"{ALONE}[1-9]\d{{5}}[ -]?(?:18|19|20)\d{{2}}[01]\d[0-3]\d[ -]?\d{{3}}[0-9Xx]{ENDED}", re.ASCII)
_WEIGHTS = tuple(2**place % 11 for place in range(17, 0, -1))
_CHECK = "10X98765432"


def resident_id(text: str) -> list[Span]:
    """Return resident identity numbers: 18 characters with a birthday that exists and the right check digit."""
    return [
        Span(match.start(), match.end(), "id_card", "resident_id")
        for match in _NUMBER.finditer(narrow(text))
        if valid(match[0].replace(" ", "").replace("-", "").upper())
    ]


def valid(number: str) -> bool:
    """Say whether 18 characters are a resident number.

    Check digit by GB 11643-1999 (ISO 7064, MOD 11-2): the sum of digit times 2^(place from the right) mod 11.
    """
    try:
        date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    return _CHECK[sum(int(digit) * weight for digit, weight in zip(number, _WEIGHTS, strict=False)) % 11] == number[17]
