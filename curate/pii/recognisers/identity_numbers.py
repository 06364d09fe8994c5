"""Numbers of identity cards, passports, permits, vehicles and bank cards, by check digits or by a word in front."""

import re
from collections.abc import Iterator
from datetime import date

from curate.core.records import Span
from curate.pii.number_labels import (
    CODE,
    GAP,
    LINKS,
    NUMERALS,
    RAW_DASH,
    RAW_GAP,
    RAW_SPACE,
    SPACE,
    WORD_ENDED,
    another,
    labelled,
    loosely,
    matches,
)
from curate.pii.patterns import ALONE, CHINESE, ENDED, THREE_DIGITS, TWO_SIGNS, narrow, trigger
from curate.pii.spans import apart, value_spans
from curate.pii.words import words

# Resident identity numbers of mainland China: 18 characters (GB 11643-1999), or 15 digits (the earlier form).

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


# Numbers of passports, travel permits, social security, and identity cards of Hong Kong, Macao and Taiwan.

_DOCUMENT_LISTS = words("documents")
_FREE = r"(?<![A-Za-z0-9./_-])"
_DAY = r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-2][0-9]|3[01])"

_PASSPORT = labelled(
    _DOCUMENT_LISTS["passport"],
    rf"(?:[A-Za-z]{{1,2}}[{SPACE}-]?[0-9]{{3,4}}[{SPACE}-][0-9]{{4}}|[A-Za-z]{{1,2}}[{SPACE}-]?[0-9][0-9*]{{5,7}}|[0-9]{{9}}|[A-Za-z][0-9A-Za-z]{{1,2}}[0-9]{{5,7}}){WORD_ENDED}",
)
_BARE_PASSPORT = re.compile(rf"{_FREE}E(?!{_DAY})(?:[0-9]{{8}}|[A-HJ-N][0-9]{{7}})(?![A-Za-z0-9]|[./-][A-Za-z0-9])")
_PERMIT = labelled(
    _DOCUMENT_LISTS["permit"],
    rf"(?:[CWLTHMcwlthm][A-Za-z]?[0-9][0-9*]{{6,9}}|[A-Za-z]{{3}}[0-9]{{12}}|[A-Za-z][0-9]{{9}}|(?!{_DAY})[0-9]{{8}}|[0-9]{{10}}"
    r"|[军南北沈济广成兰海空后总武参政装文士火联支战东西中]{1,2}字第?[0-9]{6,8}|J[0-9]{6}-[0-9]{4}-[0-9]{6})"
    rf"(?![0-9A-Za-z])(?:\([0-9A-Za-z]\))?",
)
_HONG_KONG = re.compile(rf"{_FREE}(?P<value>[A-Z]{{1,2}}[0-9]{{6}} ?\([0-9A]\))")
_NAMED_HONG_KONG = labelled(
    _DOCUMENT_LISTS["hong_kong"], rf"[A-Za-z]{{1,2}}[0-9]{{6}}[{SPACE}-]?(?:\([0-9Aa]\)|[0-9Aa]{WORD_ENDED})"
)
_BRACKETED = rf"[157](?:[0-9]{{6}}[{SPACE}-]?\([0-9]\)|/[0-9]{{6}}/[0-9]{WORD_ENDED})"
_MACAO = (
    labelled(_DOCUMENT_LISTS["macao"], rf"{_BRACKETED}|[157][0-9]{{7}}{WORD_ENDED}"),
    labelled(_DOCUMENT_LISTS["any_card"], _BRACKETED),
)
_TAIWAN = re.compile(rf"{_FREE}(?P<value>[A-Z][1289A-D][0-9]{{8}}){WORD_ENDED}")
_NAMED_TAIWAN = labelled(_DOCUMENT_LISTS["taiwan"], rf"[A-Za-z][1289A-Da-d][0-9]{{8}}{WORD_ENDED}")
_TAIWAN_NEAR = re.compile("|".join(_DOCUMENT_LISTS["taiwan_near"]))
_TAIWAN_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
"""Letters in the order of their values: the letter at index n represents the number 10 + n."""
_SOCIAL = labelled(_DOCUMENT_LISTS["social_security"], rf"(?!{_DAY}(?![0-9])){CODE}(?![{SPACE}]?[元万人块年])")

_RAW = "[A-Za-zＡ-Ｚａ-ｚ]"


@trigger(loosely(_DOCUMENT_LISTS["passport"]), r"[EＥ](?:[A-NＡ-Ｎ]|\d)\d{7}", needs=TWO_SIGNS)
def passport(text: str) -> list[Span]:
    """Return passport numbers: of any country after 护照 or passport; elsewhere Chinese ones with E."""
    bare = (
        Span(*match.span(), "passport", "passport")
        for match in _BARE_PASSPORT.finditer(narrow(text))
        if not another(match.string, match.start())
    )
    return apart([*value_spans(_PASSPORT.finditer(narrow(text)), "passport", "passport"), *bare])


@trigger(loosely(_DOCUMENT_LISTS["permit"]), needs=TWO_SIGNS)
def permit(text: str) -> list[Span]:
    """Return numbers of travel and residence permits, soldiers' cards and birth certificates after their names."""
    return value_spans(_PERMIT.finditer(narrow(text)), "permit", "permit")


@trigger(rf"{_RAW}\d{{6}}", needs=THREE_DIGITS)
def hong_kong_id(text: str) -> list[Span]:
    """Return Hong Kong identity numbers: A123456(3) with the right check digit; after 身份证 with any check digit."""
    bare = (match for match in _HONG_KONG.finditer(narrow(text)) if valid_hong_kong(match["value"]))
    return value_spans([*bare, *_NAMED_HONG_KONG.finditer(narrow(text))], "id_card", "hong_kong_id")


@trigger(loosely([*_DOCUMENT_LISTS["macao"], *_DOCUMENT_LISTS["any_card"]]), needs=TWO_SIGNS)
def macao_id(text: str) -> list[Span]:
    """Return Macao identity numbers: 1234567(8) or 1/234567/8 after words such as 身份证; they start with 1, 5 or 7."""
    hits = (match for pattern in _MACAO for match in pattern.finditer(narrow(text)))
    return value_spans(hits, "id_card", "macao_id")


@trigger(rf"{_RAW}[1289A-Da-d１２８９Ａ-Ｄａ-ｄ]\d{{8}}", needs=THREE_DIGITS)
def taiwan_id(text: str) -> list[Span]:
    """Return Taiwan identity numbers: a letter and nine digits directly after words such as 身份证字号.

    With the right check digit, a word such as 台湾 or 证件 within the 20 characters before suffices. A word is
    necessary, because codes of specimens look the same and one in ten has a matching check digit.
    """
    near = (match for match in _TAIWAN.finditer(narrow(text)) if _of_taiwan(match))
    return value_spans([*near, *_NAMED_TAIWAN.finditer(narrow(text))], "id_card", "taiwan_id")


@trigger(loosely(_DOCUMENT_LISTS["social_security"]), needs=TWO_SIGNS)
@trigger(loosely(_DOCUMENT_LISTS["social_security"]), needs=THREE_DIGITS)
def social_security(text: str) -> list[Span]:
    """Return numbers of social security, health insurance and housing fund after words for them: 6 digits or more."""
    hits = (match for match in matches([_SOCIAL], text) if sum(map(str.isdigit, match["value"])) >= 6)
    return value_spans(hits, "social_security", "social_security")


def valid_hong_kong(number: str) -> bool:
    """Return whether the check digit is right: the sum of value times weight (9 ... 1) is divisible by 11.

    A to Z are 10 to 35, a missing first letter is 36, and the check digit A is 10.
    """
    signs = [int(sign, 36) for sign in re.sub("[^0-9A-Z]", "", number)]
    padded = [36] * (9 - len(signs)) + signs
    return sum(sign_value * weight for sign_value, weight in zip(padded, range(9, 0, -1), strict=True)) % 11 == 0


def valid_taiwan(number: str) -> bool:
    """Return whether the check digit is right: the sum of digit times weight (1, 9 ... 1, 1) is divisible by 10.

    The letter counts as its two digits; of a second letter, only the last digit counts.
    """
    second = number[1] if number[1].isdigit() else str(_TAIWAN_LETTERS.index(number[1]))
    digits = f"{10 + _TAIWAN_LETTERS.index(number[0])}{second}{number[2:]}"
    weights = (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1)
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % 10 == 0


def _of_taiwan(match: re.Match[str]) -> bool:
    preceding = match.string[max(0, match.start() - 20) : match.start()].rpartition("]")[2]  # no word of a placeholder
    return (
        valid_taiwan(match["value"])
        and bool(_TAIWAN_NEAR.search(preceding))
        and not another(match.string, match.start())
    )


# Vehicle plates of mainland China (GA 36-2018): province, letter, serial of five, or of six for new energy.

_PLATE_LISTS = words("plate")
_WORDS, _MARKS = "".join(_PLATE_LISTS["words"]), "".join(_PLATE_LISTS["marks"])
_PLATE_PROVINCES = "".join(_PLATE_LISTS["provinces"]) + _WORDS
_DOT = "·.•・‧∙⋅"
_PLATE_CUT = f"[{SPACE}{_DOT}-]{{0,2}}"
_SIGN = "[A-HJ-NP-Za-hj-np-z0-9]"
"""Characters of serials, which exclude I and O; pseudonyms of plates use these two."""
_MARK = f"(?:[{_MARKS}](?![习生校期术科察告惕示口域导用得号]))"
_PLATE = re.compile(
    rf"(?P<province>[{_PLATE_PROVINCES}])[{SPACE}]?(?P<city>[A-HJ-Za-hj-z]){_PLATE_CUT}(?P<serial>"
    rf"(?:[A-HJKa-hjk]{_SIGN}[0-9]{{4}}|[0-9]{{5}}[A-HJKa-hjk]|{_SIGN}{{5}})(?![A-Za-z0-9]){_MARK}?|{_SIGN}{{4}}{_MARK})"
    r"(?![A-Za-z0-9]|[.-][0-9])"
)
_OFFICIAL = re.compile(
    rf"WJ[{SPACE}]?[{_PLATE_PROVINCES}]{_PLATE_CUT}[0-9]{{4}}{_SIGN}(?![A-Za-z0-9])"
    rf"|(?<![A-Za-z0-9])(?:[军空海北沈兰济南广成东西中][A-Z]{_PLATE_CUT}[0-9]{{5}}|[使领]{_PLATE_CUT}[0-9]{{3}}{_PLATE_CUT}[0-9]{{3}})(?![A-Za-z0-9])"
)
_CONTEXT = re.compile("|".join(_PLATE_LISTS["context"]))
_THINGS = re.compile(rf"[{SPACE}]?(?:{'|'.join(_PLATE_LISTS['things'])})")


@trigger(
    rf"[{_PLATE_PROVINCES}军空海北沈兰济南广成东西中][{RAW_SPACE}]?[A-Za-zＡ-Ｚａ-ｚ][{RAW_SPACE}{_DOT}．{RAW_DASH}]{{0,2}}[A-Za-zＡ-Ｚａ-ｚ\d]{{4}}"
    rf"|[JＪ][{RAW_SPACE}]?[{_PLATE_PROVINCES}]|[使领][{RAW_SPACE}{_DOT}．{RAW_DASH}]{{0,2}}\d{{3}}",
    needs=(TWO_SIGNS, CHINESE),
)
def plate(text: str) -> list[Span]:
    """Return vehicle plates, with or without a dot, dash or space after the letter, also those with 挂学警港澳领使.

    Plates of the army and of embassies need a word such as 车牌 nearby; so do plates that look like a gene or a drug.
    """
    narrowed = narrow(text)
    civil = [
        match
        for match in _PLATE.finditer(narrowed)
        if re.search("[0-9]", match["serial"])
        and (_near_vehicle_word(narrowed, match) or _unmistakable(narrowed, match))
    ]
    official = [
        match
        for match in _OFFICIAL.finditer(narrowed)
        if match[0].startswith("WJ") or _near_vehicle_word(narrowed, match)
    ]
    return apart(Span(*match.span(), "plate", "plate") for match in [*civil, *official])


def _near_vehicle_word(text: str, match: re.Match[str]) -> bool:
    """Return whether a word for vehicles is shortly before or directly after the match, outside placeholders."""
    start, end = match.span()
    around = text[max(0, start - 8) : start].rpartition("]")[2], text[end : end + 4].partition("[")[0]
    return any(_CONTEXT.search(context) for context in around)


def _unmistakable(text: str, match: re.Match[str]) -> bool:
    serial, (start, end) = match["serial"], match.span()
    letters = len(re.findall("[A-Za-z]", serial))
    if match["province"] in _WORDS and (
        letters > 2 or text[max(0, start - 1) : start + 1] in _PLATE_LISTS["no_province"]
    ):
        return False
    return serial in {serial.upper(), serial.lower()} and not _THINGS.match(text, end)


# Bank card numbers: 13 to 19 digits of a known issuer with a valid Luhn check digit (ISO/IEC 7812-1).

_CARD_LISTS = words("bank_card")
_ISSUED = re.compile("|".join(_CARD_LISTS["issuers"]))
_GROUPED = re.compile("|".join(_CARD_LISTS["grouped"]))
_CARD_CUT = f"[{SPACE}-]{{1,2}}"
_FORM = (
    r"(?:[0-9]{13,19}"
    rf"|[0-9]{{4}}(?P<cut>{_CARD_CUT})[0-9]{{4}}(?P=cut)[0-9]{{4}}(?P=cut)[0-9]{{1,4}}(?:(?P=cut)[0-9]{{1,3}})?"
    rf"|[0-9]{{4}}{_CARD_CUT}[0-9]{{6}}{_CARD_CUT}[0-9]{{5}}|[0-9]{{6}}{_CARD_CUT}[0-9]{{9,13}})(?![0-9])"
)
_BARE_CARD = re.compile(rf"(?<![0-9A-Za-z_])(?<![0-9][.,])(?=(?P<value>{_FORM})(?![A-Za-z_]|\.[0-9]))")
_NAMED = labelled(_CARD_LISTS["words"], rf"(?=[1-9]){_FORM}")
_WIDE = labelled(_CARD_LISTS["wide_words"], rf"(?=[1-9]){_FORM}")
_OTHERS = re.compile(f"(?:{'|'.join(_CARD_LISTS['others'])})\\Z")
_LAST_GROUP = re.compile(f"{_CARD_CUT}[0-9]{{1,4}}\\Z")
_DOUBLED = str.maketrans("0123456789", "0246813579")


@trigger(rf"[\d{NUMERALS}](?:[{RAW_SPACE}{RAW_DASH}]{{0,2}}[\d{NUMERALS}]){{12}}", needs=THREE_DIGITS)
def bank_card(text: str) -> list[Span]:
    """Return bank card numbers: of a known issuer, with the right check digit, in one piece or in groups.

    After a word such as 银行卡, any number of that length except resident numbers. None starts with 0; a number
    directly after a word for another number (订单号) is excluded.
    """
    extents = [*_bare(text), *_after_word(text, _NAMED, 13), *_after_word(text, _WIDE, 16)]
    return apart(Span(start, end, "bank_card", "bank_card") for start, end in extents)


def luhn(digits: str) -> bool:
    """Return whether the Luhn check holds: with every second digit from the right doubled, the digit sum ends in 0."""
    doubled = digits[-2::-2].translate(_DOUBLED)
    return sum(map(int, digits[-1::-2] + doubled)) % 10 == 0


def _bare(text: str) -> Iterator[tuple[int, int]]:
    for match in matches([_BARE_CARD], text):
        start = match.start("value")
        for number in _lengths(match["value"]):
            if _issued(number) and not another(match.string, start):
                yield start, start + len(number)
                break


def _after_word(text: str, pattern: re.Pattern[str], least: int) -> Iterator[tuple[int, int]]:
    for match in matches([pattern], text):
        start = match.start("value")
        fitting = [
            number for number in _lengths(match["value"]) if least <= len(_digits(number)) and not _resident(number)
        ]
        if fitting and not _OTHERS.search(match.string[max(0, match.start() - 3) : match.start()]):
            yield start, start + len(min(fitting, key=_doubt))


def _lengths(number: str) -> Iterator[str]:
    """Yield a number with and without its last group, which may belong to another number."""
    yield number
    yield _LAST_GROUP.sub("", number)


def _doubt(number: str) -> int:
    """Return 0 for the usual length of Chinese cards, 1 for another number of a known issuer, else 2."""
    digits = _digits(number)
    return 0 if len(digits) == 19 and _ISSUED.fullmatch(digits) else 1 + (not _issued(number))


def _issued(number: str) -> bool:
    digits = _digits(number)
    issuer = _ISSUED.fullmatch(digits) or (_GROUPED.fullmatch(digits) and digits != number)
    return bool(issuer) and luhn(digits) and not _resident(number)


def _resident(number: str) -> bool:
    digits = _digits(number)
    return len(digits) == 18 and valid(digits)


def _digits(number: str) -> str:
    return re.sub("[^0-9]", "", number)
