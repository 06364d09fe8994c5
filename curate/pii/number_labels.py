"""Patterns for numbers that follow a word for them, such as `住院号：00123` and `Passport No. E12345678`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from curate.pii.patterns import narrow
from curate.pii.words import longest_first

_DIGITS = {
    "0": "零〇○",
    "1": "一壹幺",
    "2": "二贰貳",
    "3": "三叁參",
    "4": "四肆",
    "5": "五伍",
    "6": "六陆陸",
    "7": "七柒",
    "8": "八捌",
    "9": "九玖",
}
NUMERALS = "".join(_DIGITS.values())
_SPOKEN = str.maketrans({numeral: digit for digit, numerals in _DIGITS.items() for numeral in numerals})
_TRADITIONAL = dict(
    zip(
        "号证码编护历诊门检医银账户标条乡来台湾驾驶国体统样报单处脑镜产别档识试验参险储汇转邮农业军结线内肠妇",
        "號證碼編護歷診門檢醫銀賬戶標條鄉來臺灣駕駛國體統樣報單處腦鏡產別檔識試驗參險儲匯轉郵農業軍結線內腸婦",
        strict=True,
    )
)

SPACE = " \t\u2000-\u200d\u2060\ufeff"
"""Spaces in a text after `narrow`, including zero-width ones; content of a character class."""
_SPOKEN_RUN = re.compile(f"[{NUMERALS}](?:[{SPACE}._/·-]{{0,3}}[{NUMERALS}]){{4,}}")
RAW_SPACE = f"{SPACE}\u00a0\u202f\u3000"
GAP = f"[{SPACE}._/·-]{{0,3}}"
"""Pattern of the separator between the groups of a long number."""
RAW_DASH = "－‐-―−-"
RAW_GAP = f"[{RAW_SPACE}.．_＿/·{RAW_DASH}]{{0,3}}"
LINKS = (
    rf"字?号码?|字?號碼?|编号|編號|码|碼|[{SPACE}\r\n]|是|为|為|第|卡号|卡號|[Ii][Dd](?![A-Za-z])|[:：=＝#＃№\"“”'’‘】>|._()-]"
    r"|[Nn][Oo]\.?|[Nn]umber|[Ii][Ss](?![A-Za-z])"
)
LINK = f"(?:{LINKS}){{0,8}}"
"""Pattern between a word and its number; it does not match a closing `]`, which may end a placeholder."""
CODE = r"(?:[A-Za-z]{1,6}-?)?[0-9][A-Za-z0-9]{0,29}(?:-[A-Za-z0-9]{1,12}){0,3}(?![A-Za-z0-9])"
"""Pattern of a person's number in a register, including its letters and dashes."""
_PERHAPS_SPACE = f"[{RAW_SPACE}]?"
WORD_ENDED = r"(?![A-Za-z0-9])"

_ANOTHER = re.compile(
    r"(?:[号號编編单單批字型款株]|(?<![联聯])系|(?<![号號])[码碼]|[Nn][Oo]|LOT|Lot|lot|S/?N|I[DM]E?I?|[A-Za-z]-|[#№])"
    rf"[{SPACE}:：=.(（\"“]{{0,4}}\Z"
)


def loosely(entries: Iterable[str]) -> str:
    """Return a pattern for any of the words, also for triggers: in any case, full-width, traditional or spaced."""
    return "|".join(map(_word, longest_first(entries)))


def labelled(entries: Iterable[str], value: str, link: str = LINK) -> re.Pattern[str]:
    """Return a pattern for one of the words followed by `value`; a Latin word does not match within a longer one."""
    either = [f"{'(?<![A-Za-z])' * word[0].isascii()}{_word(word)}" for word in longest_first(entries)]
    first = "".join(sorted({variant for word in entries for variant in _variants(word[0])}))
    # the lookahead tests a position once instead of once per word
    return re.compile(f"(?=[{first}])(?:{'|'.join(either)}){link}(?P<value>{value})")


def _word(word: str) -> str:
    return "".join(map(_sign, word)).removeprefix(_PERHAPS_SPACE)


def _sign(character: str) -> str:
    if character == " ":
        return _PERHAPS_SPACE
    variants = _variants(character)
    apart = _PERHAPS_SPACE * (not character.isascii())
    return f"{apart}[{variants}]" if len(variants) > 1 else f"{apart}{re.escape(character)}"


def _variants(character: str) -> str:
    """Return a character with its variants: case, full width, traditional form."""
    if character.isascii() and character.isalpha():
        small, capital = character.lower(), character.upper()
        return f"{small}{capital}{chr(ord(small) + 0xFEE0)}{chr(ord(capital) + 0xFEE0)}"
    return character + _TRADITIONAL.get(character, "")


@lru_cache(maxsize=8)
def readings(text: str) -> tuple[str, ...]:
    """Return the text after `narrow` and, if it spells digits in Chinese, a copy with digits; offsets are unchanged."""
    plain = narrow(text)
    spoken = _SPOKEN_RUN.sub(lambda run: run[0].translate(_SPOKEN), plain)
    return (plain,) if spoken == plain else (plain, spoken)


def matches(patterns: Sequence[re.Pattern[str]], text: str) -> Iterator[re.Match[str]]:
    """Yield every match of the patterns in every reading of the text (see `readings`)."""
    for reading in readings(text):
        for pattern in patterns:
            yield from pattern.finditer(reading)


def another(text: str, start: int) -> bool:
    """Return whether a word for another kind of number ends at an offset: 订单号, 批号, 型号, No., SN."""
    return _ANOTHER.search(text[max(0, start - 10) : start]) is not None
