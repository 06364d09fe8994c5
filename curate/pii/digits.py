"""Digits in every form, the separators between them, and the triggers of recognisers of numbers."""

from functools import lru_cache

from curate.pii.text import narrow

_NUMERALS = ("零〇○洞", "一壹幺弌", "二贰貳两兩弍", "三叁參叄弎", "四肆", "五伍", "六陆陸", "七柒拐", "八捌", "九玖勾")
_ZEROS = (0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x660, 0x6F0, 0x966)
"""Zeros of runs of ten digits: mathematical ones, Arabic, Persian, Devanagari."""
_ONES = (0x2460, 0x2776, 0x2780, 0x278A, 0x24F5)
"""Ones of runs of circled digits."""
VALUES = {
    **{character: str(digit) for digit, same in enumerate(_NUMERALS) for character in same},
    **{chr(zero + digit): str(digit) for zero in _ZEROS for digit in range(10)},
    **{chr(one + offset): str(offset + 1) for one in _ONES for offset in range(9)},
    **dict.fromkeys("⓪⓿", "0"),
}
_TABLE = str.maketrans(VALUES)

SPACE = " \t\u2000-\u200d\u2060\ufeff"
"""Spaces that `narrow` leaves, including zero-width ones; content of a character class, as are the next constants."""
DASH = "\u2500\u2501\u30fc\ufe58\ufe63\\-"
DOT = "·•・‧∙⋅_"
_BETWEEN = f"{SPACE}{DASH}{DOT}./,，、*|~()（）【】．\u00a0\u2007\u202f\u3000\u2010-\u2015\u2212＿－\ufe0f\u20e3"
_GAP = f"[{_BETWEEN}]{{0,6}}"
"""Any separator between digits in any pattern; triggers share it, so that their union stays one small automaton."""
DIGIT = f"[0-9０-９{''.join(VALUES)}]"
DECIMAL = f"[0-9０-９{''.join(filter(str.isdecimal, VALUES))}]"
"""Without numerals, and circled digits."""
_HIDDEN = "＊●×ΧХXxＸｘ"
"""Characters for a hidden digit, or for the check digit X."""
THREE_DIGITS = f"{DIGIT}[{_BETWEEN}{_HIDDEN}]*{DIGIT}[{_BETWEEN}{_HIDDEN}]*{DIGIT}"
"""Trigger of numbers: three digits of any form, with any sign between them."""
_SIGN = "A-Za-z0-9Ａ-Ｚａ-ｚ０-９"
TWO_SIGNS = f"[{_SIGN}][{_SIGN}_.*/＿．／＊＼\u2010-\u2015\u2212－-]"
"""Trigger of codes, ids and names in Latin letters: a letter or digit and one more sign. One text in five has it."""
NINE = f"{DIGIT}(?:{_GAP}{DIGIT}){{8}}"
"""Trigger of numbers without a word in front, which have at least nine digits."""


@lru_cache(maxsize=4)
def digits(text: str) -> str:
    """Return the text in half width with each digit or numeral of any script replaced by 0 to 9; offsets stay valid."""
    return narrow(text).translate(_TABLE)
