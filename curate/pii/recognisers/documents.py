"""Numbers of passports, travel permits, social security, and identity cards of Hong Kong, Macao and Taiwan."""

import re

from curate.core.records import Span
from curate.pii.number_labels import CODE, SPACE, WORD_ENDED, another, labelled, loosely, matches
from curate.pii.patterns import THREE_DIGITS, TWO_SIGNS, narrow, trigger
from curate.pii.spans import apart, value_spans
from curate.pii.words import words

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
