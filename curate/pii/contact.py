"""Ways to reach a person: mobile and landline numbers of mainland China, e-mail addresses."""

import re

from curate.pii.text import ALONE, ENDED, spans
from curate.records import Span

_GAP = r"[ -]?"
_CHINA = rf"(?:\(\+86\)|\+86|{ALONE}(?:0086|86)){_GAP}"
_LOCAL_8 = rf"[2-9]\d{{3}}{_GAP}\d{{4}}"
_LOCAL_7 = rf"[2-9]\d{{2}}{_GAP}\d{{4}}"
_FIRST_CITIES = r"(?:10|2[0-57-9])"
"""Area codes of two digits, whose numbers have eight."""
_OTHER_CITIES = r"[3-9]\d{2}"

_DOTTED = r"\.\d{4}\.\d{4}(?!\.\d)"
"""Dots in both places: with one of them it would be a decimal number, with more a version."""

_MOBILE = re.compile(
    rf"(?:{_CHINA}|{ALONE})1[3-9]\d(?:{_GAP}\d{{4}}{_GAP}\d{{4}}|\d{_GAP}\d{{3}}{_GAP}\d{{4}}|{_DOTTED}){ENDED}",
    re.ASCII,
)
_LANDLINE = re.compile(
    rf"(?:\(0(?:{_FIRST_CITIES}\){_GAP}{_LOCAL_8}|{_OTHER_CITIES}\){_GAP}(?:{_LOCAL_8}|{_LOCAL_7}))"
    rf"|{ALONE}0(?:{_FIRST_CITIES}{_GAP}{_LOCAL_8}|{_OTHER_CITIES}{_GAP}(?:{_LOCAL_8}|{_LOCAL_7}))"
    rf"|{_CHINA}(?:{_FIRST_CITIES}{_GAP}{_LOCAL_8}|{_OTHER_CITIES}{_GAP}(?:{_LOCAL_8}|{_LOCAL_7}))){ENDED}",
    re.ASCII,
)
_EMAIL = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}")


def mobile(text: str) -> list[Span]:
    """Return mobile numbers: 11 digits from 13 to 19, +86 or not; letters may touch them, digits may not.

    They may be grouped 3-4-4 or 4-3-4 by spaces or dashes, or 3-4-4 by dots.
    """
    return list(spans(_MOBILE, text, "phone", "mobile"))


def landline(text: str) -> list[Span]:
    """Return landline numbers with an area code of China: 0xx or 0xxx, in brackets or not, or +86 in place of the 0."""
    return list(spans(_LANDLINE, text, "phone", "landline"))


def email(text: str) -> list[Span]:
    """Return e-mail addresses: at most 64 letters, digits and . _ % + - before the @, a domain after it."""
    return list(spans(_EMAIL, text, "email", "email"))
