"""Say what in a text looks like an attack on a prompt: orders to a grader, role tokens, markers, hidden Unicode.

A flag is no verdict: nothing is left out or changed because of one. It is written down, so that somebody can look.
What is looked for stands in suspicion.yaml.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from curate.config import Section, check, read_yaml
from curate.resources import data_file

HIDDEN = "hidden"
"""The flag of characters that show nothing; the others are the keys of `flags` in the file."""

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
    lookalikes: Mapping[str, str]


@dataclass(frozen=True)
class _Patterns:
    names: tuple[str, ...]
    words: tuple[tuple[str, str, re.Pattern[str]], ...]
    """Word, flag, pattern: the pattern is tried on texts that have the word."""
    gate: re.Pattern[str]
    """Finds any of the words: one search is faster than many in texts that are not ASCII, which mostly have none."""
    hidden: re.Pattern[str]
    unseen: re.Pattern[str]
    foreign: re.Pattern[str]
    lookalikes: Mapping[int, str]


def flags(text: str) -> tuple[str, ...]:
    """Return the names of what is suspicious in a text, in the order of the file, `hidden` last; mostly none."""
    patterns = _patterns()
    plain, hidden = text, False
    if patterns.unseen.search(text):
        hidden = patterns.hidden.search(text) is not None
        plain = patterns.unseen.sub("", text.translate(_TAGS))
    plain = _plain(plain)
    found = _found(plain, patterns)
    if patterns.foreign.search(plain):
        found |= _found(plain.translate(patterns.lookalikes), patterns)
    names = tuple(name for name in patterns.names if name in found)
    return (*names, HIDDEN) if hidden else names


def _found(plain: str, patterns: _Patterns) -> set[str]:
    if not (plain.isascii() or patterns.gate.search(plain)):
        return set()
    tried = {pattern: name for word, name, pattern in patterns.words if word in plain}
    return {name for pattern, name in tried.items() if pattern.search(plain)}


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    for wide, narrow in _COMMON:
        text = text.replace(wide, narrow)
    return _OTHERS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text).lower()


@cache
def _patterns() -> _Patterns:
    path = data_file("suspicion.yaml")
    file = check(_File, read_yaml(path), str(path))
    rules = [
        (name, rule.needs, re.compile(rule.pattern, re.MULTILINE))
        for name, rules in file.flags.items()
        for rule in rules
    ]
    words = tuple((word, name, pattern) for name, needs, pattern in rules for word in needs)
    return _Patterns(
        names=tuple(file.flags),
        words=words,
        gate=re.compile("|".join(re.escape(word) for word, _, _ in words)),
        hidden=re.compile(f"{file.hidden.alone}|{file.hidden.several}"),
        unseen=re.compile(file.hidden.any),
        foreign=re.compile(f"[{''.join(file.lookalikes)}]"),
        lookalikes=str.maketrans(dict(file.lookalikes)),
    )
