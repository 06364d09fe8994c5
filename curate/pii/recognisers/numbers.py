"""Recognisers of numbers and accounts: their rules are data, and what no rule can say is here."""

import re
from collections.abc import Iterator

from curate.pii.patterns import digits, narrow, readings
from curate.pii.recognisers import check_digits
from curate.pii.recognisers.contexts import CHECKS, is_spoken
from curate.pii.rules import BEFORE, RuleRecogniser, rules

_CONTACTS, _IDENTITY = rules("contacts"), rules("identity")


def _recogniser(file: str, name: str) -> RuleRecogniser:
    return RuleRecogniser(rules(file), name, checks=CHECKS)


mobile = _recogniser("contacts", "mobile")
landline = _recogniser("contacts", "landline")
overseas = _recogniser("contacts", "overseas")
western = _recogniser("contacts", "western")
wechat = _recogniser("accounts", "wechat")
qq = _recogniser("accounts", "qq")
url = _recogniser("accounts", "url")
ip_address = _recogniser("accounts", "ip_address")
resident_id = _recogniser("identity", "resident_id")
resident_id_15 = _recogniser("identity", "resident_id_15")
passport = _recogniser("identity", "passport")
permit = _recogniser("identity", "permit")
hong_kong_id = _recogniser("identity", "hong_kong_id")
macao_id = _recogniser("identity", "macao_id")
taiwan_id = _recogniser("identity", "taiwan_id")
social_security = _recogniser("identity", "social_security")
plate = _recogniser("identity", "plate")
medical_record = _recogniser("patients", "medical_record")
bed_number = _recogniser("patients", "bed_number")
staff_number = _recogniser("patients", "staff_number")
birth_date = _recogniser("patients", "birth_date")

# Telephone numbers in numerals, and e-mail addresses.


def _spoken_landlines(text: str) -> Iterator[tuple[int, int]]:
    for start, end in landline.extents(digits(text)):
        if is_spoken(text[start:end], 4):
            yield start, end


spoken = RuleRecogniser(rules("contacts"), "spoken", _spoken_landlines, CHECKS)

_LOCAL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"
_LONGEST = 256
"""Number of characters before the @ that are examined; RFC 5321 permits 64, machine-generated addresses are longer."""


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    narrowed = narrow(text)
    for name in ("domain", "spelt_domain"):
        for domain in _CONTACTS.pattern(name).finditer(narrowed):
            preceding = narrowed[max(0, domain.start() - _LONGEST) : domain.start()]
            local = preceding[len(preceding.rstrip(_LOCAL)) :].lstrip("._%+-")
            if local:
                yield domain.start() - len(local), domain.end()


email = RuleRecogniser(rules("contacts"), "email", _addresses)

# Bank cards: of a number's lengths, with and without its last group, the one that is a card.


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for reading in readings(text):
        for match in _IDENTITY.pattern("bare_card").finditer(reading):
            preceding = reading[max(0, match.start() - BEFORE) : match.start()]
            issued = next(filter(_is_issued, _lengths(match["value"])), None)
            if issued and not _IDENTITY.pattern("another_last").search(preceding):
                yield match.start("value"), match.start("value") + len(issued)
        yield from _after_word(reading, "named_card", 13)
        yield from _after_word(reading, "widely_named_card", 16)


def _after_word(text: str, name: str, least: int) -> Iterator[tuple[int, int]]:
    for match in _IDENTITY.pattern(name).finditer(text):
        lengths = [
            number for number in _lengths(match["value"]) if len(_digits(number)) >= least and not _is_resident(number)
        ]
        if lengths and not _IDENTITY.pattern("other_card").search(text[max(0, match.start() - 3) : match.start()]):
            yield match.start("value"), match.start("value") + len(min(lengths, key=_doubt))


def _lengths(number: str) -> Iterator[str]:
    """Yield a number with and without its last group, which may belong to another number."""
    yield number
    yield _IDENTITY.pattern("last_group").sub("", number)


def _doubt(number: str) -> int:
    """Return 0 for the usual length of Chinese cards, 1 for another number of a known issuer, else 2."""
    plain = _digits(number)
    return 0 if len(plain) == 19 and _IDENTITY.pattern("issuer").fullmatch(plain) else 1 + (not _is_issued(number))


def _is_issued(number: str) -> bool:
    plain = _digits(number)
    grouped = plain != number and _IDENTITY.pattern("grouped_issuer").fullmatch(plain)
    known = _IDENTITY.pattern("issuer").fullmatch(plain) or grouped
    return bool(known) and check_digits.luhn(plain) and not _is_resident(number)


def _is_resident(number: str) -> bool:
    plain = _digits(number)
    return len(plain) == 18 and check_digits.resident(plain)


def _digits(number: str) -> str:
    return re.sub("[^0-9]", "", number)


bank_card = RuleRecogniser(rules("identity"), "bank_card", _cards)
