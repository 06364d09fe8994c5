"""Readings of a text with disguised words: spaced letters, letters of other scripts, digits for letters, codes.

A reading is made only if its mark in disguise.yaml is found, so plain texts have one reading.
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

from curate.core.config import Section, check, read_yaml
from curate.system.resources import data_file

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_BOXES = (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
"""First code points of letters in boxes and circles, and of regional indicators (flags)."""
_FENCED = r"(?<![^\W\d_]){}(?![^\W\d_])"
"""Spaced letters must not begin or end within a word."""
_MOST = 64
"""Maximum codes of a text that are decoded."""


@dataclass(frozen=True)
class Reading:
    """A text with one kind of disguise undone."""

    text: str
    runs: tuple[tuple[int, int], ...] = ()
    """(start, end) of letters that were spaced, whose word boundaries are unknown."""
    said: tuple[str, ...] = ()
    """Concept of the disguise: `spaced` or `coded`."""


class Disguises(Section):
    """disguise.yaml: marks of disguises, and the letters that look-alikes and digits replace."""

    marks: Mapping[str, str]
    lookalikes: Mapping[str, str]
    digits: Mapping[str, str]
    """Digits and signs that replace a letter in a word -> the letter."""


@dataclass(frozen=True)
class _Tables:
    marks: Mapping[str, re.Pattern[str]]
    latin: Mapping[int, str]
    cyrillic: Mapping[int, str]
    digits: Mapping[int, str]


def readings(text: str) -> Iterator[Reading]:
    """Yield a text normalised to NFKC and otherwise unchanged, then its readings with disguises undone."""
    yield Reading(text)
    tables = _tables()
    decoders: dict[str, Callable[[], Iterable[Reading]]] = {
        "apart": lambda: [_joined(text, tables.marks["apart"])],
        "dense": lambda: [_joined(text, tables.marks["dense"])],
        "mixed": lambda: _one_script(text, tables),
        "boxed": lambda: _one_script(text, tables),
        "digits": lambda: [Reading(re.sub(r"\S*[^\W\d_]\S*", lambda match: match[0].translate(tables.digits), text))],
        "coded": lambda: _decoded(text, tables),
        "rotated": lambda: [Reading(codecs.decode(text, "rot13"), said=("coded",))],
        "reversed": lambda: [Reading(text[::-1], said=("coded",))],
    }
    for name, decode in decoders.items():
        if tables.marks[name].search(text):
            yield from decode()


def scans() -> list[str]:
    """Return the patterns of all marks, which Rust's regex engine can run too."""
    return list(disguises().marks.values())


def _joined(text: str, apart: re.Pattern[str]) -> Reading:
    """Return a text with spaced letters joined: the most common gap is removed, any other separates words."""
    output, runs, copied, length = [], [], 0, 0
    for match in apart.finditer(text):
        letters_and_gaps = re.split(r"([\W_]+)", match[0])
        common_gap = Counter(letters_and_gaps[1::2]).most_common(1)[0][0]
        word = "".join(
            "" if piece == common_gap else " " if index % 2 else piece for index, piece in enumerate(letters_and_gaps)
        )
        # a capital after a small letter begins a word
        word = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])", " ", word)
        output += [text[copied : match.start()], " ", word, " "]
        length += match.start() - copied + 1
        runs.append((length, length + len(word)))
        length, copied = length + len(word) + 1, match.end()
    return Reading("".join([*output, text[copied:]]), tuple(runs), ("spaced",))


def _one_script(text: str, tables: _Tables) -> Iterator[Reading]:
    yield Reading(text.translate(tables.latin))
    if re.search("[\u0400-\u04ff]{2}", text):
        mixed_word = re.compile(r"[^\W\d_]*[\u0400-\u04ff][^\W\d_]*")
        yield Reading(mixed_word.sub(lambda match: match[0].translate(tables.cyrillic), text))


def _decoded(text: str, tables: _Tables) -> Iterator[Reading]:
    plain = unquote(html.unescape(text))
    plain = re.sub(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1] or match[2], 16)), plain)
    if plain != text:
        yield Reading(plain, said=("coded",))
    for index, match in enumerate(tables.marks["coded"].finditer(text)):
        if index < _MOST and (decoded := _bytes(match[0])):
            yield Reading(decoded, said=("coded",))


def _bytes(code: str) -> str:
    """Return the text in hexadecimal digits or base64; empty if it is no printable UTF-8."""
    compact = re.sub("[ :]", "", code)
    for decode in (bytes.fromhex, lambda digits: base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)):
        try:
            text = decode(compact.replace("-", "+").replace("_", "/").rstrip("=")).decode("utf-8")
        except (ValueError, binascii.Error):
            continue
        if sum(letter.isprintable() or letter.isspace() for letter in text) == len(text):
            return text
    return ""


@cache
def disguises() -> Disguises:
    """Return the content of disguise.yaml."""
    path = data_file("llm/prompt_injection/disguise.yaml")
    return check(Disguises, read_yaml(path), str(path))


@cache
def _tables() -> _Tables:
    file = disguises()
    capitals = {lookalike.upper(): letter.upper() for lookalike, letter in file.lookalikes.items()}
    latin = dict(file.lookalikes) | capitals
    boxes = {start + index: letter.upper() for start in _BOXES for index, letter in enumerate(_LETTERS)}
    cyrillic = {letter: lookalike for lookalike, letter in latin.items() if "\u0400" <= lookalike <= "\u04ff"}
    return _Tables(
        marks={
            name: re.compile(_FENCED.format(mark) if name == "apart" else mark) for name, mark in file.marks.items()
        },
        # without capitals of two letters, which str.translate cannot replace
        latin=boxes | {ord(lookalike): letter for lookalike, letter in latin.items() if len(lookalike) == 1},
        cyrillic={ord(letter): lookalike for letter, lookalike in cyrillic.items()},
        digits={ord(digit): letter for digit, letter in file.digits.items()},
    )
