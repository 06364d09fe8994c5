"""Detection of residual PII: passages of masked texts that still look like personal data."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

import polars as pl

from curate.pii.patterns import narrow, script
from curate.pii.recognisers import contexts
from curate.pii.rules import rules
from curate.pii.words import words

_RULES = rules("residual")
_PATTERN = _RULES.pattern

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
        "…" * (low > 0) + on_one_line(text[low:start]),
        on_one_line(text[start:end]),
        on_one_line(text[end:high]) + "…" * (high < len(text)),
    )


def on_one_line(text: str) -> str:
    """Return a text on one line, with control characters replaced by spaces."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def pattern(text: str, start: int, end: int) -> str:
    """Return the form of a passage behind the word in front of it: `PMID 99999999`, digits as 9 and letters as a.

    Passages of one pattern can be decided on together; a code behind its word shares none with a telephone number.
    """
    front = _PATTERN("front").search(on_one_line(text[max(0, start - AROUND) : start]))
    form = re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", on_one_line(text[start:end])))
    return f"{front[0] if front else ''}{form}"


# Look over masked texts for what may have been missed: long runs of digits, and values beside words such as 电话.

FEWEST = 7
"""Minimum number of digits of a run that is suspicious without context."""
_NUMERALS = str.maketrans(
    "〇零○幺一二三四五六七八九壹贰貳叁參肆伍陆陸柒捌玖", "0001" + "123456789" + "12233456" + "6789"
)
_COUNTED = "".join(map(str, range(200)))
"""Consecutive list numbers: 1, 2, 3 ..."""
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


def trigger() -> str:
    """Return a pattern for Rust's `regex` that matches every text with residual PII."""
    lists = words("residual")
    listed = (word for name in ("accounts", "records", "national", "names", "addresses") for word in lists[name])
    alone = (rf"(?-u:\b){word}(?-u:\b)" if word.isascii() else word for word in listed)
    return rf"{_RULES.source('run')}|(?i:{'|'.join(alone)})|[@\uff20-\uff5a]"


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
    seen = narrow(_PATTERN("pseudonym").sub(_blank, closed.sub(_blank, text))).translate(_PLAIN)
    seen = _PATTERN("zip").sub(_blank, seen)
    seen = _PATTERN("public_code").sub(lambda match: match[0] if _someones(match[0]) else _blank(match), seen)
    western = rules("contacts").pattern("standing_alone")
    seen = western.sub(lambda match: _blank(match) if contexts.for_everybody(match) else match[0], seen)
    candidates = [*_digits(seen), *_beside_words(seen)]
    merged: list[Residue] = []
    for residue in sorted(candidates, key=lambda residue: (residue.start, -residue.end)):
        if not merged or residue.start >= merged[-1].end:
            merged.append(residue)
        elif residue.end > merged[-1].end:
            merged[-1] = replace(merged[-1], end=residue.end)  # merged, so that masking one leaves no rest of the other
    return merged


def _someones(code: str) -> bool:
    """Return whether a public code contains a mobile, identity or card number."""
    from curate.pii.recognisers import numbers as recognisers

    numbers = (re.sub("[ -]", "", number) for number in re.findall(r"\d(?:[ -]?\d){10,18}x?", code))
    return _PATTERN("contact").search(code) is not None or any(
        recogniser(number)
        for number in numbers
        for recogniser in (recognisers.mobile, recognisers.resident_id, recognisers.bank_card)
    )


def is_measure(number: str, after: str = "") -> bool:
    """Return whether a text is a number with a unit (dose, laboratory value, age); the unit may be in `after`."""
    seen = narrow(number)
    number_match = _PATTERN("measured").match(seen)
    if number_match is None:
        return False
    unit = _PATTERN("large" if re.fullmatch(rf"\d{{{FEWEST},}}", number_match[0]) else "units")
    if number_match.end() == len(seen):
        return unit.match(narrow(after[:20])) is not None
    return unit.fullmatch(seen, number_match.end()) is not None


def _blank(match: re.Match[str]) -> str:
    return "\0" * len(match[0])


def _digits(text: str) -> Iterator[Residue]:
    for match in _PATTERN("run").finditer(text):
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
    if (
        0 <= _COUNTED.find(digits) < 10
        or _PATTERN("round").fullmatch(run)
        or _public(run)
        or _free_line(run, before, after)
    ):
        return False
    if _PATTERN("date").fullmatch(run):
        return _PATTERN("birth").search(before) is not None
    if _PATTERN("plain").fullmatch(run) or _PATTERN("power").search(run) or is_measure(run, after):
        return False
    if "." in run and all(
        _PATTERN("short_number").fullmatch(number) for number in re.split(r"[\s/~*()+-]+", run) if number
    ):
        return False
    return _PATTERN("code").search(before) is None or _someones(run)


def _free_line(number: str, before: str, after: str) -> bool:
    """Return whether a number is a public phone line, or a toll-free number written with letters.

    False outside of English text, because Chinese mobile numbers and parts of numbers look the same.
    """
    if script(before + after) != "en":
        return False
    return contexts.everybody(number) or bool(
        _PATTERN("free_of_charge").fullmatch(number) and re.match("[ -]?[a-z]", after)
    )


def _beside_words(text: str) -> Iterator[Residue]:
    for reason, fewest in (("account", 5), ("record", 3)):
        for word in _PATTERN(reason).finditer(text):
            number, start = word["value"].rstrip(".-"), word.start("value")
            after = text[start + len(number) : start + len(number) + _NEAR]
            free = _free_line(number, text[max(start - _NEAR, 0) : start], after)
            if (
                _is_separate_word(word, text)
                and _telling(number, word["link"], fewest)
                and not (is_measure(number, after) or free)
            ):
                yield Residue(start, start + len(number), reason)
    for word in _PATTERN("national").finditer(text):
        number, start = word["value"], word.start("value")
        if _is_separate_word(word, text) and sum(map(str.isdecimal, number)) >= 5 and not _public(number):
            yield Residue(start, start + len(number), "national")
    for match in _PATTERN("name").finditer(text):
        if not _PATTERN("no_name").match(match["value"]):
            yield Residue(*match.span("value"), "name")
    for match in _PATTERN("address").finditer(text):
        yield Residue(*match.span("value"), "address")
    for match in _PATTERN("email").finditer(text):
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
    is_helpline = any(_PATTERN("helpline").fullmatch(form) for form in (number, spoken))
    return is_helpline or contexts.is_hotline(spoken)
