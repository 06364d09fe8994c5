"""Texts as judges are shown them: whole, or cut at the end of a sentence above a limit of tokens.

The digest of what is shown is the key of its ratings, so a cut text is another passage than the whole one, and an
uncut text keeps the key that it always had. Nothing is added to a cut text: what a reader sees is the document's own.
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
"""Tokens that the dearest code point needs: with a lower limit nothing could be shown."""

_CHARACTERS_A_TOKEN = 8
"""No text has more on the average but one of blanks, which the estimate counts as nothing and vendors do not."""
_KEPT = 0.5
"""A sentence or clause ends the text only if it keeps this share of what fits: after a short first sentence may follow
one that never ends."""
_BACK = 64
"""Code points to go back at most for the beginning of a word or a combining sequence."""

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
    """A text as shown, and what the ledger keeps of it."""

    text: str
    digest: str
    """SHA-256 of the text as shown."""
    tokens: int
    """Estimate for the text as shown."""
    whole_tokens: int
    """Estimate for the whole text."""
    cut: bool
    """True if the whole text is longer than what is shown."""
    flags: tuple[str, ...]
    """What is suspicious in the text as shown; see curate/llm/prompt_injection/."""


def shown(document: Document, limit: int | None) -> ShownText:
    """Return title and body as a judge is shown them, in at most `limit` tokens; None shows all."""
    return bounded(document.shown(), limit)


def bounded(text: str, limit: int | None) -> ShownText:
    """Return a text, a query for example, in at most `limit` tokens; ValueError for a limit in which nothing fits."""
    kept = cut(text, limit)
    return _passage(text, kept, flags(kept))


def bounded_all(texts: Sequence[str], limit: int | None) -> list[ShownText]:
    """Return many texts as a judge is shown them, in order: the same as `bounded` of each, but faster."""
    kept = [cut(text, limit) for text in texts]
    return [_passage(*each) for each in zip(texts, kept, sieve.flags_all(kept), strict=True)]


def _passage(text: str, kept: str, found: tuple[str, ...]) -> ShownText:
    whole, shorter = tokens(text), len(kept) < len(text)
    return ShownText(kept, text_digest(kept), tokens(kept) if shorter else whole, whole, shorter, found)


def cut(text: str, limit: int | None) -> str:
    """Return what is shown of a text in at most `limit` tokens; ValueError for a limit in which nothing fits."""
    if limit is not None and limit < LEAST:
        raise ValueError(f"expected a limit of at least {LEAST} tokens, found {limit}")
    if limit is None or LEAST * len(text) <= limit:  # most texts are that short, and to estimate takes time
        return text
    return text[: _end(text, tokens(text), limit)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order, as `cut` knows them; joined they are the text without its edges."""
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return [each for start, end in pairwise(ends) if (each := text[start:end].strip())]


def _end(text: str, whole: int, limit: int) -> int:
    """Return how many code points are shown."""
    fits = limit * _CHARACTERS_A_TOKEN
    if whole <= limit and len(text) <= fits:
        return len(text)
    # The estimate never falls when a text grows, so the longest that fits is found by halving.
    fits = min(fits, len(text))
    fits = bisect_right(range(1, fits + 1), limit, key=lambda end: tokens(text[:end]))
    for pattern in (_SENTENCE_END, _CLAUSE_END):
        found = pattern.finditer(text, int(fits * _KEPT), fits + _BACK)
        ends = [match.end() for match in takewhile(lambda match: match.end() <= fits, found)]
        if ends:
            return ends[-1]
    for inside in (_inside_word, _inside_sequence):
        for end in range(fits, max(fits - _BACK, 0), -1):
            if not inside(text, end):
                return end
    return fits


def _inside_word(text: str, place: int) -> bool:
    """Say whether a place is within a word or a character, or behind a blank that may as well go."""
    before, after = text[place - 1], text[place]
    return before.isspace() or _inside_sequence(text, place) or (_spaced(before) and _spaced(after))


def _inside_sequence(text: str, place: int) -> bool:
    """Say whether the code points on both sides of a place are shown as one character."""
    before, after = text[place - 1], text[place]
    joined = unicodedata.category(after) in _JOINING or before in _JOINERS or "\u1160" <= after <= "\u11ff"
    return joined or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")


def _spaced(character: str) -> bool:
    return character.isalnum() and (ord(character) < _SPACED or "\uac00" <= character <= "\ud7a3")
