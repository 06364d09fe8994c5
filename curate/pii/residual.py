"""Detection of residual PII: passages of masked texts that still look like personal data."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from string import ascii_uppercase
from typing import Any

import polars as pl

from curate.core.config import parse_yaml
from curate.pii.patterns import narrow, script
from curate.pii.rules import rules
from curate.system.resources import data_file

AROUND = 30
"""Number of code points of context shown on each side of a passage."""


@dataclass(frozen=True)
class Excerpt:
    """A suspicious passage (`place`) with the text before and after it, on one line."""

    before: str
    place: str
    behind: str

    def __str__(self) -> str:
        return f"{self.before}»{self.place}«{self.behind}"


def excerpt(text: str, start: int, end: int) -> Excerpt:
    """Return a passage with `AROUND` code points on each side; … marks omitted text."""
    low, high = max(start - AROUND, 0), end + AROUND
    return Excerpt(
        "…" * (low > 0) + _line(text[low:start]),
        _line(text[start:end]),
        _line(text[end:high]) + "…" * (high < len(text)),
    )


def _line(text: str) -> str:
    """Return a text on one line, with control characters replaced by spaces."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def pattern(text: str, start: int, end: int) -> str:
    """Return the form of a passage behind the word in front of it: `PMID 99999999`, digits as 9 and letters as a.

    Passages of one pattern can be decided on together; a code behind its word shares none with a telephone number.
    """
    front = _FRONT.search(_line(text[max(0, start - AROUND) : start]))
    form = re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", _line(text[start:end])))
    return f"{front[0] if front else ''}{form}"


_FRONT = re.compile(r"(?:[A-Za-z][A-Za-z-]*|[\u3400-\u9fff]{1,6})[^\w\u3400-\u9fff]{0,3}\Z")
"""The word directly in front of a passage."""

# Look over masked texts for what may have been missed: long runs of digits, and values beside words such as 电话.

FEWEST = 7
"""Minimum number of digits of a run that is suspicious without context."""
_NUMERALS = str.maketrans(
    "〇零○幺一二三四五六七八九壹贰貳叁參肆伍陆陸柒捌玖", "0001" + "123456789" + "12233456" + "6789"
)
_DIGIT = r"[\d〇零○幺一二三四五六七八九壹贰貳叁參肆伍陆陸柒捌玖]"
_GAP = (
    r"[\s\-_.·•*/|~+(),:、\uff08-\uff0f\uff1a\uff3f\uff5c\uff5e"
    r"\u2010-\u2015\u2212\ufe0f\u20e3\u200b-\u200f\u2060\ufeff]"
)
"""Separators within a number, in both widths, including keycap and invisible characters."""
_RUN = rf"{_DIGIT}(?:{_GAP}{{0,3}}{_DIGIT}){{{FEWEST - 1},}}"
_DAY = (
    r"(?:(?:1[89]|20)\d\d\D{0,3}(?:0?[1-9]|1[0-2])(?:\D{0,3}(?:[0-2]?\d|3[01]))?"
    r"|(?:(?:0?[1-9]|1[0-2])[-./]\s?(?:[0-2]?\d|3[01])|(?:[0-2]?\d|3[01])[-./]\s?(?:0?[1-9]|1[0-2]))[-./]\s?(?:1[89]|20)\d\d)"
)
"""A date, with the year first or last; day and month in either order."""
_DATE = re.compile(rf"{_DAY}(?:\D{{1,3}}\d\d?){{0,3}}(?:\D{{1,3}}{_DAY})?")
_YEARS = re.compile(r"(?:1[89]|20)\d\d(?:\D{1,3}(?:1[89]|20)\d\d)+")
_RANGE = re.compile(r"\d{1,3}0\s?[-~/]+\s?\d{1,3}0")
"""A range of round numbers; the next pattern, 90-140/60-90, is blood pressure."""
_PRESSURE = re.compile(r"\d{2,3}[-~]\d{2,3}/\d{2,3}[-~]\d{2,3}")
_NUMBER = re.compile(r"\d+\.\d+|\d{1,6}")
_POWER = re.compile(r"\*\s?10")
_WRITTEN = re.compile(
    r"(?<!\d)(?:12\d{9}|000000\d{12})(?!\d)|user\d{9}@mail\.invalid|[\u4e00-\u9fff]某[甲乙丙丁戊己庚辛壬癸]|[\u4e00-\u9fff][A-H]I\d{4}"
)
"""Pseudonyms written by `masking.PSEUDONYMS`."""
_ROUND = re.compile(r"(?!\d{11}\Z)\d+0{5}")
"""A round count, such as a viral load; a number of eleven digits is excluded, because it may be a mobile number."""
_FREE_OF_CHARGE = re.compile(r"1?\D?8(?:00|33|44|55|66|77|88)(?:\D?\d{3})?\D?")
"""The digits of a toll-free number that is written with letters, such as 1-800-273-TALK."""
_COUNTED = "".join(map(str, range(200)))
"""Consecutive list numbers: 1, 2, 3 ..."""
_LINK = r"[\s:=是为為号號码碼加我的同(\"“'「【,/]{0,6}[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼]?"
"""Pattern between a trigger word and its value; a plate begins with a province."""
_VALUE = r"[a-z0-9][a-z0-9_.@-]{4,}"
_SAID = r"(?:[\s:#=.(\"'-]|(?<![a-z])(?:number|no|nr|num|nummer|id|is|was)(?![a-z])){0,8}"
_NUMBER_LIKE = r"[a-z]{0,6}[ .-]?\d[a-z\d]*(?:[ ./-]{1,2}\d[a-z\d]*){0,6}(?:[ -][a-z](?![a-z]))?"
"""Digits with letters and separators, as in Western numbers; suspicious only after a word for one."""
_EMAIL = re.compile(r"[a-z0-9]\s?@\s?[a-z0-9-]{1,63}\.[a-z]{2,}")
_CONTACT = re.compile(
    r"tel:|wa\.me|whatsapp|(?<![a-z])(?:phone|tel|mobile|contact|call|uid|user|member)(?:[=/]|[a-z_]{0,6}=)"
)
"""A part of a page's address behind which a person's number stands."""
_NEAR = 20
"""Number of code points of context examined around a number."""
_PLAIN = str.maketrans(
    {code: chr(code - 0xFEE0).lower() for code in range(0xFF01, 0xFF5F)}
    | {letter: letter.lower() for letter in ascii_uppercase}
)


@dataclass(frozen=True)
class Residue:
    """A suspicious passage of a masked text, with offsets in code points."""

    start: int
    end: int
    reason: str
    """`digits`, or the kind of word next to the passage: account, record, national, name, address."""


@cache
def _words() -> Mapping[str, Any]:
    lists = parse_yaml(data_file("pii/residual.yaml").read_text(encoding="utf-8"))
    assert isinstance(lists, dict)
    return lists


@cache
def _units(name: str) -> re.Pattern[str]:
    listed = sorted(map(re.escape, _words()[name]), key=len, reverse=True)
    return re.compile(rf"[\s多余]{{0,2}}(?:{'|'.join(listed)})(?![A-Za-z])", re.IGNORECASE)


@cache
def _pattern_of_list(name: str, after: str = "") -> re.Pattern[str]:
    """Return a pattern of the entries of a word list, followed by the pattern `after`."""
    return re.compile(f"(?:{'|'.join(_words()[name])}){after}")


def trigger() -> str:
    """Return a pattern for Rust's `regex` that matches every text with residual PII."""
    words = [word for name in ("accounts", "records", "national", "names", "addresses") for word in _words()[name]]
    alone = (rf"(?-u:\b){word}(?-u:\b)" if word.isascii() else word for word in words)
    return rf"{_RUN}|(?i:{'|'.join(alone)})|[@\uff20-\uff5a]"


def scan(texts: Sequence[str], closed: re.Pattern[str]) -> Iterator[tuple[int, Residue]]:
    """Yield (row, residue) of all suspicious passages in the texts, in order; `closed` matches placeholders.

    One automaton selects the few texts that are scanned.
    """
    try:
        rows = pl.Series(texts, dtype=pl.String).str.contains(trigger()).arg_true().to_list()
    except UnicodeEncodeError:  # half a surrogate pair: no text in UTF-8, so all of them are looked at one by one
        rows = list(range(len(texts)))
    for row in rows:
        for residue in residues(texts[row], closed):
            yield row, residue


def residues(text: str, closed: re.Pattern[str]) -> list[Residue]:
    """Return the suspicious passages of a masked text in order; `closed` matches placeholders."""
    from curate.pii.recognisers import contexts

    seen = narrow(_WRITTEN.sub(_blank, closed.sub(_blank, text))).translate(_PLAIN)
    seen = _pattern_of_list("zips", r"(?![\d-])").sub(_blank, seen)
    seen = _public_code().sub(lambda match: match[0] if _someones(match[0]) else _blank(match), seen)
    seen = (
        rules("contacts")
        .pattern("standing_alone")
        .sub(lambda match: _blank(match) if contexts.for_everybody(match) else match[0], seen)
    )
    candidates = [*_digits(seen), *_beside_words(seen)]
    merged: list[Residue] = []
    for residue in sorted(candidates, key=lambda residue: (residue.start, -residue.end)):
        if not merged or residue.start >= merged[-1].end:
            merged.append(residue)
        elif residue.end > merged[-1].end:
            merged[-1] = replace(merged[-1], end=residue.end)  # merged, so that masking one leaves no rest of the other
    return merged


@cache
def _public_code() -> re.Pattern[str]:
    """Return a pattern of public codes in lower case, each of the whole form of its kind: a DOI, a trial, a gene."""
    return re.compile("|".join(f"(?:{form})" for forms in _words()["public"].values() for form in forms))


def _someones(code: str) -> bool:
    """Return whether a public code contains a mobile, identity or card number."""
    from curate.pii.recognisers import numbers as recognisers

    numbers = (re.sub("[ -]", "", number) for number in re.findall(r"\d(?:[ -]?\d){10,18}x?", code))
    return _CONTACT.search(code) is not None or any(
        recogniser(number)
        for number in numbers
        for recogniser in (recognisers.mobile, recognisers.resident_id, recognisers.bank_card)
    )


def is_measure(number: str, after: str = "") -> bool:
    """Return whether a text is a number with a unit (dose, laboratory value, age); the unit may be in `after`."""
    seen = narrow(number)
    number_match = re.match(r"[\d.,/~^*×+ -]*\d", seen)
    if number_match is None:
        return False
    unit = _units("large" if re.fullmatch(rf"\d{{{FEWEST},}}", number_match[0]) else "units")
    if number_match.end() == len(seen):
        return unit.match(narrow(after[:20])) is not None
    return unit.fullmatch(seen, number_match.end()) is not None


def _blank(match: re.Match[str]) -> str:
    return "\0" * len(match[0])


def _digits(text: str) -> Iterator[Residue]:
    for match in re.finditer(_RUN, text):
        run = match[0].translate(_NUMERALS)
        # single separated digits are one number; else commas and colons separate numbers
        pattern = r"\d[^,、:]*\d" if re.search(r"\d\d", run) else r"(?s:.+)"
        for piece in re.finditer(pattern, run):
            start, end = match.start() + piece.start(), match.start() + piece.end()
            few = sum(map(str.isdecimal, piece[0])) < FEWEST
            if not few and _suspicious(piece[0], text[max(start - _NEAR, 0) : start], text[end : end + _NEAR]):
                yield Residue(start, end, "digits")


def _suspicious(run: str, before: str, after: str) -> bool:
    """Return whether digits are none of these: date, measure, range, decimal, count, list numbers, public number."""
    digits = re.sub(r"\D", "", run)
    if 0 <= _COUNTED.find(digits) < 10 or _ROUND.fullmatch(run) or _public(run) or _free_line(run, before, after):
        return False
    if _DATE.fullmatch(run):
        return _pattern_of_list("births", r"\W{0,4}\Z").search(before) is not None
    plain = (_YEARS, _RANGE, _PRESSURE)
    if any(pattern.fullmatch(run) for pattern in plain) or _POWER.search(run) or is_measure(run, after):
        return False
    if "." in run and all(_NUMBER.fullmatch(number) for number in re.split(r"[\s/~*()+-]+", run) if number):
        return False
    return _pattern_of_list("codes", r"\s?\Z").search(before) is None or _someones(run)


def _free_line(number: str, before: str, after: str) -> bool:
    """Return whether a number is a public phone line, or a toll-free number written with letters.

    False outside of English text, because Chinese mobile numbers and parts of numbers look the same.
    """
    if script(before + after) != "en":
        return False
    from curate.pii.recognisers import contexts

    return contexts.everybody(number) or bool(_FREE_OF_CHARGE.fullmatch(number) and re.match("[ -]?[a-z]", after))


def _beside_words(text: str) -> Iterator[Residue]:
    for reason, pattern, fewest in (("account", _VALUE, 5), ("record", "[a-z0-9-]+", 3)):
        for word in _pattern_of_list(f"{reason}s", rf"(?=(?P<link>{_LINK})(?P<value>{pattern}))").finditer(text):
            number, start = word["value"].rstrip(".-"), word.start("value")
            after = text[start + len(number) : start + len(number) + _NEAR]
            free = _free_line(number, text[max(start - _NEAR, 0) : start], after)
            if (
                _is_separate_word(word, text)
                and _telling(number, word["link"], fewest)
                and not (is_measure(number, after) or free)
            ):
                yield Residue(start, start + len(number), reason)
    for word in _pattern_of_list("national", rf"(?=(?P<link>{_SAID})(?P<value>{_NUMBER_LIKE}))").finditer(text):
        number, start = word["value"], word.start("value")
        if _is_separate_word(word, text) and sum(map(str.isdecimal, number)) >= 5 and not _public(number):
            yield Residue(start, start + len(number), "national")
    for match in _pattern_of_list("names", r"\s?:\s?(?P<value>[\u4e00-\u9fff]{2,4}|[a-z]+ [a-z]+)").finditer(text):
        if not _pattern_of_list("no_names").match(match["value"]):
            yield Residue(*match.span("value"), "name")
    for match in _pattern_of_list("addresses", r"\s?:\s?(?P<value>[\u4e00-\u9fff]{3}[\u4e00-\u9fff0-9-]*)").finditer(
        text
    ):
        yield Residue(*match.span("value"), "address")
    for match in _EMAIL.finditer(text):
        yield Residue(*match.span(), "account")


def _is_separate_word(word: re.Match[str], text: str) -> bool:
    """Return whether a Latin word is not part of a longer one; True for other words."""
    around = text[max(word.start() - 1, 0) : word.start()] + text[word.end() : word.end() + 1]
    return not word[0].isascii() or not any(character.isascii() and character.isalpha() for character in around)


def _telling(text: str, link: str, fewest: int) -> bool:
    """Return whether a value after a trigger word may identify a person: at least `fewest` digits, or a code."""
    if _public(text):
        return False
    is_code = not text.isdecimal() and (re.search("[:=是为為号號]", link) or re.search(r"[\d_-]", text))
    return sum(map(str.isdecimal, text)) >= fewest or bool(is_code)


def _public(number: str) -> bool:
    """Return whether a number is a public phone line, with or without its separators."""
    spoken = "" if any(map(str.isalpha, number)) else re.sub(r"\D", "", number)
    from curate.pii.recognisers import contexts

    is_helpline = any(_pattern_of_list("helplines").fullmatch(form) for form in (number, spoken))
    return is_helpline or contexts.is_hotline(spoken)
