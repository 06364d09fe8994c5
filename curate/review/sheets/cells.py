"""Cells: what a spreadsheet may be given, and what it may do to a text without changing what it says."""

import re
from unicodedata import normalize

MARK = "'"
"""What stands before a text that a spreadsheet would take for a formula, a number or a date."""
LIMIT = 32_767
"""What a cell of an xlsx file holds, in UTF-16 units."""

_LONG = LIMIT // 8
"""A shorter text fits into a cell even if every character of it is two units and is escaped."""

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, and therefore no cell of an xlsx file."""
_UNSEEN = re.compile("[\xad\u200b\u200e\u200f\u2060\ufeff]")
"""Marks without width; joiners are not among them, for they change what is seen."""
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
"""How xlsx writes a character that it cannot hold."""
_LIKE_ESCAPE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_RISKY = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠﹦﹢﹣﹫']")
_VALUE = re.compile(
    r"(?=.*\d)(?:[\d\s.,:;/%‰$¥£€()+\-年月日号时時分秒上下午eaptz]|am|pm"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)+|true|false",
    re.IGNORECASE,
)
_VALUE_LENGTH = 40


def plain(text: str) -> str:
    """Return a text without the characters that no cell holds, its lines ended as in a cell, by a line feed."""
    return _UNFIT.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def like_value(text: str) -> bool:
    """Say whether a spreadsheet could take a text for a number, a date or a truth value."""
    return len(text) <= _VALUE_LENGTH and _VALUE.fullmatch(normalize("NFKC", text).strip()) is not None


def defused(text: str) -> str:
    """Return a text that every spreadsheet leaves a text: with `MARK` before it where it is needed."""
    text = plain(text)
    return MARK + text if _RISKY.match(text) or like_value(text) else text


def fold(text: str) -> str:
    """Return what is compared of ids, names, answers and headers: no width, case, blanks or unseen marks."""
    return "".join(normalize("NFKC", seen(text)).casefold().split())


def seen(text: str) -> str:
    """Return a text without marks that have no width."""
    return _UNSEEN.sub("", plain(text))


def canonical(text: str) -> str:
    """Return what a text says: NFC, every run of white space one blank, nothing unseen."""
    while "_x" in text and _ESCAPE.search(text):  # once more, for some programs undo half of it
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    return " ".join(normalize("NFC", seen(text)).split())


def escaped(text: str) -> str:
    """Return a text for a cell of xlsx: what only looks like an escape is none, and it is not longer than `LIMIT`."""
    text = _LIKE_ESCAPE.sub("_x005F_", text)
    return text if 2 * len(text) <= LIMIT else text.encode("utf-16-le")[: 2 * LIMIT].decode("utf-16-le", "ignore")


def difference(found: str, expected: str) -> int | None:
    """Return the character, from 1, at which a cell says something else than a text; None if it says the same.

    Forgiven: line ends, the kind and number of blanks, characters without width, `MARK`, what a cell cannot hold.
    """
    cell, text = canonical(found), canonical(expected)
    unmarked = canonical(cell.removeprefix(MARK))
    if text in (cell, unmarked) or (len(expected) > _LONG and unmarked == _shortened(expected)):
        return None
    cell = unmarked if defused(expected).startswith(MARK) else cell
    pairs = enumerate(zip(cell, text, strict=False), start=1)
    return next((at for at, (one, other) in pairs if one != other), min(len(cell), len(text)) + 1)


def _shortened(text: str) -> str:
    """Return what is left of a text that is longer than a cell of xlsx."""
    return canonical(canonical(escaped(defused(text))).removeprefix(MARK))
