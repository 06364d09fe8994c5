"""Recognisers that a user defines: a regular expression, or a list of words such as the names of a hospital's staff."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from curate.core.config import Section
from curate.core.errors import ConfigError
from curate.core.records import Span
from curate.pii import Recogniser
from curate.pii.text import narrow

KIND = r"^[a-z][a-z0-9_]*$"


class Pattern(Section):
    """A regular expression, matched in the text with full-width letters, digits and signs made narrow."""

    pattern: str = Field(description="a regular expression of Python; a group named `value` marks what is masked")
    kind: str = Field(default="private", pattern=KIND, description="what it is; the placeholder's word")


class CustomWords(Section):
    """Words that are masked wherever they stand; letters or digits may not touch those that begin or end with one."""

    words: list[str] = Field(default=[], description="the words")
    file: Path | None = Field(default=None, description="a text file with more of them, one per line, UTF-8")
    kind: str = Field(default="private", pattern=KIND, description="what they are; the placeholder's word")


def from_pattern(name: str, config: Pattern) -> Recogniser:
    """Return a recogniser for a regular expression; ConfigError if it is none, or matches the empty text."""
    place = f"mask.patterns.{name}.pattern"
    try:
        pattern = re.compile(config.pattern)
    except re.error as error:
        raise ConfigError(f"{place}: no regular expression ({error})") from error
    if pattern.fullmatch(""):
        raise ConfigError(f"{place}: it matches the empty text; ask for at least one character")
    group = "value" if "value" in pattern.groupindex else 0

    def found(text: str) -> list[Span]:
        places = (match.span(group) for match in pattern.finditer(narrow(text)))
        return [Span(start, end, config.kind, name) for start, end in places if end > start >= 0]

    return found


def from_words(name: str, config: CustomWords) -> Recogniser:
    """Return a recogniser for a list of words, longest first; ConfigError if there are none."""
    words = {narrow(word).strip() for word in [*config.words, *_lines(name, config.file)]} - {""}
    if not words:
        raise ConfigError(f"mask.words.{name}: no words; give `words` or a `file` with one per line")
    pattern = re.compile(_trie(words))

    def found(text: str) -> list[Span]:
        return [Span(*match.span(), config.kind, name) for match in pattern.finditer(narrow(text))]

    return found


def _lines(name: str, path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"mask.words.{name}.file: {path} cannot be read ({error}); give a text in UTF-8") from error


def _trie(words: Iterable[str]) -> str:
    """Return a pattern of all words that share their beginnings, so that 10,000 words cost no more than ten.

    `re` tries alternatives one by one; in a tree each place of the text sees only those that still fit.
    """
    root: dict[str, Any] = {}
    for word in words:
        branch = root
        for character in word:
            branch = branch.setdefault(character, {})
        branch[""] = {}
    return _pattern(root, "")


def _pattern(branch: Mapping[str, Any], before: str) -> str:
    ends = [r"(?![A-Za-z0-9])" if _latin(before) else ""] if "" in branch else []
    longer = [
        (r"(?<![A-Za-z0-9])" if not before and _latin(character) else "")
        + re.escape(character)
        + _pattern(rest, character)
        for character, rest in sorted(branch.items())
        if character
    ]
    choices = [*longer, *ends]
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"


def _latin(character: str) -> bool:
    return character.isascii() and character.isalnum()
