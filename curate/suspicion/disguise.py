"""Readings of a text whose words are disguised: letters apart, letters of other scripts, digits for letters, codes.

A reading is tried only where its mark is in the text (disguise.yaml), so plain texts have one.
"""

import base64
import binascii
import codecs
import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote

from curate.config import Section, check, read_yaml
from curate.resources import data_file

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_BOXES = (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
"""Where letters in boxes and letters of flags begin."""
_FENCED = r"(?<![^\W\d_]){}(?![^\W\d_])"
"""What stands apart is no end of a word."""
_MOST = 64
"""Codes of a text that are read at most."""


@dataclass(frozen=True)
class Reading:
    """One way of reading a text."""

    text: str
    runs: tuple[tuple[int, int], ...] = ()
    """Where letters are that stood apart: nobody knows where their words end."""
    said: tuple[str, ...] = ()
    """What the disguise itself says: spaced or coded."""


class Disguises(Section):
    """The file: how a disguise looks in any text, and what its letters stand for."""

    marks: Mapping[str, str]
    lookalikes: Mapping[str, str]
    digits: Mapping[str, str]
    """What stands for a letter inside a word."""


@dataclass(frozen=True)
class _Known:
    marks: Mapping[str, re.Pattern[str]]
    latin: Mapping[int, str]
    cyrillic: Mapping[int, str]
    digits: Mapping[int, str]


def readings(text: str) -> Iterator[Reading]:
    """Yield a text in NFKC as it stands, and then as what it may be meant to be read."""
    yield Reading(text)
    known = _known()
    ways: dict[str, Callable[[], Iterable[Reading]]] = {
        "apart": lambda: [_joined(text, known.marks["apart"])],
        "dense": lambda: [_joined(text, known.marks["dense"])],
        "mixed": lambda: _one_script(text, known),
        "boxed": lambda: _one_script(text, known),
        "digits": lambda: [_spelled(text, known)],
        "coded": lambda: _decoded(text, known),
        "rotated": lambda: [Reading(codecs.decode(text, "rot13"), said=("coded",))],
        "reversed": lambda: [Reading(text[::-1], said=("coded",))],
    }
    for name, way in ways.items():
        if known.marks[name].search(text):
            yield from way()


def scans() -> list[str]:
    """Return the patterns of all marks; they run in Rust, too."""
    return list(disguises().marks.values())


def _joined(text: str, apart: re.Pattern[str]) -> Reading:
    """Return a text with letters that stand apart put together, at the commonest gap; another gap parts words."""
    pieces, runs, done, length = [], [], 0, 0
    for match in apart.finditer(text):
        parts = re.split(r"([\W_]+)", match[0])
        usual = Counter(parts[1::2]).most_common(1)[0][0]
        word = "".join("" if part == usual else " " if at % 2 else part for at, part in enumerate(parts))
        word = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])", " ", word)
        pieces += [text[done : match.start()], " ", word, " "]
        length += match.start() - done + 1
        runs.append((length, length + len(word)))
        length, done = length + len(word) + 1, match.end()
    return Reading("".join([*pieces, text[done:]]), tuple(runs), ("spaced",))


def _one_script(text: str, known: _Known) -> Iterator[Reading]:
    yield Reading(text.translate(known.latin))
    if re.search("[\u0400-\u04ff]{2}", text):
        mixed = re.compile(r"[^\W\d_]*[\u0400-\u04ff][^\W\d_]*")
        yield Reading(mixed.sub(lambda match: match[0].translate(known.cyrillic), text))


def _spelled(text: str, known: _Known) -> Reading:
    return Reading(re.sub(r"\S*[^\W\d_]\S*", lambda match: match[0].translate(known.digits), text))


def _decoded(text: str, known: _Known) -> Iterator[Reading]:
    plain = unquote(html.unescape(text))
    plain = re.sub(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1] or match[2], 16)), plain)
    if plain != text:
        yield Reading(plain, said=("coded",))
    for at, match in enumerate(known.marks["coded"].finditer(text)):
        if at < _MOST and (said := _bytes(match[0])):
            yield Reading(said, said=("coded",))


def _bytes(code: str) -> str:
    """Return what base64 or hexadecimal digits say, nothing if that is no text."""
    pairs = re.sub("[ :]", "", code)
    for decode in (bytes.fromhex, lambda each: base64.b64decode(each + "=" * (-len(each) % 4), validate=True)):
        try:
            text = decode(pairs.replace("-", "+").replace("_", "/").rstrip("=")).decode("utf-8")
        except (ValueError, binascii.Error):
            continue
        if sum(letter.isprintable() or letter.isspace() for letter in text) == len(text):
            return text
    return ""


@cache
def disguises() -> Disguises:
    """Return what is read from disguise.yaml."""
    path = data_file("suspicion/disguise.yaml")
    return check(Disguises, read_yaml(path), str(path))


@cache
def _known() -> _Known:
    file = disguises()
    latin = dict(file.lookalikes) | {other.upper(): letter.upper() for other, letter in file.lookalikes.items()}
    boxes = {start + at: letter.upper() for start in _BOXES for at, letter in enumerate(_LETTERS)}
    back = {letter: other for other, letter in latin.items() if "\u0400" <= other <= "\u04ff"}
    return _Known(
        {name: re.compile(_FENCED.format(mark) if name == "apart" else mark) for name, mark in file.marks.items()},
        boxes | {ord(other): letter for other, letter in latin.items() if len(other) == 1},
        {ord(letter): other for letter, other in back.items()},
        {ord(digit): letter for digit, letter in file.digits.items()},
    )
