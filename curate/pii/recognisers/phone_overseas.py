"""Telephone numbers of Hong Kong, Macao, Taiwan and the rest of the world.

Country codes by ITU-T E.164: +852 and +853 have eight digits, +886 eight or nine; a number with its country code has at
most 15. Taiwan's own forms start with 09 (mobile) or 0 and an area code.
"""

import re

from curate.core.records import Span
from curate.pii.patterns import ALONE, ENDED, NINE, SPACE, THREE_DIGITS, narrow, trigger
from curate.pii.recognisers.phone import AFTER_WORD, GAP, LINK, PHONE, personal
from curate.pii.spans import apart


def _country(code: str) -> str:
    return rf"(?:\+[{SPACE}]?\(?{code}\)?|\(\+?{code}\)|{ALONE}00[{SPACE}]?{code}|{ALONE}{code}(?=[{SPACE}-])){GAP}"


_EIGHT = rf"[2-9]\d{{3}}{GAP}\d{{4}}"
_TAIWAN = rf"(?:9\d\d{GAP}\d{{3}}{GAP}\d{{3}}|[2-8]{GAP}\d{{3,4}}{GAP}\d{{4}}|[3-8]\d{GAP}\d{{3}}{GAP}\d{{3,4}})"
_REGIONS = re.compile(
    rf"(?:{_country('85[23]')}{_EIGHT}|{_country('886')}(?:\(0\)|0)?{GAP}{_TAIWAN}"
    rf"|{ALONE}09\d\d-\d{{3}}-\d{{3}}|\(0[2-8]\){GAP}\d{{3,4}}{GAP}\d{{4}}|{ALONE}0[2-8]-\d{{3,4}}-\d{{4}}){ENDED}(?!-\d)",
    re.ASCII,
)
_SAID = re.compile(
    rf"{PHONE}{LINK}(?P<n>09\d\d{GAP}\d{{3}}{GAP}\d{{3}}|0[2-8]{GAP}\d{{3,4}}{GAP}\d{{4}}){ENDED}",
    re.ASCII | re.IGNORECASE,
)
_SIGN = rf"(?<![A-Za-z0-9+)*.=])\+[{SPACE}]?"
_WORLD = re.compile(
    rf"{_SIGN}(?:\(?1\)?[ -]?\(?[2-9]\d\d\)?[ -]?[2-9]\d\d[ -]?\d{{4}}|1(?:\.[2-9]\d\d){{2}}\.\d{{4}}"
    rf"|\(?(?!86|1|0)[2-9](?:[ ()-]{{0,2}}\d){{9,13}}){ENDED}",
    re.ASCII,
)
_TOLL_FREE = re.compile(r"\+ ?\(?1\D{0,3}8(?:00|33|44|55|66|77|88)")


@trigger(NINE, AFTER_WORD, needs=THREE_DIGITS)
def overseas(text: str) -> list[Span]:
    """Return numbers with +852, +853, +886 or another country code, and Taiwan's 09xx-xxx-xxx and (02)xxxx-xxxx.

    Other forms without + or a word for telephone are not found; North American toll-free lines are not masked.
    """
    narrowed = narrow(text)
    extents = [match.span() for match in _REGIONS.finditer(narrowed)]
    extents += [match.span("n") for match in _SAID.finditer(narrowed)]
    extents += [match.span() for match in _WORLD.finditer(narrowed) if not _TOLL_FREE.match(match[0])]
    return apart(Span(*extent, "phone", "overseas") for extent in extents if personal(narrowed, *extent))
