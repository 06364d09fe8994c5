"""National identity, tax, insurance and account numbers of Western countries, beside their names or by their form.

All forms are in national_numbers.yaml. Those that need no word are one pattern, so that `re` tries a position once
instead of once per form.
"""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import NINE, THREE_DIGITS, TWO_SIGNS, narrow, trigger
from curate.pii.recognisers import check_digits
from curate.pii.recognisers.contexts import named
from curate.pii.rules import rules
from curate.pii.spans import apart
from curate.pii.words import one_of

_RULES = rules("national_numbers")
_NUMBERS = _RULES.recognisers
_FREE, _ENDED, _LATIN = map(_RULES.source, ("free", "ended", "latin"))
_NAMES_OF: dict[str, list[str]] = {}
"""Word -> names of the numbers that it may precede."""
for _name, _number in _NUMBERS.items():
    for _each in _number["words"]:
        _NAMES_OF.setdefault(_each, []).append(_name)
_WORDS = rf"(?<![{_LATIN}0-9_@/])(?P<word>{one_of(_NAMES_OF)})(?![{_LATIN}])"
_WORD = re.compile(f"{_WORDS}{_RULES.source('link')}", re.IGNORECASE)
_BEHIND = re.compile(rf" ?[(\[] ?{_WORDS}", re.IGNORECASE)
_BESIDE = {name: _RULES.filled(number["beside"]) for name, number in _NUMBERS.items()}
_BEFORE_WORD = {name: re.compile(f"{_FREE}(?:{form})\\Z", re.IGNORECASE) for name, form in _BESIDE.items()}
_AFTER_WORD = {name: re.compile(f"(?P<value>{form}){_ENDED}", re.IGNORECASE) for name, form in _BESIDE.items()}


def _alone(first: str, *, small: bool) -> re.Pattern[str]:
    """Return the pattern of all numbers recognised without their names; `first` is their first character."""
    forms = (
        f"(?P<{name}>{_RULES.filled(number['alone'])})"
        for name, number in _NUMBERS.items()
        if "alone" in number and number.get("small", False) == small
    )
    return re.compile(f"{_FREE}(?={first})(?:{'|'.join(forms)}){_ENDED}", re.IGNORECASE if small else 0)


_ALONE = (_alone("[0-9A-Z]", small=False), _alone(r"[A-Z]{2}(?:\d\d|[A-Z]{4}\d\d)", small=True))
_BEFORE_CODE = _RULES.pattern("before_code")
_CUTS = re.compile("[^0-9A-Za-z]")


@trigger(NINE, _RULES.source("mixed"), needs=THREE_DIGITS)
@trigger(_RULES.source("medicare"), needs=TWO_SIGNS)
def national_number(text: str) -> list[Span]:
    """Return identity, tax, social security, insurance and account numbers of the USA, the UK and Europe.

    Anywhere: SSN and ITIN with hyphens, Medicare MBI, National Insurance numbers, IBAN, codice fiscale, DNI, NIE, NIR,
    NHS numbers in groups, and others with a right check digit. Next to its name (PESEL, BSN ...): every number of the
    right form.
    """
    narrowed = narrow(text)
    hits = [*_without_word(narrowed), *_beside_word(narrowed)]
    return apart(Span(start, end, _NUMBERS[name]["kind"], "national_number") for name, start, end in hits)


def _without_word(text: str) -> Iterator[tuple[str, int, int]]:
    for numbers in _ALONE:
        for match in numbers.finditer(text):
            name = str(match.lastgroup)
            start, number = match.start(), _CUTS.sub("", match[0]).upper()
            is_valid = check_digits.NATIONAL.get(_NUMBERS[name].get("valid"), bool)
            if is_valid(number) and not (named(text, start) or _BEFORE_CODE.search(text, max(0, start - 30), start)):
                yield name, start, match.end()


def _beside_word(text: str) -> Iterator[tuple[str, int, int]]:
    for word in _WORD.finditer(text):
        for name in _NAMES_OF[word["word"].lower()]:
            if number := _AFTER_WORD[name].match(text, word.end()):
                yield name, *number.span("value")
    for word in _BEHIND.finditer(text):
        preceding = text[max(0, word.start() - 30) : word.start()]
        for name in _NAMES_OF[word["word"].lower()]:
            if number := _BEFORE_WORD[name].search(preceding):
                yield name, word.start() - len(number[0]), word.start()
