"""National identity, tax, insurance and account numbers of Western countries, and functions that verify check digits.

The functions expect capitals and no separators.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from curate.core.records import Span
from curate.pii.patterns import DECIMAL, NINE, SPACE, THREE_DIGITS, TWO_SIGNS, narrow, trigger
from curate.pii.recognisers.identity_numbers import luhn
from curate.pii.recognisers.phone import named
from curate.pii.spans import apart
from curate.pii.words import one_of, words

_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_CF_DIGITS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_CF_LETTERS = (*_CF_DIGITS, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_CF_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", _CF_DIGITS + _CF_LETTERS, strict=True))
"""Character -> its value at an odd position of a codice fiscale."""


def weighted(number: str, weights: Sequence[int], modulus: int) -> bool:
    """Return whether the sum of digit times weight is divisible by the modulus."""
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True)) % modulus == 0


def nhs(number: str) -> bool:
    """Return whether an NHS number (England and Wales) is valid: weights 10 to 1, modulus 11."""
    return weighted(number, range(10, 0, -1), 11)


def iban(number: str) -> bool:
    """Return whether an IBAN is valid: 1 modulo 97, with the first four characters last and letters as 10 to 35."""
    return int("".join(str(int(sign, 36)) for sign in number[4:] + number[:4])) % 97 == 1


def nir(number: str) -> bool:
    """Return whether a French NIR is valid: its last two digits are 97 - number mod 97.

    2A and 2B count as 19 and 18.
    """
    body, key = number[:13].replace("2A", "19").replace("2B", "18"), number[13:]
    return 97 - int(body) % 97 == int(key)


def dni(number: str) -> bool:
    """Return whether a Spanish DNI or NIE is valid: the number mod 23 is the index of its letter.

    X, Y, Z count as 0, 1, 2.
    """
    return (
        _DNI[int(str("XYZ".find(number[0])) + number[1:-1] if number[0] in "XYZ" else number[:-1]) % 23] == number[-1]
    )


def codice_fiscale(number: str) -> bool:
    """Return whether an Italian codice fiscale is valid: its last letter is the sum of all others mod 26.

    Characters at odd positions have the values of `_CF_ODD`.
    """
    even = sum(int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in number[1:15:2])
    return chr(ord("A") + (even + sum(_CF_ODD[sign] for sign in number[0:15:2])) % 26) == number[15]


def pension_de(number: str) -> bool:
    """Return whether a German Rentenversicherungsnummer is valid: digit sums of digit times weight, modulo 10.

    The letter counts as its two digits.
    """
    digits = f"{number[:8]}{ord(number[8]) - ord('A') + 1:02d}{number[9:11]}"
    products = (int(digit) * weight for digit, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    return sum(sum(divmod(product, 10)) for product in products) % 10 == int(number[11])


def national_be(number: str) -> bool:
    """Return whether a Belgian national number is valid: it ends in 97 - first nine digits mod 97.

    For births from 2000, a 2 precedes the nine digits.
    """
    return int(number[9:]) in (97 - int(number[:9]) % 97, 97 - int(f"2{number[:9]}") % 97)


def hetu(number: str) -> bool:
    """Return whether a Finnish henkilötunnus is valid: date and serial number mod 31 index its check character."""
    return _HETU[int(number[:6] + number[-4:-1]) % 31] == number[-1]


def ahv(number: str) -> bool:
    """Return whether a Swiss AHV number is valid, as an EAN-13."""
    return weighted(number, (1, 3) * 6 + (1,), 10)


def is_day(day: str, month: str) -> bool:
    """Return whether day and month are a date in a leap year."""
    try:
        date(2000, int(month), int(day))
    except ValueError:
        return False
    return True


# Identity, tax, insurance and account numbers of the United States, the United Kingdom and Europe.

_LISTS = words("western_numbers")
_S = f"[{SPACE}./-]{{0,2}}"
"""Pattern of the separator between the groups of a number."""
_LATIN = "A-Za-z\u00c0-\u024f"
FREE = r"(?<![A-Za-z0-9_+=])(?<!(?-i:[A-Z0-9])[-./])(?<![A-Za-z][./])"
ENDED = r"(?![A-Za-z0-9_]|[-./:][0-9])"
"""Lookarounds of a number without a word: no letter, digit or code; a dash after a lower-case letter is punctuation."""
_LINK = (
    rf"(?:[\s:：=#＃№.,，()'\"“”°º|-]|(?<![{_LATIN}])(?:number|no|nr|num|nummer|numéro|número|numero|numer|is|was|ist|est|es|id"
    rf"|my|card|n)(?![{_LATIN}])){{0,8}}"
)
"""Pattern between a word and its number."""
_DAY, _MONTH_DAY = r"[0-3]\d[01]\d", r"[01]\d[0-3]\d"
_PERSON, _INSURED = "id_card", "social_security"


@dataclass(frozen=True)
class NumberShape:
    """A national number: its pattern next to its name (such as BSN), and a stricter pattern that needs no name."""

    kind: str
    beside: str
    alone: str = ""
    check: Callable[[str], bool] = bool
    """Function that verifies a number without its name, given in capitals and without separators."""
    small: bool = False
    """Whether a number without its name may be in lower case."""


_NINO = rf"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]{_S}\d\d{_S}\d\d{_S}\d\d{_S}[A-D]"
_MBI = r"[1-9]{0}(?:{0}|\d)\d-?{0}(?:{0}|\d)\d-?{0}{{2}}\d\d".format("[AC-HJKMNP-RT-Y]")
_NIR = rf"{_S}\d\d{_S}\d\d{_S}(?:\d\d|2[AB]){_S}\d{{3}}{_S}\d{{3}}"
_CF = r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]"
_IBAN = "|".join(rf"{entry[:2]}\d\d(?:[{SPACE}-]?[A-Z0-9]){{{int(entry[2:]) - 4}}}" for entry in _LISTS["iban_lengths"])
_AHV = rf"756{_S}\d{{4}}{_S}\d{{4}}{_S}\d\d"
_SWEDISH = rf"(?:19|20)?\d\d{_MONTH_DAY}"

FORMS: dict[str, NumberShape] = {
    "ssn": NumberShape(_INSURED, rf"\d{{3}}{_S}\d\d{_S}\d{{4}}", r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}"),
    "itin": NumberShape(_INSURED, rf"9\d\d{_S}\d\d{_S}\d{{4}}", r"9\d\d-(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])-\d{4}"),
    "mbi": NumberShape(_INSURED, _MBI, _MBI),
    "nhs": NumberShape(_INSURED, rf"\d{{3}}{_S}\d{{3}}{_S}\d{{4}}", r"\d{3} \d{3} \d{4}", nhs),
    "nino": NumberShape(_INSURED, rf"[A-Z]{{2}}{_S}\d\d{_S}\d\d{_S}\d\d(?:{_S}[A-D])?", _NINO),
    "iban": NumberShape("bank_account", _IBAN, _IBAN, iban, small=True),
    "steuer_id": NumberShape(_PERSON, rf"\d\d{_S}\d{{3}}{_S}\d{{3}}{_S}\d{{3}}"),
    "pension_de": NumberShape(
        _INSURED,
        rf"\d\d{_S}{_DAY}\d\d{_S}[A-Z]{_S}\d\d{_S}\d",
        rf"\d\d ?{_DAY}\d\d ?[A-Z] ?\d\d ?\d",
        lambda number: pension_de(number) and is_day(number[2:4], number[4:6]),
    ),
    "health_de": NumberShape(_INSURED, rf"[A-Z]{_S}\d{{3}}{_S}\d{{3}}{_S}\d{{3}}"),
    "nir": NumberShape(_INSURED, rf"[1-478]{_NIR}(?:{_S}\d\d)?", rf"[12]{_NIR}{_S}\d\d", nir),
    "dni": NumberShape(
        _PERSON,
        rf"(?:\d{{2}}{_S}\d{{3}}{_S}\d{{3}}|[XYZ]{_S}\d{{7}}){_S}[A-Z]",
        r"(?:\d{8}|[XYZ]-?\d{7})-?[A-Z]",
        dni,
    ),
    "codice_fiscale": NumberShape(
        _PERSON,
        rf"[A-Z]{{3}}{_S}[A-Z]{{3}}{_S}\d\d[A-Z]\d\d{_S}[A-Z]\d{{3}}{_S}[A-Z]",
        _CF,
        codice_fiscale,
        small=True,
    ),
    "bsn": NumberShape(_PERSON, rf"\d{{4}}{_S}\d\d{_S}\d{{3}}|\d{{3}}{_S}\d{{3}}{_S}\d{{3}}"),
    "pesel": NumberShape(_PERSON, r"\d{11}"),
    "national_be": NumberShape(
        _PERSON, rf"\d\d{_S}\d\d{_S}\d\d{_S}\d{{3}}{_S}\d\d", r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", national_be
    ),
    "personnummer": NumberShape(
        _PERSON,
        rf"{_SWEDISH}[-+ ]?\d{{4}}",
        rf"{_SWEDISH}-\d{{4}}",
        lambda number: luhn(number[-10:]) and is_day(number[-6:-4], number[-8:-6]),
    ),
    "cpr": NumberShape(_PERSON, rf"{_DAY}\d\d[- ]?\d{{4}}"),
    "fodselsnummer": NumberShape(_PERSON, r"[0-7]\d[01]\d\d\d ?\d{5}"),
    "hetu": NumberShape(_PERSON, rf"{_DAY}\d\d[-+A-FU-Y]\d{{3}}[0-9A-Y]", rf"{_DAY}\d\d[-+A]\d{{3}}[0-9A-Y]", hetu),
    "ahv": NumberShape(_INSURED, _AHV, _AHV, ahv),
    "svnr_at": NumberShape(_INSURED, rf"\d{{4}}{_S}{_DAY}\d\d"),
    "nif_pt": NumberShape(_PERSON, rf"\d{{3}}{_S}\d{{3}}{_S}\d{{3}}"),
    "pps": NumberShape(_INSURED, r"\d{7} ?[A-W][A-IW]?"),
    "rodne_cislo": NumberShape(_PERSON, r"\d\d[0-8]\d[0-3]\d ?/? ?\d{3,4}"),
    "cnp": NumberShape(_PERSON, r"[1-9]\d{12}"),
    "amka": NumberShape(_INSURED, rf"{_DAY}\d{{7}}"),
}

_FORMS_OF: dict[str, list[str]] = {}
for _name in FORMS:
    for _each in _LISTS[_name]:
        _FORMS_OF.setdefault(_each, []).append(_name)
_WORDS = rf"(?<![{_LATIN}0-9_@/])(?P<word>{one_of(_FORMS_OF)})(?![{_LATIN}])"
_WORD = re.compile(f"{_WORDS}{_LINK}", re.IGNORECASE)
_BEHIND = re.compile(rf" ?[(\[] ?{_WORDS}", re.IGNORECASE)
_BEFORE = {name: re.compile(f"{FREE}(?:{form.beside})\\Z", re.IGNORECASE) for name, form in FORMS.items()}
_BESIDE = {name: re.compile(f"(?P<value>{form.beside}){ENDED}", re.IGNORECASE) for name, form in FORMS.items()}


def _shapes(first: str, *, small: bool) -> re.Pattern[str]:
    """Return the pattern of all numbers recognised without their names; `first` is their first character."""
    forms = (f"(?P<{name}>{form.alone})" for name, form in FORMS.items() if form.alone and form.small == small)
    return re.compile(f"{FREE}(?={first})(?:{'|'.join(forms)}){ENDED}", re.IGNORECASE if small else 0)


_SHAPES = (_shapes("[0-9A-Z]", small=False), _shapes(r"[A-Z]{2}(?:\d\d|[A-Z]{4}\d\d)", small=True))
_CODE = re.compile(rf"(?<![{_LATIN}])(?:{one_of(_LISTS['codes'])})(?![{_LATIN}]){_LINK}\Z", re.IGNORECASE)
_CUTS = re.compile("[^0-9A-Za-z]")
_SIGN = "A-Za-z\uff21-\uff3a\uff41-\uff5a"
_CUT = r"[^\n]?"
_PAIR = f"{DECIMAL}{{2}}"
_MIXED = (
    f"[{_SIGN}]{{2}}{_CUT}{_PAIR}{_CUT}{_PAIR}{_CUT}{_PAIR}|{DECIMAL}{{3}}{_CUT}{DECIMAL}{{3,4}}{_CUT}[{_SIGN}]|[{_SIGN}]{_CUT}{DECIMAL}{{7}}"
    f"|{_PAIR}[{_SIGN}]{_PAIR}{_CUT}[{_SIGN}]{DECIMAL}{{3}}|{DECIMAL}{{6}}[+A-FU-Y]{DECIMAL}{{3}}"
)
"""Trigger of numbers with fewer than nine consecutive digits, with any character between their groups."""
_MEDICARE = f"{DECIMAL}[{_SIGN}][{_SIGN}\\d]{DECIMAL}{_CUT}[{_SIGN}][{_SIGN}\\d]{DECIMAL}{_CUT}[{_SIGN}]{{2}}"
"""Trigger of a Medicare MBI, which has no three consecutive digits."""


@trigger(NINE, _MIXED, needs=THREE_DIGITS)
@trigger(_MEDICARE, needs=TWO_SIGNS)
def national_number(text: str) -> list[Span]:
    """Return identity, tax, social security, insurance and account numbers of the USA, the UK and Europe.

    Anywhere: SSN and ITIN with hyphens, Medicare MBI, National Insurance numbers, IBAN, codice fiscale, DNI, NIE, NIR,
    NHS numbers in groups, and others with a right check digit. Next to its name (PESEL, BSN ...): every number of the
    right form.
    """
    narrowed = narrow(text)
    hits = [*_without_word(narrowed), *_beside_word(narrowed)]
    return apart(Span(start, end, FORMS[name].kind, "national_number") for name, start, end in hits)


def _without_word(text: str) -> Iterator[tuple[str, int, int]]:
    for shapes in _SHAPES:
        for match in shapes.finditer(text):
            name = str(match.lastgroup)
            if FORMS[name].check(_CUTS.sub("", match[0]).upper()) and not (
                named(text, match.start()) or _CODE.search(text, max(0, match.start() - 30), match.start())
            ):
                yield name, match.start(), match.end()


def _beside_word(text: str) -> Iterator[tuple[str, int, int]]:
    for word in _WORD.finditer(text):
        for name in _FORMS_OF[word["word"].lower()]:
            if number := _BESIDE[name].match(text, word.end()):
                yield name, *number.span("value")
    for word in _BEHIND.finditer(text):
        preceding = text[max(0, word.start() - 30) : word.start()]
        for name in _FORMS_OF[word["word"].lower()]:
            if number := _BEFORE[name].search(preceding):
                yield name, word.start() - len(number[0]), word.start()
