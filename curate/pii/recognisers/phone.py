"""Mobile and landline numbers of mainland China, and e-mail addresses.

Numbers follow the numbering plan of China (ITU-T E.164, country code 86): a mobile has 11 digits from 13 to 19; a
landline has an area code (10, 2x, or three digits from 3 to 9) and 7 or 8 digits that do not start with 0 or 1. Numbers
with 400 and 800, and helplines of 3 to 6 digits, belong to no person and are not masked.
"""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import ALONE, DASH, DIGIT, DOT, ENDED, NINE, SPACE, THREE_DIGITS, TWO_SIGNS, narrow, trigger
from curate.pii.spans import apart
from curate.pii.words import any_of, either, raw, words

_WORDS = words("contacts")
GAP = f"[{SPACE}{DASH}]{{0,3}}"
_CUT = f"[{SPACE}{DASH}]{{1,3}}"
_SAME = f"[{SPACE}]?[{DOT}/{DASH}*~][{SPACE}]?"
ANY = rf"[{SPACE}{DASH}{DOT}./,，、]{{0,3}}"
LINKS = rf"号號码碼是为為:：={SPACE}(（【“\"'→>|{DASH}"
LINK = f"[{LINKS}]{{0,6}}"
"""Pattern between a word and its number; it does not match a closing `]`, which may end a placeholder."""
_FIXED = any_of(_WORDS["phone"])
PHONE = any_of(_WORDS["phone"], _WORDS["mobile"])
"""Words for telephone, including mobiles; `_FIXED` is without those for mobiles."""
CHINA = rf"(?:\(\+?86\)|\+[{SPACE}]?\(?86\)?|{ALONE}(?:00[{SPACE}]?86|86)){GAP}"

_CITIES = r"(?:10|2[0-57-9])"
"""Area codes of two digits, whose numbers have eight digits."""
_OTHERS = r"(?!400|[38]0)[3-9]\d{2}"
_LOCAL_8 = rf"[2-9]\d{{3}}(?:{GAP}|[{DOT}])\d{{4}}"
_LOCAL_7 = rf"(?:[2-9]\d{{2}}(?:{GAP}|[{DOT}])\d{{4}}|[2-9]\d{{3}}{_CUT}\d{{3}})"
_NUMBER = rf"(?:{_CITIES}~{_LOCAL_8}|{_OTHERS}~(?:{_LOCAL_8}|{_LOCAL_7}))"
"""Area code and number; ~ is replaced by the pattern of the separator."""
_EXTENSION = rf"(?:[{SPACE}]?(?:[转轉x#{DASH}]|分机号?|分機|内线|內線|ext\.?)[:：]?[{SPACE}]?\d{{1,6}}(?!\d))?"

_FLAGS = re.ASCII | re.IGNORECASE
_MOBILE = re.compile(
    rf"(?:{CHINA}|{ALONE})1[3-9]\d(?:"
    rf"{GAP}(?!\d\d00[ -]\d\d00)\d{{4}}{GAP}\d{{4}}"  # 150 2000 3000 are doses
    rf"|\d{_CUT}\d{{3}}{_CUT}\d{{4}}|\d{{4}}{_CUT}\d{{4}}| \d{{3}} \d{{3}}(?!00)\d\d(?! \d)"
    rf"|(?P<s>{_SAME})(?!\d\d00(?P=s)\d\d00)\d{{4}}(?P=s)\d{{4}}"
    r"|\.\d{4}\.\d{4}(?!\.\d)"  # dots in both places: with one it would be a decimal number, with more a version
    rf"|(?P<t>[{DOT}{DASH}])(?:\d\d(?P=t)\d\d(?P=t)\d\d(?P=t)\d\d|\d{{3}}(?P=t)\d{{5}}|\d{{4}}(?P=t)\d\d(?P=t)\d\d"
    rf"|\d\d(?P=t)\d{{3}}(?P=t)\d{{3}}|\d{{3}}(?P=t)\d{{3}}(?P=t)\d\d)){ENDED}",
    _FLAGS,
)
_MOBILE_SAID = re.compile(rf"(?P<p>{CHINA}|{PHONE}{LINK})(?P<n>0?1{ANY}[3-9](?:{ANY}\d){{9}}){ENDED}", _FLAGS)
_LANDLINE = re.compile(
    rf"(?:[(【]0{_NUMBER.replace('~', f'[)】]{GAP}')}|{ALONE}0{_NUMBER.replace('~', f'(?:{GAP}|[{DOT}/])')}"
    rf"|{ALONE}0{_CITIES}\.\d{{4}}\.\d{{4}}(?!\.\d)"
    rf"|{CHINA}(?:(?:\(0\)|0)?{_NUMBER.replace('~', GAP)}|\(0?{_NUMBER.replace('~', f'[)]{GAP}')})){ENDED}{_EXTENSION}",
    _FLAGS,
)
_DATE = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?!\d)"
_LOCAL = rf"(?!{_DATE})(?!400|800|9[56])(?:{_LOCAL_8}|{_LOCAL_7})(?!{GAP}\d){_EXTENSION}"
_LANDLINE_SAID = re.compile(rf"{_FIXED}{LINK}(?P<n>{_LOCAL})", _FLAGS)
_NEXT = re.compile(rf"[{SPACE}]?(?:[,，、/;；或和及与]|或者|以及)[{SPACE}]?(?P<n>{_LOCAL})", _FLAGS)
"""A second number after a landline, as in 010-61234870、61234871."""

_UNIT, _SIGN, _HEAP = (either(_WORDS[name]) for name in ("units", "signs", "heaps"))
_MEASURED = re.compile(rf"[{SPACE}]?(?:{_UNIT}(?![A-Za-z旦])|{_SIGN})", re.IGNORECASE)
_HEAPED = re.compile(rf"[{SPACE}]?{_HEAP}")
_NAMED = re.compile(rf"{any_of(_WORDS['codes'], _WORDS['counts'])}[.#号號]?{LINK}$", re.IGNORECASE)
_TOLL_FREE = re.compile(r"1[ .-]?8(00|33|44|55|66|77|88)[ .-]?[2-9]\d\d[ .-]?\d{4}")
_ENGLISH = re.compile(r"[A-Za-z]{2,}[ ,.:]")
_CHINESE = re.compile("[\u2e80-\u9fff]")

_RESERVED = r"(?:invalid|example|test)(?![A-Za-z0-9-])"
"""Domains reserved by RFC 2606, which belong to nobody; pseudonyms use them."""
_DOMAIN = re.compile(
    rf"@(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?!{_RESERVED}|{any_of(_WORDS['files'])}(?![A-Za-z]))[A-Za-z]{{2,24}}(?!\.{_RESERVED})"
)
_AT = rf"[{SPACE}]?(?:[\[(【{{<](?:at|@|#|艾特)[\])】}}>]|@|#|艾特|圈a|[{SPACE}]at[{SPACE}])[{SPACE}]?"
_POINT = rf"[{SPACE}]?(?:\.|[\[(【{{](?:dot|点|\.)[\])】}}]|[点。,，]|[{SPACE}]dot[{SPACE}])[{SPACE}]?"
_SPELT = re.compile(
    rf"{_AT}(?:(?:{any_of(_WORDS['providers'])}){_POINT}{any_of(_WORDS['ends'])})(?![A-Za-z])", re.IGNORECASE
)
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"
_LONGEST = 256
"""Number of characters before the @ that are examined; RFC 5321 permits 64, machine-generated addresses are longer."""

AFTER_WORD = (
    f"{raw(_WORDS['phone'], _WORDS['mobile'])}[{LINKS}（\u00a0\u2007\u202f\u3000\u2010-\u2015\u2212－]{{0,6}}{DIGIT}"
)
"""Trigger of numbers after a word."""


@trigger(NINE, needs=THREE_DIGITS)
def mobile(text: str) -> list[Span]:
    """Return mobile numbers of China: 11 digits from 13 to 19, with or without +86, next to no other digit."""
    narrowed = narrow(text)
    hits = [*_MOBILE.finditer(narrowed), *_MOBILE_SAID.finditer(narrowed)]
    return apart(
        Span(*_number_span(match), "phone", "mobile") for match in hits if personal(narrowed, *_number_span(match))
    )


@trigger(NINE, AFTER_WORD, needs=THREE_DIGITS)
def landline(text: str) -> list[Span]:
    """Return landline numbers of China with an area code: 0xx or 0xxx, in brackets or not, or +86 in place of the 0.

    Numbers without area code are found directly after a word for telephone, or after a number and a comma. An extension
    is part of the number. Listed public counselling lines are not masked.
    """
    narrowed = narrow(text)
    return apart(Span(start, end, "phone", "landline") for start, end in landlines(narrowed))


def landlines(narrowed: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the landline numbers of a narrowed text, unordered and possibly overlapping."""
    for match in [*_LANDLINE.finditer(narrowed), *_LANDLINE_SAID.finditer(narrowed)]:
        start, end = _number_span(match)
        digits = re.sub(r"\D", "", match[0])
        if any(digits.endswith(line.lstrip("0")) for line in _WORDS["public"]):
            continue
        if personal(narrowed, start, end):
            yield start, end
            while further := _NEXT.match(narrowed, end):
                yield further.span("n")
                end = further.end()


def _number_span(match: re.Match[str]) -> tuple[int, int]:
    """Return (start, end) of the number, without the word before it but with +86."""
    groups = match.groupdict()
    return match.span("n" if "n" in groups and "86" not in (groups.get("p") or "") else 0)


def personal(narrowed: str, start: int, end: int) -> bool:
    """Return whether a likely telephone number is, by its context, no count, code, price or toll-free line."""
    if counted(narrowed, start, end) or named(narrowed, start):
        return False
    if not _TOLL_FREE.fullmatch(narrowed, start, end):
        return True
    near = narrowed[max(0, start - 30) : end + 30]
    return _CHINESE.search(near) is not None or len(_ENGLISH.findall(near)) < 2


def counted(narrowed: str, start: int, end: int) -> bool:
    """Return whether the text after a number makes it a measurement, a price or (if it is short or round) a count."""
    heap = end - start < 7 or narrowed.endswith("00", start, end)
    return _MEASURED.match(narrowed, end) is not None or (heap and _HEAPED.match(narrowed, end) is not None)


def named(narrowed: str, start: int) -> bool:
    """Return whether the words before a number make it a code or a count: an order, a lot, a viral load."""
    return _NAMED.search(narrowed[max(0, start - 20) : start]) is not None


@trigger(
    rf"[@＠#＃]|艾特|{raw(['圈a'])}|{raw(['at'])}[\s\])）】］｝＞}}>{SPACE}]{{1,3}}{raw(_WORDS['providers'])}",
    needs=TWO_SIGNS,
)
def email(text: str) -> list[Span]:
    """Return e-mail addresses: letters, digits and . _ % + - before the @, and a domain.

    For large mail providers, `[at]`, `#`, 艾特 or spaces may replace the @, and `[dot]` or 点 the dot.
    """
    narrowed = narrow(text)
    ends = [*_DOMAIN.finditer(narrowed), *_SPELT.finditer(narrowed)]
    return apart(
        Span(start, end.end(), "email", "email")
        for end in ends
        if (start := _start(narrowed, end.start())) < end.start()
    )


def _start(narrowed: str, end: int) -> int:
    """Return the start of the local part that ends at `end`; `end` if it is empty."""
    preceding = narrowed[max(0, end - _LONGEST) : end]
    name = preceding[len(preceding.rstrip(_NAME)) :].lstrip("._%+-")
    return end - len(name)
