"""Masking settings, and user-defined recognisers: regular expressions, or word lists such as staff names."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from curate.core.config import Section, parse_yaml
from curate.core.errors import ConfigError, suggestion
from curate.core.figures import Record, figure
from curate.core.records import Span
from curate.pii import RECOGNISERS, Recogniser
from curate.pii.masking import Masker, Mode, Writer, last_resort, placeholders, writer
from curate.pii.patterns import narrow
from curate.system.resources import data_file

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
    """Return a recogniser for a regular expression; ConfigError if it is invalid or matches the empty text."""
    setting = f"mask.patterns.{name}.pattern"
    try:
        pattern = re.compile(config.pattern)
    except re.error as error:
        raise ConfigError(f"{setting}: no regular expression ({error})") from error
    if pattern.fullmatch(""):
        raise ConfigError(f"{setting}: it matches the empty text; ask for at least one character")
    group = "value" if "value" in pattern.groupindex else 0

    def found(text: str) -> list[Span]:
        extents = (match.span(group) for match in pattern.finditer(narrow(text)))
        return [Span(start, end, config.kind, name) for start, end in extents if end > start >= 0]

    return found


def from_words(name: str, config: CustomWords) -> Recogniser:
    """Return a recogniser for a list of words, longest match first; ConfigError if the list is empty."""
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
    """Return a pattern of all words as a prefix tree, so that 10,000 words cost no more than ten.

    `re` tries alternatives one by one; in a tree, it tries at each position only those that still match.
    """
    root: dict[str, Any] = {}
    for word in words:
        branch = root
        for character in word:
            branch = branch.setdefault(character, {})
        branch[""] = {}
    return _pattern(root, "")


def _pattern(branch: Mapping[str, Any], preceding: str) -> str:
    ends = [r"(?![A-Za-z0-9])" if _latin(preceding) else ""] if "" in branch else []
    longer = [
        (r"(?<![A-Za-z0-9])" if not preceding and _latin(character) else "")
        + re.escape(character)
        + _pattern(subtree, character)
        for character, subtree in sorted(branch.items())
        if character
    ]
    choices = [*longer, *ends]
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"


def _latin(character: str) -> bool:
    return character.isascii() and character.isalnum()


# The recognisers for people to choose from: names, kinds, and what each of them finds.


def examples() -> list[str]:
    """Return fictitious texts with personal data of every kind."""
    texts = parse_yaml(data_file("pii/examples.yaml").read_text(encoding="utf-8"))
    assert isinstance(texts, list)
    return texts


class RecogniserRow(Record, schema_name="row"):
    """A row per recogniser of personal data."""

    recogniser: str = figure("its name")
    kind: str = figure("kinds of what it matches in examples")
    finds: str = figure("what it matches")


def listing() -> list[RecogniserRow]:
    """Return a row per recogniser: name, kinds of its spans in the examples, first sentence of its docstring."""
    texts, rows = examples(), []
    for name in RECOGNISERS.names():
        recogniser = RECOGNISERS.load(name)
        kinds = sorted({span.kind for text in texts for span in recogniser(text)})
        sentence = (inspect.getdoc(recogniser) or "-").splitlines()[0].removeprefix("Return ")
        rows.append(RecogniserRow(name, ", ".join(kinds) or "-", sentence))
    return rows


# What is masked and how: the settings that the stage and `curate anonymise` share, and the masker they describe.


class Masking(Section):
    """What is looked for, and what is written in its place."""

    recognisers: list[str] | None = Field(default=None, description="names of recognisers; all without it")
    without: list[str] = Field(default=[], description="names of recognisers that are left out")
    patterns: dict[str, Pattern] = Field(default={}, description="regular expressions of your own, by name")
    words: dict[str, CustomWords] = Field(default={}, description="lists of words of your own, by name")
    mode: Mode = Field(default="placeholder", description="placeholder, pseudonym or tag (of the same length)")
    placeholders: Literal["zh", "en"] | None = Field(
        default=None, description="language of the placeholders; without it that of each text"
    )

    @property
    def names(self) -> list[str]:
        """Return the names of the enabled recognisers; ConfigError for an unknown name."""
        available = RECOGNISERS.names()
        for name in [*(self.recognisers or ()), *self.without]:
            if name not in available:
                raise ConfigError(f"unknown recogniser {name!r}: {suggestion(name, available)}")
        return [
            name for name in (available if self.recognisers is None else self.recognisers) if name not in self.without
        ]


def recognisers(config: Masking) -> Sequence[Recogniser]:
    """Return the enabled recognisers, user-defined ones last; ConfigError for an invalid pattern or word list."""
    return [*map(RECOGNISERS.load, config.names), *_custom_recognisers(config)]


def checked(config: Masking) -> None:
    """Raise the errors of `recognisers` without importing the packaged ones, which takes a second and cannot fail."""
    for name in config.names:
        if name not in RECOGNISERS.builtin:
            RECOGNISERS.load(name)
    _custom_recognisers(config)


def _custom_recognisers(config: Masking) -> list[Recogniser]:
    patterns = (from_pattern(name, pattern) for name, pattern in config.patterns.items())
    return [*patterns, *(from_words(name, word) for name, word in config.words.items())]


def masker(config: Masking, language: str, key: bytes) -> Masker:
    """Return the masker of these settings; pseudonyms depend on `key`.

    The placeholders are in the language of each text, or in `language` for a text without letters, unless the settings
    fix the language.
    """
    spoken = config.placeholders or language
    by_script: dict[str | None, tuple[Writer, Writer]] = {
        code: (writer(config.mode, code, key), last_resort(code)) for code in ("zh", "en") if not config.placeholders
    }
    write, placeholder = writer(config.mode, spoken, key), last_resort(spoken)
    return Masker(recognisers(config), write, placeholder, untouched(config), by_script)


def untouched(config: Masking) -> re.Pattern[str]:
    """Return the pattern of all placeholders, including those of user-defined kinds."""
    custom: list[Pattern | CustomWords] = [*config.patterns.values(), *config.words.values()]
    return placeholders(entry.kind for entry in custom)
