"""Flag texts that look like prompt injection: orders to a grader, role tokens, markers, hidden Unicode.

A flag is neither a verdict nor a defence: no text is left out or changed because of one, and an attacker who knows the
words can avoid them. It is recorded so that a person can check.
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
"""Flag of orders to a grader, by a weighted score; other flags are the keys of `flags` in marks.yaml."""
HIDDEN = "hidden"
"""Flag of invisible characters."""

# NFKC takes a microsecond per character of Chinese, so it is applied only to characters that ordinary Chinese lacks
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
    """Patterns of all flags except `instruction`."""

    names: tuple[str, ...]
    words: tuple[tuple[str, str, re.Pattern[str]], ...]
    """(word, flag, pattern): the pattern is searched only in texts that contain the word."""
    hidden: re.Pattern[str]
    unseen: re.Pattern[str]


def flags(text: str) -> tuple[str, ...]:
    """Return the flags of a text: `instruction`, then in the order of marks.yaml, then `hidden`."""
    patterns = marks()
    plain, hidden = text, False
    if patterns.unseen.search(text):
        hidden = patterns.hidden.search(text) is not None
        plain = patterns.unseen.sub("", text.translate(_TAGS))
    flagged = {name for reading in readings(_narrow(plain)) for name in _flagged(reading, patterns)}
    names = tuple(name for name in (INSTRUCTION, *patterns.names) if name in flagged)
    return (*names, HIDDEN) if hidden else names


def _flagged(reading: Reading, patterns: Marks) -> set[str]:
    small = reading.text.lower()
    # keyed by pattern, so that one with several words is searched once
    candidates = {pattern: name for word, name, pattern in patterns.words if word in small}
    flagged = {name for pattern, name in candidates.items() if pattern.search(small)}
    return flagged | {INSTRUCTION} if orders().found(reading.text, reading.runs, reading.said) else flagged


def _narrow(text: str) -> str:
    """Return the NFKC form of a text; skips common Chinese characters, which NFKC does not change."""
    if text.isascii():
        return text
    for wide, narrow in _COMMON:
        text = text.replace(wide, narrow)
    return _OTHERS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)


@cache
def marks() -> Marks:
    """Return the compiled patterns of marks.yaml."""
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
