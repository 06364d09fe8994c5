"""Patterns shared by recognisers: characters, digits, separators, and triggers, which select the texts to scan."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, TypeVar

from curate.core.records import Span

Found = TypeVar("Found", bound=Callable[[str], list[Span]])

ALONE = r"(?<![0-9])(?<!(?<![0-9])0\.)"
"""Lookbehind: no digit, and no decimal point of a number below 1. Letters are permitted: `tel138...`, `wx138...`."""
ENDED = r"(?![0-9])"

CHINESE = "[\u3400-\u9fff\U00020000-\U0003ffff]"
"""A Chinese character; a prerequisite of the triggers of Chinese names and places, which excludes most other texts."""
FULL_WIDTH = "[\uff21-\uff3a\uff41-\uff5a]"
"""A full-width letter, for triggers of words in Latin letters: a text that has one is looked at whole."""
_WIDE = re.compile(
    "[\u00a0\u2007\u202f\u2010-\u2015\u2212\u3000\uff05\uff08\uff09\uff0b\uff0d\uff0e\uff10-\uff19\uff20-\uff3f\uff41-\uff5a]"
)
_CHINESE = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]{2,}")
_SPACES, _DASHES = "\u00a0\u2007\u202f\u3000", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


def trigger(*patterns: str, needs: str | Sequence[str] = ()) -> Callable[[Found], Found]:
    r"""Return a decorator that attaches triggers: each text with a span of the recogniser matches one of them."""
    prefix = (needs,) if isinstance(needs, str) else tuple(needs)
    chains = tuple((*prefix, pattern) for pattern in patterns)

    def mark(recogniser: Found) -> Found:
        recogniser.triggers = (*chains, *getattr(recogniser, "triggers", ()))  # type: ignore[attr-defined]
        return recogniser

    return mark


@lru_cache(maxsize=8)  # every recogniser asks for the same text
def narrow(text: str) -> str:
    """Return the text with full-width letters, digits, signs, dashes and spaces in ASCII; offsets are unchanged."""
    return _WIDE.sub(_narrow, text)


def _narrow(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SPACES:
        return " "
    return "-" if character in _DASHES else chr(ord(character) - 0xFEE0)


def script(text: str) -> Literal["zh", "en"] | None:
    """Return zh if a text has at least one Chinese character per four Latin words, else en.

    None for a text without either, such as a number.
    """
    chinese, latin = len(_CHINESE.findall(text)), len(_LATIN.findall(text))
    if not chinese and not latin:
        return None
    return "zh" if 4 * chinese >= latin else "en"


# Digits in every form, the separators between them, and the triggers of recognisers of numbers.

_NUMERALS = ("零〇○洞", "一壹幺弌", "二贰貳两兩弍", "三叁參叄弎", "四肆", "五伍", "六陆陸", "七柒拐", "八捌", "九玖勾")
_ZEROS = (0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x660, 0x6F0, 0x966)
"""Code points of the digit 0 in runs of ten digits: mathematical, Arabic, Persian, Devanagari."""
_ONES = (0x2460, 0x2776, 0x2780, 0x278A, 0x24F5)
"""Code points of the digit 1 in runs of circled digits."""
VALUES = {
    **{character: str(digit) for digit, same in enumerate(_NUMERALS) for character in same},
    **{chr(zero + digit): str(digit) for zero in _ZEROS for digit in range(10)},
    **{chr(one + offset): str(offset + 1) for one in _ONES for offset in range(9)},
    **dict.fromkeys("⓪⓿", "0"),
}
_TABLE = str.maketrans(VALUES)

SPACE = " \t\u2000-\u200d\u2060\ufeff"
"""Spaces that `narrow` retains, including zero-width ones; content of a character class, like the next constants."""
DASH = "\u2500\u2501\u30fc\ufe58\ufe63\\-"
DOT = "·•・‧∙⋅_"
_BETWEEN = f"{SPACE}{DASH}{DOT}./,，、*|~()（）【】．\u00a0\u2007\u202f\u3000\u2010-\u2015\u2212＿－\ufe0f\u20e3"
_GAP = f"[{_BETWEEN}]{{0,6}}"
"""Up to six separators between digits; all triggers share it, so that their union is one small automaton."""
DIGIT = f"[0-9０-９{''.join(VALUES)}]"
DECIMAL = f"[0-9０-９{''.join(filter(str.isdecimal, VALUES))}]"
"""A decimal digit of any script; without numerals and circled digits."""
_HIDDEN = "＊●×ΧХXxＸｘ"
"""Characters for a hidden digit, or for the check character X."""
THREE_DIGITS = f"{DIGIT}[{_BETWEEN}{_HIDDEN}]*{DIGIT}[{_BETWEEN}{_HIDDEN}]*{DIGIT}"
"""Trigger of numbers: three digits of any form, with any separators between them."""
_SIGN = "A-Za-z0-9Ａ-Ｚａ-ｚ０-９"
TWO_SIGNS = f"[{_SIGN}][{_SIGN}_.*/＿．／＊＼\u2010-\u2015\u2212－-]"
"""Trigger of codes, ids and Latin names: a letter or digit and one more character. One text in five matches."""
NINE = f"{DIGIT}(?:{_GAP}{DIGIT}){{8}}"
"""Trigger of numbers that no word precedes; these have at least nine digits."""


@lru_cache(maxsize=4)
def digits(text: str) -> str:
    """Return the narrowed text with each digit or numeral of any script replaced by 0 to 9; offsets are unchanged."""
    return narrow(text).translate(_TABLE)


# Numbers that follow a word for them, such as `住院号：00123` and `Passport No. E12345678`.

_SPOKEN_DIGITS = ("零〇○", "一壹幺", "二贰貳", "三叁參", "四肆", "五伍", "六陆陸", "七柒", "八捌", "九玖")
NUMERALS = "".join(_SPOKEN_DIGITS)
_SPOKEN = str.maketrans({numeral: str(digit) for digit, numerals in enumerate(_SPOKEN_DIGITS) for numeral in numerals})
_SPOKEN_RUN = re.compile(f"[{NUMERALS}](?:[{SPACE}._/·-]{{0,3}}[{NUMERALS}]){{4,}}")
RAW_SPACE = f"{SPACE}\u00a0\u202f\u3000"


@lru_cache(maxsize=8)
def readings(text: str) -> tuple[str, ...]:
    """Return the text after `narrow` and, if it spells digits in Chinese, a copy with digits; offsets are unchanged."""
    plain = narrow(text)
    spoken = _SPOKEN_RUN.sub(lambda run: run[0].translate(_SPOKEN), plain)
    return (plain,) if spoken == plain else (plain, spoken)
