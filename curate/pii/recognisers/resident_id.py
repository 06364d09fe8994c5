"""Resident identity numbers of mainland China: 18 characters (GB 11643-1999), or 15 digits (the earlier form)."""

import re
from datetime import date

from curate.core.records import Span
from curate.pii.number_labels import (
    GAP,
    LINKS,
    NUMERALS,
    RAW_DASH,
    RAW_GAP,
    RAW_SPACE,
    SPACE,
    another,
    labelled,
    matches,
)
from curate.pii.patterns import ALONE, ENDED, THREE_DIGITS, narrow, trigger
from curate.pii.spans import apart, value_spans
from curate.pii.words import words

_PROVINCES = r"(?:1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3])"
"""The first two digits of a region code (GB/T 2260)."""
_X = "Xx×ΧХх"
"""The check character X, and characters typed in its place."""
_STAR = "*＊●•"
_ANY = f"[0-9{_X}{_STAR}]"
_STOP = f"(?![0-9{_STAR}])"

_BARE_ID = re.compile(rf"{ALONE}(?=(?P<value>[1-9](?:{GAP}[0-9]){{16}}{GAP}[0-9{_X}]){ENDED})")
_REGION = re.compile(f"{_PROVINCES}|9")
_CUTS = re.compile(f"[^0-9{_X}]+")
_LETTER = str.maketrans(dict.fromkeys(_X, "X"))
_LIKE_DAY = re.compile("(?:18|19|20)[0-9]{2}(?:0[1-9]|1[0-2])[0-3]")
_STARRED = re.compile(rf"{ALONE}(?P<value>{_PROVINCES}[0-9]{{4}}[{_STAR}]{{8}}[0-9]{{3}}[0-9{_X}]){ENDED}")
_LABELLED = labelled(
    words("resident_id")["words"],
    rf"[1-9]{_ANY}{{14,19}}{_STOP}|[1-9](?:{GAP}{_ANY}){{17}}{_STOP}|[1-9](?:{GAP}{_ANY}){{14}}{_STOP}",
    rf"(?:我的|你的|这个|如下|好像|应该|就|记得|[,，、]|{LINKS}){{0,8}}",
)
_OLD = re.compile(
    rf"(?<![0-9A-Za-z.#№_-])(?P<value>{_PROVINCES}[0-9]{{4}}[{SPACE}-]?[0-9]{{6}}[{SPACE}-]?[0-9]{{3}})(?![0-9A-Za-z%]|[.][0-9])"
)
_PARTS = {3, 6, 10, 12, 14, 17}
"""Offsets where region, year, month, day and serial number end: 110 101 1987 03 26 204 4."""
_EVEN = [set(range(size, 18, size)) for size in (1, 2, 3, 4, 6)]
_WEIGHTS = tuple(2**position % 11 for position in range(17, 0, -1))
_CHECK = "10X98765432"
_COUNTED = re.compile(rf"[{SPACE}]?[个元块份次年月]")


@trigger(rf"[\d{NUMERALS}](?:{RAW_GAP}[\dXxＸｘ×ΧХх{_STAR}{NUMERALS}]){{14}}", needs=THREE_DIGITS)
def resident_id(text: str) -> list[Span]:
    """Return resident identity numbers: 18 characters with an existing birthday and the right check digit.

    Spaces may separate parts, or groups of equal size; digits may be Chinese numerals. After a word such as 身份证,
    also 15 to 20 characters with any check digit, some of them starred. No number starts with 0.
    """
    bare = (match for match in matches([_BARE_ID], text) if _is_valid(match["value"]))
    after_words = (
        match for match in matches([_LABELLED, _STARRED], text) if sum(map(str.isdigit, match["value"])) >= 6
    )
    return apart([*value_spans(bare, "id_card", "resident_id"), *value_spans(after_words, "id_card", "resident_id")])


@trigger(rf"\d{{6}}[{RAW_SPACE}{RAW_DASH}]?\d{{6}}[{RAW_SPACE}{RAW_DASH}]?\d{{3}}", needs=THREE_DIGITS)
def resident_id_15(text: str) -> list[Span]:
    """Return identity numbers of 15 digits: province, place, birthday in the 20th century, serial number.

    They have no check digit, so a number is excluded directly after a word for another kind of number (订单号), or
    before a unit (元).
    """
    return value_spans((match for match in _OLD.finditer(narrow(text)) if _old(match)), "id_card", "resident_id_15")


def valid(number: str) -> bool:
    """Return whether 18 characters are a resident number with a valid date and check digit.

    Check digit by GB 11643-1999 (ISO 7064, MOD 11-2): the sum of digit times 2^(position from the right) mod 11.
    """
    if not _day(number[6:14]):
        return False
    return _CHECK[sum(int(digit) * weight for digit, weight in zip(number, _WEIGHTS, strict=False)) % 11] == number[17]


def _is_valid(written: str) -> bool:
    """Return whether a number is valid.

    A separated one must begin with a province and be cut between parts or evenly.
    """
    number = _compact(written)
    if not valid(number):
        return False
    cuts = {len(_compact(written[: gap.start()])) for gap in _CUTS.finditer(written)}
    return not cuts or (_REGION.match(number) is not None and (cuts <= _PARTS or cuts in _EVEN))


def _old(match: re.Match[str]) -> bool:
    number = _compact(match["value"])
    text, (start, end) = match.string, match.span("value")
    return (
        _day("19" + number[6:12]) and number[2:4] != "00" and not another(text, start) and not _COUNTED.match(text, end)
    )


def _day(digits: str) -> bool:
    """Return whether eight digits are a date from 1800 to 2099."""
    if not _LIKE_DAY.match(digits):  # most runs of digits are none; an exception for each would take long
        return False
    try:
        return 1800 <= date(int(digits[:4]), int(digits[4:6]), int(digits[6:])).year < 2100
    except ValueError:
        return False


def _compact(written: str) -> str:
    """Return a number without separators, with X for any form of its check character."""
    return _CUTS.sub("", written).translate(_LETTER)
