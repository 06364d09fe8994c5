"""Common patterns and helpers of all recognisers."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, TypeVar

from curate.core.records import Span

Found = TypeVar("Found", bound=Callable[[str], list[Span]])

ALONE = r"(?<![0-9])(?<!(?<![0-9])0\.)"
"""Lookbehind: neither a digit nor the start of a decimal below 1. Letters are permitted: `tel138...`, `wx138...`."""
ENDED = r"(?![0-9])"

CHINESE = "[\u3400-\u9fff\U00020000-\U0003ffff]"
"""Needed by the triggers of Chinese names, places and words; it rules out most texts of other languages."""
RAW_DASH = "[-\u2010-\u2015\u2212\uff0d]"
"""A dash in a raw text, for triggers."""
_WIDE = re.compile(
    "[\u00a0\u2007\u202f\u2010-\u2015\u2212\u3000\uff05\uff08\uff09\uff0b\uff0d\uff0e\uff10-\uff19\uff20-\uff3f\uff41-\uff5a]"
)
_CHINESE = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]{2,}")
_SPACES, _DASHES = "\u00a0\u2007\u202f\u3000", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


def trigger(*patterns: str, needs: str | Sequence[str] = ()) -> Callable[[Found], Found]:
    r"""Mark a recogniser with patterns of which one occurs in every text in which it finds anything.

    Masking skips all other texts, thousands at a time. So Python's `re` and Rust's `regex` both match the patterns: no
    look-around, no back reference; `\d` means digits of every script in both. They see the text as it was written,
    full-width letters and digits included. Each is a scan of its own, and a scan that several recognisers share is done
    once. What a pattern `needs` are others that occur wherever it does, cheap ones: the pattern is only looked for
    where those were found, one after the other. A recogniser without a trigger is asked about every text; several
    triggers add up.

    What makes a scan fast, in this order: a dozen words or less, which are found by their bytes (1-4 GB/s); one
    automaton of few states (400 MB/s). Many words at the front or counted gaps in one pattern make it slow.
    """
    prefix = (needs,) if isinstance(needs, str) else tuple(needs)
    chains = tuple((*prefix, pattern) for pattern in patterns)

    def mark(recogniser: Found) -> Found:
        recogniser.triggers = (*chains, *getattr(recogniser, "triggers", ()))  # type: ignore[attr-defined]
        return recogniser

    return mark


@lru_cache(maxsize=8)  # every recogniser asks for the same text
def narrow(text: str) -> str:
    """Return the text with full-width letters, digits, signs, dashes and spaces in ASCII; every offset stays."""
    return _WIDE.sub(_narrow, text)


def _narrow(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SPACES:
        return " "
    return "-" if character in _DASHES else chr(ord(character) - 0xFEE0)


def script(text: str) -> Literal["zh", "en"] | None:
    """Return zh for a text with at least a Chinese character to every fourth word in Latin letters, else en.

    None for a text without either, such as a number alone.
    """
    chinese, latin = len(_CHINESE.findall(text)), len(_LATIN.findall(text))
    if not chinese and not latin:
        return None
    return "zh" if 4 * chinese >= latin else "en"
