"""Telephone numbers in characters other than 0 to 9, or with separators between all digits.

Chinese numerals in plain, financial and radio form (一 壹 幺, 零 〇 洞), circled and mathematical digits, keycaps, the
letters O and l among digits: 一三八零零一三八零零零, 138零零一三八零零零, 1-3-8-0-0-1-3-8-0-0-0, 138OO138OOO.
"""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import NINE, THREE_DIGITS, TWO_SIGNS, VALUES, digits, narrow, trigger
from curate.pii.recognisers.phone import AFTER_WORD, ANY, CHINA, landlines, personal
from curate.pii.spans import apart

_QUANTITY = "十百千万亿拾佰仟萬億第"

_WRITTEN = re.compile(rf"(?:{CHINA})?1{ANY}[3-9](?:{ANY}\d){{9}}", re.ASCII)
_BETWEEN = r"[ \t\-./·•・_,，、|*~\u2000-\u200d\ufe0f\u20e3]"
_SAME = rf"(?P<s>{_BETWEEN}{{1,3}})"
_APART = re.compile(
    rf"(?<![0-9])(?<![0-9]{_BETWEEN})(?:1{_SAME}[3-9](?:(?P=s)[0-9]){{9}}"
    rf"|\(?0(?:10|2[0-57-9]|[3-9][0-9]{{2}})\)?-?(?P<t>[2-9](?P<u>{_BETWEEN})[0-9](?:(?P=u)[0-9]){{5,6}})"
    rf"|0(?P<v>{_BETWEEN})[1-9](?:(?P=v)[0-9]){{8,10}})(?![0-9]|{_BETWEEN}{{1,2}}[0-9])(?:\ufe0f?\u20e3)?"
)
_LETTERS = re.compile(r"(?<![A-Za-z0-9])[1lI][3-9][0-9OolI]{9}(?![A-Za-z0-9])")


@trigger(NINE, AFTER_WORD, needs=THREE_DIGITS)
@trigger("[1lI１ｌＩ][3-9３-９][0-9OolI０-９ＯｏｌＩ]{9}", needs=TWO_SIGNS)
def spoken(text: str) -> list[Span]:
    """Return mobile and landline numbers in numerals, with letters for digits, or with all digits separated."""
    return apart(Span(start, end, "phone", "spoken") for start, end in [*_numerals(text), *_spelt(text)])


def _numerals(text: str) -> Iterator[tuple[int, int]]:
    plain = digits(text)
    for match in _WRITTEN.finditer(plain):
        start, end = match.span()
        if _is_spoken_number(text[start:end], 1) and _stands_alone(text, start, end) and personal(plain, start, end):
            yield start, end
    for start, end in landlines(plain):
        if _is_spoken_number(text[start:end], 4):
            yield start, end


def _is_spoken_number(number: str, least: int) -> bool:
    """Return whether numerals are a number, and not a dash (1500一2500) or a list (一三五、二四六)."""
    numerals = [character for character in number if character in VALUES]
    mixed = len(numerals) < len(re.sub(r"[^0-9]", "", digits(number)))
    if len(numerals) < least or (mixed and set(numerals) == {"一"}):
        return False
    groups = [len(group) for group in re.findall("[0-9]+", digits(number))]
    listed = re.search("[,，、]", number) is not None
    return not listed or (not mixed and (groups[-3:] in ([3, 4, 4], [4, 3, 4]) or set(groups) == {1}))


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether no further digits touch a number; one numeral may (一天), unless it makes a quantity."""
    before, after = digits(text[max(0, start - 2) : start]), digits(text[end : end + 2])
    if text[end : end + 1] in _QUANTITY and end < len(text):
        return False
    touching = [text[start - 1 : start], text[end : end + 1]]
    if any(character.isascii() and character.isdigit() for character in touching):
        return False
    return not (re.fullmatch("[0-9]{2}", before) or re.match(f"[0-9][0-9{_QUANTITY}]", after))


def _spelt(text: str) -> Iterator[tuple[int, int]]:
    narrowed = narrow(text)
    for match in _APART.finditer(narrowed):
        soft = (match["s"] or match["u"] or match["v"])[0] in " \t,，、"
        scores = soft and max(re.findall("[0-9]", match[0])) < "6"
        if not scores and personal(narrowed, *match.span()):
            yield match.span()
    for match in _LETTERS.finditer(narrowed):
        if len(re.findall("[0-9]", match[0])) in range(5, 11):
            yield match.span()
