"""Say what in a text looks like an attack on a prompt: orders to a grader, role tokens, markers, hidden Unicode.

A flag is no verdict and no defence: nothing is left out or changed because of one, and who knows the words that are
looked for writes around them. It is written down, so that a person can look.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from curate.core.config import Section, check, read_yaml
from curate.llm.prompt_injection.disguise import Reading, readings
from curate.llm.prompt_injection.weighing import orders
from curate.system.resources import data_file

INSTRUCTION = "instruction"
"""The flag of orders to a grader, which are weighed; the others are the keys of `flags` in marks.yaml."""
HIDDEN = "hidden"
"""The flag of characters that show nothing."""

# NFKC costs a microsecond a character of Chinese, so it is kept for what ordinary Chinese does not use.
_COMMON = tuple(zip("，：；！？（）\u3000", ",:;!?() ", strict=True))
_OTHERS = re.compile(r"[^\x00-\x7f\u3001-\u3011\u3400-\u9fff\u2018-\u201d]+")
_TAGS = {0xE0000 + code: code for code in range(0x20, 0x7F)}


class _Rule(Section):
    needs: tuple[str, ...]
    pattern: str


class _Hidden(Section):
    alone: str
    several: str
    any: str


class _File(Section):
    flags: Mapping[str, tuple[_Rule, ...]]
    hidden: _Hidden


@dataclass(frozen=True)
class Marks:
    """What is looked for beside orders."""

    names: tuple[str, ...]
    words: tuple[tuple[str, str, re.Pattern[str]], ...]
    """Word, flag, pattern: the pattern is tried on texts that have the word."""
    hidden: re.Pattern[str]
    unseen: re.Pattern[str]


def flags(text: str) -> tuple[str, ...]:
    """Return the names of what is suspicious in a text: `instruction`, then as in marks.yaml, then `hidden`."""
    known = marks()
    plain, hidden = text, False
    if known.unseen.search(text):
        hidden = known.hidden.search(text) is not None
        plain = known.unseen.sub("", text.translate(_TAGS))
    found = {name for reading in readings(_narrow(plain)) for name in _found(reading, known)}
    names = tuple(name for name in (INSTRUCTION, *known.names) if name in found)
    return (*names, HIDDEN) if hidden else names


def _found(reading: Reading, known: Marks) -> set[str]:
    small = reading.text.lower()
    tried = {pattern: name for word, name, pattern in known.words if word in small}
    found = {name for pattern, name in tried.items() if pattern.search(small)}
    return found | {INSTRUCTION} if orders().found(reading.text, reading.runs, reading.said) else found


def _narrow(text: str) -> str:
    """Return a text in NFKC."""
    if text.isascii():
        return text
    for wide, narrow in _COMMON:
        text = text.replace(wide, narrow)
    return _OTHERS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)


@cache
def marks() -> Marks:
    """Return what is read from marks.yaml."""
    path = data_file("llm/prompt_injection/marks.yaml")
    file = check(_File, read_yaml(path), str(path))
    return Marks(
        names=tuple(file.flags),
        words=tuple(
            (word, name, re.compile(rule.pattern, re.MULTILINE))
            for name, rules in file.flags.items()
            for rule in rules
            for word in rule.needs
        ),
        hidden=re.compile(f"{file.hidden.alone}|{file.hidden.several}"),
        unseen=re.compile(file.hidden.any),
    )
