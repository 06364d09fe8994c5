"""A place in a text with what stands around it, to be shown in a terminal."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from string import ascii_uppercase

import polars as pl

from curate.core.config import parse_yaml
from curate.pii.text import narrow, script
from curate.system.resources import data_file

AROUND = 30
"""Code points that are shown on each side."""


@dataclass(frozen=True)
class Excerpt:
    """What stands before, at and behind a place, on one line."""

    before: str
    place: str
    behind: str

    def __str__(self) -> str:
        return f"{self.before}»{self.place}«{self.behind}"


def excerpt(text: str, start: int, end: int) -> Excerpt:
    """Return a place with `AROUND` code points on each side; … stands where the text goes on."""
    before, behind = max(start - AROUND, 0), end + AROUND
    return Excerpt(
        "…" * (before > 0) + _line(text[before:start]),
        _line(text[start:end]),
        _line(text[end:behind]) + "…" * (behind < len(text)),
    )


def _line(text: str) -> str:
    """Return a text as one line that gives no orders to a terminal."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


# Look over masked texts for what may have been missed: long runs of digits, and values beside words such as 电话.

FEWEST = 7
"""Digits of a run that is suspicious by itself."""
_NUMERALS = str.maketrans(
    "〇零○幺一二三四五六七八九壹贰貳叁參肆伍陆陸柒捌玖", "0001" + "123456789" + "12233456" + "6789"
)
_DIGIT = r"[\d〇零○幺一二三四五六七八九壹贰貳叁參肆伍陆陸柒捌玖]"
_GAP = (
    r"[\s\-_.·•*/|~+(),:、\uff08-\uff0f\uff1a\uff3f\uff5c\uff5e"
    r"\u2010-\u2015\u2212\ufe0f\u20e3\u200b-\u200f\u2060\ufeff]"
)
"""What may stand between digits of one number, in both widths, with what makes keycaps of them or is not seen."""
_RUN = rf"{_DIGIT}(?:{_GAP}{{0,3}}{_DIGIT}){{{FEWEST - 1},}}"
_DAY = (
    r"(?:(?:1[89]|20)\d\d\D{0,3}(?:0?[1-9]|1[0-2])(?:\D{0,3}(?:[0-2]?\d|3[01]))?"
    r"|(?:(?:0?[1-9]|1[0-2])[-./]\s?(?:[0-2]?\d|3[01])|(?:[0-2]?\d|3[01])[-./]\s?(?:0?[1-9]|1[0-2]))[-./]\s?(?:1[89]|20)\d\d)"
)
"""The year first, or last behind day and month in either order."""
_DATE = re.compile(rf"{_DAY}(?:\D{{1,3}}\d\d?){{0,3}}(?:\D{{1,3}}{_DAY})?")
_YEARS = re.compile(r"(?:1[89]|20)\d\d(?:\D{1,3}(?:1[89]|20)\d\d)+")
_RANGE = re.compile(r"\d{1,3}0\s?[-~/]+\s?\d{1,3}0")
"""Of round numbers; 90-140/60-90 is blood pressure."""
_PRESSURE = re.compile(r"\d{2,3}[-~]\d{2,3}/\d{2,3}[-~]\d{2,3}")
_NUMBER = re.compile(r"\d+\.\d+|\d{1,6}")
_POWER = re.compile(r"\*\s?10")
_WRITTEN = re.compile(
    r"(?<!\d)(?:12\d{9}|000000\d{12})(?!\d)|user\d{9}@mail\.invalid|[\u4e00-\u9fff]某[甲乙丙丁戊己庚辛壬癸]|[\u4e00-\u9fff][A-H]I\d{4}"
)
"""Pseudonyms: see `writing.PSEUDONYMS`."""
_ROUND = re.compile(r"(?!\d{11}\Z)\d+0{5}")
"""A count, as of viruses; eleven digits may be a mobile number."""
_FREE_OF_CHARGE = re.compile(r"1?\D?8(?:00|33|44|55|66|77|88)(?:\D?\d{3})?\D?")
"""The digits of 1-800-273-TALK."""
_COUNTED = "".join(map(str, range(200)))
"""Numbers of a list: 1, 2, 3 ..."""
_LINK = r"[\s:=是为為号號码碼加我的同(\"“'「【,/]{0,6}[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼]?"
"""What stands between a word and its value; a plate begins with a province."""
_VALUE = r"[a-z0-9][a-z0-9_.@-]{4,}"
_SAID = r"(?:[\s:#=.(\"'-]|(?<![a-z])(?:number|no|nr|num|nummer|id|is|was)(?![a-z])){0,8}"
_NUMBER_LIKE = r"[a-z]{0,6}[ .-]?\d[a-z\d]*(?:[ ./-]{1,2}\d[a-z\d]*){0,6}(?:[ -][a-z](?![a-z]))?"
"""Beside a word for a number of the West: digits with letters and groups."""
_EMAIL = re.compile(r"[a-z0-9]\s?@\s?[a-z0-9-]{1,63}\.[a-z]{2,}")
_NEAR = 20
"""Code points around a number that are looked at."""
_PLAIN = str.maketrans(
    {place: chr(place - 0xFEE0).lower() for place in range(0xFF01, 0xFF5F)}
    | {letter: letter.lower() for letter in ascii_uppercase}
)


@dataclass(frozen=True)
class Residue:
    """A suspicious stretch of a masked text, in code points."""

    start: int
    end: int
    reason: str
    """digits, or the kind of word beside it: account, record, national, name, address."""


@cache
def _words() -> Mapping[str, Sequence[str]]:
    found = parse_yaml(data_file("pii/residual.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@cache
def _units(name: str) -> re.Pattern[str]:
    listed = sorted(map(re.escape, _words()[name]), key=len, reverse=True)
    return re.compile(rf"[\s多余]{{0,2}}(?:{'|'.join(listed)})(?![A-Za-z])", re.IGNORECASE)


@cache
def _any(name: str, after: str = "") -> re.Pattern[str]:
    """Return the pattern of a list's entries; what is `after` them is looked at, not used up."""
    return re.compile(f"(?:{'|'.join(_words()[name])}){after}")


def trigger() -> str:
    """Return a pattern that occurs in every text in which anything is found, for Rust's `regex`."""
    words = [word for name in ("accounts", "records", "national", "names", "addresses") for word in _words()[name]]
    alone = (rf"(?-u:\b){word}(?-u:\b)" if word.isascii() else word for word in words)
    return rf"{_RUN}|(?i:{'|'.join(alone)})|[@\uff20-\uff5a]"


def scan(texts: Sequence[str], closed: re.Pattern[str]) -> Iterator[tuple[int, Residue]]:
    """Yield row and stretch of everything suspicious in many texts, in order.

    One automaton finds the few texts that are looked at.
    """
    try:
        rows = pl.Series(texts, dtype=pl.String).str.contains(trigger()).arg_true().to_list()
    except UnicodeEncodeError:  # half a surrogate pair: no text in UTF-8, so all of them are looked at one by one
        rows = list(range(len(texts)))
    for row in rows:
        for residue in residues(texts[row], closed):
            yield row, residue


def residues(text: str, closed: re.Pattern[str]) -> list[Residue]:
    """Return what is suspicious in a masked text, first one first; `closed` matches what masking wrote."""
    from curate.pii.recognisers import phone_western

    seen = narrow(_WRITTEN.sub(_blank, closed.sub(_blank, text))).translate(_PLAIN)
    seen = _any("zips", r"(?![\d-])").sub(_blank, seen)
    seen = phone_western.ALONE.sub(
        lambda match: _blank(match) if phone_western.for_everybody(match) else match[0], seen
    )
    found = [*_digits(seen), *_beside(seen)]
    kept: list[Residue] = []
    for each in sorted(found, key=lambda residue: (residue.start, -residue.end)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
        elif each.end > kept[-1].end:
            kept[-1] = replace(kept[-1], end=each.end)  # one place, so that to mask it leaves nothing of the other
    return kept


def is_measure(number: str, after: str = "") -> bool:
    """Say whether a text is a number with its unit, or one whose unit stands behind it: a dose, a value, an age."""
    seen = narrow(number)
    found = re.match(r"[\d.,/~^*×+ -]*\d", seen)
    if found is None:
        return False
    unit = _units("large" if re.fullmatch(rf"\d{{{FEWEST},}}", found[0]) else "units")
    if found.end() == len(seen):
        return unit.match(narrow(after[:20])) is not None
    return unit.fullmatch(seen, found.end()) is not None


def _blank(match: re.Match[str]) -> str:
    return "\0" * len(match[0])


def _digits(text: str) -> Iterator[Residue]:
    for match in re.finditer(_RUN, text):
        for piece in _pieces(match[0].translate(_NUMERALS)):
            start, end = match.start() + piece.start(), match.start() + piece.end()
            if _suspicious(piece[0], text[max(start - _NEAR, 0) : start], text[end : end + _NEAR]):
                yield Residue(start, end, "digits")


def _pieces(run: str) -> Iterator[re.Match[str]]:
    """Yield what stands between commas and colons; digits one by one are one number however they are separated."""
    pattern = r"\d[^,、:]*\d" if re.search(r"\d\d", run) else r"(?s:.+)"
    return (piece for piece in re.finditer(pattern, run) if sum(map(str.isdecimal, piece[0])) >= FEWEST)


def _suspicious(run: str, before: str, after: str) -> bool:
    """Say whether digits are anything but a date, a measure, a range, decimal numbers, a count or a public code."""
    digits = re.sub(r"\D", "", run)
    if 0 <= _COUNTED.find(digits) < 10 or _ROUND.fullmatch(run) or _public(run) or _free_line(run, before, after):
        return False
    if _DATE.fullmatch(run):
        return _any("births", r"\W{0,4}\Z").search(before) is not None
    plain = (_YEARS, _RANGE, _PRESSURE)
    if any(pattern.fullmatch(run) for pattern in plain) or _POWER.search(run) or is_measure(run, after):
        return False
    if "." in run and all(_NUMBER.fullmatch(each) for each in re.split(r"[\s/~*()+-]+", run) if each):
        return False
    return _any("codes", r"\s?\Z").search(before) is None


def _free_line(number: str, before: str, after: str) -> bool:
    """Say whether a number is a line that is free of charge, of a public body or for everybody, or one in letters.

    Among Latin words alone, for China has mobile numbers and parts of numbers that look the same.
    """
    if script(before + after) != "en":
        return False
    from curate.pii.recognisers import phone_western

    return phone_western.everybody(number) or bool(_FREE_OF_CHARGE.fullmatch(number) and re.match("[ -]?[a-z]", after))


def _beside(text: str) -> Iterator[Residue]:
    for reason, value, fewest in (("account", _VALUE, 5), ("record", "[a-z0-9-]+", 3)):
        for word in _any(f"{reason}s", rf"(?=(?P<link>{_LINK})(?P<value>{value}))").finditer(text):
            found, start = word["value"].rstrip(".-"), word.start("value")
            after = text[start + len(found) : start + len(found) + _NEAR]
            free = _free_line(found, text[max(start - _NEAR, 0) : start], after)
            if _alone(word, text) and _telling(found, word["link"], fewest) and not (is_measure(found, after) or free):
                yield Residue(start, start + len(found), reason)
    for word in _any("national", rf"(?=(?P<link>{_SAID})(?P<value>{_NUMBER_LIKE}))").finditer(text):
        found, start = word["value"], word.start("value")
        if _alone(word, text) and sum(map(str.isdecimal, found)) >= 5 and not _public(found):
            yield Residue(start, start + len(found), "national")
    for match in _any("names", r"\s?:\s?(?P<value>[\u4e00-\u9fff]{2,4}|[a-z]+ [a-z]+)").finditer(text):
        if not _any("no_names").match(match["value"]):
            yield Residue(*match.span("value"), "name")
    for match in _any("addresses", r"\s?:\s?(?P<value>[\u4e00-\u9fff]{3}[\u4e00-\u9fff0-9-]*)").finditer(text):
        yield Residue(*match.span("value"), "address")
    for match in _EMAIL.finditer(text):
        yield Residue(*match.span(), "account")


def _alone(word: re.Match[str], text: str) -> bool:
    """Say whether a word stands for itself: one of letters is none within a longer one."""
    around = text[max(word.start() - 1, 0) : word.start()] + text[word.end() : word.end() + 1]
    return not word[0].isascii() or not any(each.isascii() and each.isalpha() for each in around)


def _telling(value: str, link: str, fewest: int) -> bool:
    """Say whether a value beside a word is a person's: enough digits, or letters that are no plain word."""
    if _public(value):
        return False
    named = not value.isdecimal() and (re.search("[:=是为為号號]", link) or re.search(r"[\d_-]", value))
    return sum(map(str.isdecimal, value)) >= fewest or bool(named)


def _public(number: str) -> bool:
    """Say whether everybody may call a number, as it is written or by its digits alone."""
    spoken = "" if any(map(str.isalpha, number)) else re.sub(r"\D", "", number)
    from curate.pii.recognisers import phone_western

    known = any(_any("helplines").fullmatch(each) for each in (number, spoken))
    return known or phone_western.is_hotline(spoken)
