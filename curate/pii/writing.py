"""What is written in the place of personal data: a placeholder, a made-up value, or a tag of the same length."""

import hashlib
import hmac
import re
from collections.abc import Callable
from functools import partial
from typing import Literal

from curate.pii.kinds import placeholder, tag
from curate.pii.masking import Writer
from curate.pii.text import narrow

Mode = Literal["placeholder", "pseudonym", "tag"]

_NUMBER = re.compile(r"[+\d\s()./·-]+[xX]?", re.ASCII)
_SEPARATORS = re.compile(r"[\s()./·-]+")
_COUNTRY = re.compile(r"^(?:\+86|0086)")
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_SURNAMES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕"
_STEMS = "甲乙丙丁戊己庚辛壬癸"


def writer(mode: Mode, language: str, key: bytes) -> Writer:
    """Return what writes in that mode; pseudonyms are drawn by `key`, kinds without any get placeholders."""
    if mode == "tag":
        return lambda kind, value: tag(kind, language, len(value))
    return partial(_pseudonym, language, key) if mode == "pseudonym" else last_resort(language)


def last_resort(language: str) -> Writer:
    """Return what writes placeholders."""
    return lambda kind, _value: placeholder(kind, language)


def link(key: bytes, kind: str, value: str) -> str:
    """Return 16 hexadecimal digits that are equal for equal values, however written; without the key they say nothing.

    HMAC-SHA-256, cut to 64 bits.
    """
    return _draw(key, kind, value)[:16]


def _pseudonym(language: str, key: bytes, kind: str, value: str) -> str:
    make = PSEUDONYMS.get(kind)
    return placeholder(kind, language) if make is None else make(int(_draw(key, kind, value), 16))


def _draw(key: bytes, kind: str, value: str) -> str:
    same = narrow(value).casefold()
    if _NUMBER.fullmatch(same):
        same = _COUNTRY.sub("", _SEPARATORS.sub("", same))
    return hmac.new(key, f"{kind}\0{same}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _phone(number: int) -> str:
    return f"12{number % 10**9:09d}"


def _email(number: int) -> str:
    return f"user{number % 10**9:09d}@mail.invalid"


def _id_card(number: int) -> str:
    year, number = 1950 + number % 60, number // 60
    month, number = 1 + number % 12, number // 12
    return f"000000{year}{month:02d}{1 + number % 28:02d}{number // 28 % 10**4:04d}"


def _plate(number: int) -> str:
    letter = "ABCDEFGH"[number // 31 % 8]
    return f"{_PROVINCES[number % 31]}{letter}I{number // 248 % 10**4:04d}"


def _name(number: int) -> str:
    surname, number = _SURNAMES[number % len(_SURNAMES)], number // len(_SURNAMES)
    return f"{surname}某{_STEMS[number % 10]}"


PSEUDONYMS: dict[str, Callable[[int], str]] = {
    "phone": _phone,
    "email": _email,
    "id_card": _id_card,
    "plate": _plate,
    "name": _name,
}
"""Kind -> what makes a value that nobody has, and that no recogniser takes for one: numbers from 12 on are no mobile's
(recommendation of the numbering plan of China), `.invalid` is reserved (RFC 2606), no region is called 000000, plates
have no letter I, and 某 says that a name is none. Other kinds have no such range and get placeholders."""
