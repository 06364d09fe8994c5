"""Telephone numbers of North America, the United Kingdom and Europe in their national forms.

North American Numbering Plan: three digits of the area code, first digit 2 to 9, then three and four digits. United
Kingdom (Ofcom's plan): a mobile starts with 07, a landline with 01 or 02. Other national forms are only recognised next
to a word for telephone. Toll-free and local-rate lines, public bodies and helplines are not masked.
"""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import DIGIT, NINE, SPACE, THREE_DIGITS, narrow, trigger
from curate.pii.recognisers.national_numbers import ENDED, FREE
from curate.pii.recognisers.phone import AFTER_WORD, personal
from curate.pii.spans import in_order
from curate.pii.words import one_of, raw, words

_LISTS = words("western_phones")
_LATIN = "A-Za-z\u00c0-\u024f"
_CODES = "|".join(sorted(_LISTS["countries"], key=len, reverse=True))
_EXTENSION = rf"(?:[{SPACE},;]{{0,2}}(?:ext(?:ension)?|x|poste|durchwahl|dw)\.?[{SPACE}:]?\d{{1,6}}(?!\d))?"
_GROUP = rf"(?<![{SPACE}]\d)"
"""Lookbehind for the end of a number: no single digit after a space, which counts the next word."""
_COUNTRY = rf"(?:\+|(?<![0-9])00[{SPACE}]?|\(\+?(?=\d{{1,3}}\)))(?:{_CODES})\)?"
_REST = rf"[{SPACE}./／-]{{0,2}}(?:\(0\)[{SPACE}]?)?(?:[{SPACE}./／()-]{{0,2}}\d){{6,12}}{_GROUP}"
_US = r"(?!400)[2-9](?!11)\d\d"
_NORTH_AMERICA = (
    rf"(?:\+?1[{SPACE}.-]{{0,2}})?\({_US}\)[{SPACE}.-]{{0,3}}\d{{3}}[{SPACE}.-]{{1,3}}\d{{4}}"
    rf"|(?:\+?1[{SPACE}.-])?{_US}[{SPACE}]?[-./][{SPACE}]?\d{{3}}[{SPACE}]?[-.][{SPACE}]?\d{{4}}"
    rf"|\+1[{SPACE}.-]?{_US}[{SPACE}.-]?\d{{3}}[{SPACE}.-]?\d{{4}}"
)
_BRITAIN = (
    rf"07[1-57-9]\d\d[{SPACE}-]?\d{{3}}[{SPACE}-]?\d{{3}}|07[1-57-9]\d[{SPACE}-]\d{{3}}[{SPACE}-]\d{{4}}"
    rf"|(?:02\d[{SPACE}-]|\(02\d\)[{SPACE}-]?)\d{{4}}[{SPACE}-]\d{{4}}"
    rf"|(?:01(?:1\d|\d1)[{SPACE}-]|\(01(?:1\d|\d1)\)[{SPACE}-]?)\d{{3}}[{SPACE}-]\d{{4}}"
    rf"|(?:01\d{{3}}[{SPACE}-]|\(01\d{{3}}\)[{SPACE}-]?)\d{{3}}[{SPACE}-]?\d{{2,3}}"
)
STANDING_ALONE = re.compile(
    rf"{FREE}(?=[0-9(+])(?:{_COUNTRY}{_REST}|{_NORTH_AMERICA}|{_BRITAIN})(?P<x>{_EXTENSION}){ENDED}", re.IGNORECASE
)
_LINK = rf"(?:[\s:：=.#＃№(,，°|-]|(?<![{_LATIN}])(?:{one_of(_LISTS['links'])})(?![{_LATIN}])){{1,8}}"
_WESTERN_SAID = re.compile(
    rf"(?<![{_LATIN}0-9_.@/])(?:{one_of(_LISTS['phone'])})(?![{_LATIN}]){_LINK}"
    rf"(?P<n>(?!12\d{{9}}(?!\d))[+(]{{0,2}}\d(?:[{SPACE}./／()-]{{0,2}}\d){{7,14}}{_GROUP}(?P<x>{_EXTENSION})){ENDED}",
    re.IGNORECASE,
)
"""Number after a word for telephone; excludes eleven digits that start with 12, which are pseudonyms."""
_CELL = re.compile(
    rf"(?<![{_LATIN}])cell{_LINK}(?P<n>{_US}[{SPACE}]?\d{{3}}[{SPACE}]?\d{{4}}(?P<x>{_EXTENSION})){ENDED}",
    re.IGNORECASE,
)
"""Number after `cell`; only North American forms, because others may be cell counts."""
_PUBLIC = re.compile("|".join(_LISTS["public"]))
_PREFIX = re.compile(rf"\A(?:\+|00)(?:{_CODES}|1)")
_DATE = re.compile(r"(?:(?:19|20)\d\d[-./](?:0?[1-9]|1[0-2])[-./][0-3]?\d|[0-3]?\d[-./][0-3]?\d[-./](?:19|20)\d\d)\Z")


@trigger(NINE, AFTER_WORD, rf"{raw(['tlf', 'mobil', 'telefon'])}[^\n]{{0,6}}{DIGIT}", needs=THREE_DIGITS)
def western(text: str) -> list[Span]:
    """Return telephone numbers of North America, the United Kingdom and Europe, with their extensions.

    Found anywhere: (555) 123-4567, 555-123-4567, 07700 900123, 020 7946 0958 and numbers with a country code; others
    next to a word for telephone. Toll-free and public lines are not masked.
    """
    narrowed = narrow(text)
    return in_order((extent for extent in _extents(narrowed) if personal(narrowed, *extent)), "phone", "western")


def for_everybody(match: re.Match[str]) -> bool:
    """Return whether the number that `STANDING_ALONE` matched is a public line."""
    return everybody(match.string[match.start() : match.start("x")])


def is_hotline(digits: str) -> bool:
    """Return whether digits are a listed line of a public body or a helpline."""
    return digits.removeprefix("1") in _LISTS["hotlines"]


def _extents(text: str) -> Iterator[tuple[int, int]]:
    for match in STANDING_ALONE.finditer(text):
        if not for_everybody(match):
            yield match.span()
    for match in [*_WESTERN_SAID.finditer(text), *_CELL.finditer(text)]:
        number = text[match.start("n") : match.start("x")]
        if not everybody(number) and not _DATE.match(number):
            yield match.span("n")


def everybody(number: str) -> bool:
    """Return whether a number is a public line: toll-free, of a public body, or a helpline."""
    plain = re.sub("[^+0-9]", "", number.replace("(0)", ""))
    local = _PREFIX.sub("", plain, count=1)
    forms = {plain.lstrip("+"), local} | ({f"0{local}"} if local != plain else set())
    return any(_PUBLIC.fullmatch(form) or is_hotline(form) for form in forms)
