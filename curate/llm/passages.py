"""Passages are texts as judges read them: complete, or truncated at the end of a sentence to a limit of tokens.

The digest of a passage is the key of its ratings, so a truncated text and the complete one have separate ratings; the
key of a complete text does not depend on the limit. Nothing is added to a truncated text.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from curate.core.config import text_digest
from curate.core.records import Document
from curate.llm.cost import tokens
from curate.llm.prompt_injection import flags, sieve

LEAST = 2
"""Maximum tokens of a code point: a lower limit might leave no text."""

_CHARACTERS_A_TOKEN = 8
"""More than any text has on average, but one of blanks, which the estimate does not count and providers do."""
_KEPT = 0.5
"""The text ends with a sentence or clause only if at least this share of what fits is left; else one long sentence
after a short first one would be dropped."""
_BACK = 64
"""Maximum code points to go back to the start of a word or a combining sequence."""

_CLOSERS = r"""["'’”»)\]}）】」』》〉〕］｝]{0,4}+"""
_SENTENCE_END = re.compile(
    rf"[。！？；｡．…‼⁇⁈⁉۔؟।॥።།။។]{{1,8}}+{_CLOSERS}|[.!?]{{1,4}}+{_CLOSERS}(?=\s|\Z)|[^\n](?=\n)"
)
_CLAUSE_END = re.compile(rf"[，、：،؛､]{_CLOSERS}|[,;:]{_CLOSERS}(?=\s)|(?<=\s)[–—-](?=\s)|——")
_JOINERS = frozenset("\u200c\u200d")
_JOINING = frozenset({"Mn", "Mc", "Me", "Cf", "Sk"})
_SPACED = 0x0E00
"""Scripts below this code point, and Hangul, write spaces between words."""


@dataclass(frozen=True)
class ShownText:
    """A passage and the facts on it that the ledger stores."""

    text: str
    digest: str
    """SHA-256 of the passage."""
    tokens: int
    """Estimated tokens of the passage."""
    whole_tokens: int
    """Estimated tokens of the complete text."""
    cut: bool
    """True if the complete text is longer."""
    flags: tuple[str, ...]
    """Flags of prompt injection in the passage; see curate/llm/prompt_injection/."""


def shown(document: Document, limit: int | None) -> ShownText:
    """Return the passage of title and body, in at most `limit` tokens; None for no limit."""
    return bounded(document.shown(), limit)


def bounded(text: str, limit: int | None) -> ShownText:
    """Return the passage of a text, such as a query, in at most `limit` tokens; ValueError if it is below `LEAST`."""
    shortened = cut(text, limit)
    return _passage(text, shortened, flags(shortened))


def bounded_all(texts: Sequence[str], limit: int | None) -> list[ShownText]:
    """Return `bounded` of each text, in order, but faster."""
    shortened = [cut(text, limit) for text in texts]
    return list(map(_passage, texts, shortened, sieve.flags_all(shortened)))


def _passage(text: str, shortened: str, text_flags: tuple[str, ...]) -> ShownText:
    text_tokens, is_cut = tokens(text), len(shortened) < len(text)
    return ShownText(
        text=shortened,
        digest=text_digest(shortened),
        tokens=tokens(shortened) if is_cut else text_tokens,
        whole_tokens=text_tokens,
        cut=is_cut,
        flags=text_flags,
    )


def cut(text: str, limit: int | None) -> str:
    """Return the start of a text in at most `limit` tokens; ValueError for a limit below `LEAST`."""
    if limit is not None and limit < LEAST:
        raise ValueError(f"expected a limit of at least {LEAST} tokens, found {limit}")
    if limit is None or LEAST * len(text) <= limit:  # most texts are that short, and an estimate takes time
        return text
    return text[: _end(text, tokens(text), limit)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, split at the same ends as in `cut` and stripped of white space."""
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return [sentence for start, end in pairwise(ends) if (sentence := text[start:end].strip())]


def _end(text: str, text_tokens: int, limit: int) -> int:
    """Return the length of the start of `text` in at most `limit` tokens; `text_tokens` are those of all of it."""
    fits = limit * _CHARACTERS_A_TOKEN
    if text_tokens <= limit and len(text) <= fits:
        return len(text)
    # the estimate never falls when a text grows, so bisection finds the longest start that fits
    fits = min(fits, len(text))
    fits = bisect_right(range(1, fits + 1), limit, key=lambda end: tokens(text[:end]))
    for pattern in (_SENTENCE_END, _CLAUSE_END):
        matches = pattern.finditer(text, int(fits * _KEPT), fits + _BACK)
        ends = [match.end() for match in takewhile(lambda match: match.end() <= fits, matches)]
        if ends:
            return ends[-1]
    # no sentence or clause ends there: cut between words, else between characters, else anywhere
    for inside in (_inside_word, _inside_sequence):
        for end in range(fits, max(fits - _BACK, 0), -1):
            if not inside(text, end):
                return end
    return fits


def _inside_word(text: str, index: int) -> bool:
    """Return whether a cut before `index` would split a word or a character, or leave a blank at the end."""
    character_before, character_after = text[index - 1], text[index]
    return (
        character_before.isspace()
        or _inside_sequence(text, index)
        or (_spaced(character_before) and _spaced(character_after))
    )


def _inside_sequence(text: str, index: int) -> bool:
    """Return whether a cut before `index` would split a character: marks, joiners, Hangul jamo, surrogates."""
    character_before, character_after = text[index - 1], text[index]
    joined = (
        unicodedata.category(character_after) in _JOINING
        or character_before in _JOINERS
        or "\u1160" <= character_after <= "\u11ff"
    )
    return joined or ("\ud800" <= character_before <= "\udbff" and "\udc00" <= character_after <= "\udfff")


def _spaced(character: str) -> bool:
    return character.isalnum() and (ord(character) < _SPACED or "\uac00" <= character <= "\ud7a3")
