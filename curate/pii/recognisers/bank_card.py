"""Bank card numbers: 13 to 19 digits of a known issuer with a valid Luhn check digit (ISO/IEC 7812-1)."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.number_labels import NUMERALS, RAW_DASH, RAW_SPACE, SPACE, another, labelled, matches
from curate.pii.patterns import THREE_DIGITS, trigger
from curate.pii.recognisers.resident_id import valid
from curate.pii.spans import apart
from curate.pii.words import words

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
