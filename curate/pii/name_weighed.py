"""Names in free text that no single sign vouches for: surname, given name and everything around are weighed together.

A candidate counts for what it gains over the words that would stand there otherwise (`name_lattice`), and for what
stands before and behind it (`name_evidence`): labels, family words, titles, verbs, sex and age, signs, text ends.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from curate.pii.name_evidence import around, evidence
from curate.pii.name_lattice import lattice
from curate.pii.name_words import known, surnames
from curate.pii.names import CJK, is_chinese
from curate.pii.spans import in_order
from curate.pii.text import narrow, trigger
from curate.pii.words import either, one_of
from curate.records import Span

NAME = -6.0
"""How rarely a name stands where a word might (logarithm)."""
_SURNAME = {"sure": -3.5, "plain": -5.0, "doubtful": -7.0, "rare": -8.5}
_GIVEN, _ODD = -6.3, -9.0
"""A character of a given name: one of the list, or any other."""
_SINGLE = -1.0
"""Given names of one character are rarer than those of two."""
_ASKED = 6.0
"""What is also a word, or somebody whom everybody knows, is a name only where a form asks for one, or before an age."""
_BARS = {"full": 5.0, "alone": 3.0}
"""What a whole name, or a surname before a title, must reach."""
_FULL_LEAST, _LEAST, _DOUBTFUL_LEAST = -6.0, -7.5, -10.0
"""Words that explain a whole name, or a surname before a title, this much better are not outweighed by anything."""
_SPAN = 14
"""Characters on either side that the segmentation looks at."""
_EDGE = 2.5
"""A clause begins or ends here."""
_SEX_AGE = re.compile(
    r"[\s,，、;；:：/|(（]{0,3}(?:性别[:：]?)?(?:[男女](?![朋友方人孩儿生士子性])|\d{1,3} ?(?:周?岁|歲|个?月龄|Y\b))"
)
_SEX_LAST = re.compile(r"[男女][,，、;； ]{0,2}\d")
"""李芳男45岁: the name ends before its sex."""
_OPEN = re.compile(r"[\s,，、:：;；|/(（)）\[【\"“'‘「『@#*=_-]{1,4}$")
_SURE_SIGN = re.compile(r"[:：(（@\[【=]")
_CLOSED = re.compile(r"[\s,，、:：;；。.!！?？…~)）\]】\"”'’」』|/\d]|$")
_SEVERAL = re.compile(r"[、,，/和与及] ?$")

_FRONT, _BEHIND = evidence().front, evidence().behind
_CUES = [word for group in ("label", "kin", "role") for word in _FRONT[group].words.split() if word not in "为為系是名"]
_DO = _BEHIND["do"].weight
_TITLES = [word for group in ("title", "short") for word in _BEHIND[group].words.split()]
_SURNAMES = surnames()
_LED = re.compile(rf"{one_of(_CUES)}[\s:：,，、(（)）\[\"“@]{{0,3}}(?=[{_SURNAMES}][{CJK}])")
_TITLE = re.compile(rf"(?<=[{CJK}]) ?(?P<title>{one_of(_TITLES)})")
_AGED = re.compile(rf"(?<=[{CJK}])(?={_SEX_AGE.pattern})")
_FIRST = frozenset(_SURNAMES)


class Weights(NamedTuple):
    """What speaks for a candidate."""

    gain: float
    front: float
    behind: float

    @property
    def total(self) -> float:
        """Return the sum."""
        return self.gain + self.front + self.behind


def surname_weight(surname: str) -> float | None:
    """Return the weight of a surname; None for what is none."""
    if len(surname) == 2:
        return _SURNAME["plain"] - 1 if surname in known().compounds else None
    for group in ("sure", "plain", "doubtful", "rare"):
        if surname in getattr(known(), group):
            return _SURNAME[group]
    return None


def given_weight(given: str) -> float | None:
    """Return the weight of a given name; None if a character is one that no name has."""
    if not given or any(letter in known().function for letter in given):
        return None
    return sum(_GIVEN if letter in known().given else _odd(letter) for letter in given) + _SINGLE * (len(given) == 1)


@lru_cache(maxsize=4096)
def _odd(letter: str) -> float:
    """Return the weight of a character outside the list: those of level 2 and beyond stand in names or nowhere."""
    try:
        first = letter.encode("gb2312")[0]
    except UnicodeEncodeError:
        first = 0xFF
    return _ODD if first >= 0xD8 and not "\u7590" <= letter <= "\u7690" else _ODD - 2.5


def run_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the run of Chinese characters around a place, no farther than the segmentation looks."""
    low, high = start, end
    while low > 0 and start - low < _SPAN and is_chinese(text, low - 1):
        low -= 1
    while high < len(text) and high - end < _SPAN and is_chinese(text, high):
        high += 1
    return low, high


def gain(text: str, start: int, end: int, weight: float) -> float:
    """Return what the segmentation gains if a name of such a weight stands there."""
    low, high = run_around(text, start, end)
    return lattice(text[low:high]).gain(start - low, end - low, weight)


def front(text: str, start: int) -> float:
    """Return what stands before a place says for a name: a word, a sign, or the start of the text."""
    signs = _OPEN.search(text, max(0, start - 4), start)
    place = signs.start() if signs else start
    length, weight = around().front.before(text, place)
    if length and not _ends(text, place - length, place):
        length, weight = 0, 0.0
    if signs is None:
        return weight if length or (start and text[start - 1].isalnum()) else _EDGE
    if length and weight > _EDGE:
        return weight + (1.0 if _SURE_SIGN.search(signs[0]) else -1.0 if "," in signs[0] or "，" in signs[0] else 0.0)
    return _EDGE + (1.0 if "@" in signs[0] else 0.0)


def behind(text: str, end: int) -> float:
    """Return what stands behind a place says for a name."""
    if _SEX_AGE.match(text, end):
        return 6.0
    closed = _CLOSED.match(text, end)
    place = end
    while place < len(text) and place - end < 2 and text[place] in " ,，、:：(（":
        place += 1
    length, weight = around().behind.after(text, place)
    if length and not begins(text, place, place + length):
        weight = 0.0
    elif length and weight == _DO:
        weight = max(weight, around().behind.after(text, place + length)[1])
    if place > end:
        return max(_EDGE, weight - 0.5)
    return weight if length else (_EDGE if closed else 0.0)


def _ends(text: str, start: int, end: int) -> bool:
    """Say whether a good segmentation of what stands before `end` ends in the word from `start`."""
    low, _ = run_around(text, end, end)
    return lattice(text[low:end]).ends(start - low, end - low) if start >= low else True


def begins(text: str, start: int, end: int) -> bool:
    """Say whether a good segmentation of what follows `start` begins with the word up to `end`."""
    low, high = run_around(text, start, start)
    return end > high or lattice(text[start:high]).begins(0, end - start)


def _full(text: str, start: int, end: int) -> Weights | None:
    """Weigh a surname and a given name that stand from `start` to `end`."""
    best: Weights | None = None
    if _SEX_LAST.match(text, end - 1):
        return None
    for surname in (2, 1):
        first, given = surname_weight(text[start : start + surname]), given_weight(text[start + surname : end])
        if first is not None and given is not None and 1 <= end - start - surname <= 2:
            found = Weights(gain(text, start, end, NAME + first + given), front(text, start), behind(text, end))
            if found.gain < _FULL_LEAST:
                continue
            asked = found.front >= _ASKED or _SEX_AGE.match(text, end)
            if text[start:end] in known().words and not asked:
                continue
            if best is None or found.total > best.total:
                best = found
    return best


def _longest(text: str, start: int) -> int | None:
    """Return where the whole name ends that begins at `start` and weighs most; None below the bar."""
    best, most = None, _BARS["full"]
    for end in range(start + 2, min(start + 5, len(text) + 1)):
        if not is_chinese(text, end - 1):
            break
        weights = _full(text, start, end)
        if weights is not None and weights.total >= most:
            best, most = end, weights.total
    return best


def _led(text: str) -> Iterator[tuple[int, int]]:
    for match in _LED.finditer(text):
        start = match.end()
        end = _longest(text, start)
        while end is not None:
            yield start, end
            start = end + 1
            end = _longest(text, start) if text[end : end + 1] in tuple("、,，/和与及") else None


def _before(text: str, end: int) -> Iterator[int]:
    for start in (end - 4, end - 3, end - 2):
        if start >= 0 and text[start] in _FIRST and all(is_chinese(text, place) for place in range(start, end)):
            yield start


def _aged(text: str) -> Iterator[tuple[int, int]]:
    for match in _AGED.finditer(text):
        starts = [(weights.total, start) for start in _before(text, match.start()) if (weights := _full(text, start, match.start()))]
        if starts and max(starts)[0] >= _BARS["full"] + 1 and front(text, max(starts)[1]) >= 2:
            yield max(starts)[1], match.start()


def _titled(text: str) -> Iterator[tuple[int, int]]:
    for match in _TITLE.finditer(text):
        end = match.start()
        if not (text[end - 1] in _FIRST or _FIRST & set(text[max(0, end - 4) : end])):
            continue
        start = _before_title(text, end, match["title"], match.end())
        if start is not None:
            yield start, end


def _before_title(text: str, end: int, title: str, after: int) -> int | None:
    if not begins(text, after - len(title), after):
        return None
    found: list[tuple[float, int]] = []
    short = title in around().short
    for start in () if short else _before(text, end):
        weights = _full(text, start, end)
        if weights is not None and weights.total >= _BARS["full"] and weights.front > 0:
            found.append((weights.total, start))
    for length in (1, 2):
        if end >= length and (weight := surname_weight(text[end - length : end])) is not None:
            total = _alone(text, end - length, end, weight, title, after)
            if total is not None:
                found.append((total, end - length))
    return max(found)[1] if found else None


def _alone(text: str, start: int, end: int, weight: float, title: str, after: int) -> float | None:
    """Weigh a surname alone before a title; None below the bar."""
    before, follows = front(text, start), behind(text, after)
    short, doubtful = title in around().short, weight <= _SURNAME["doubtful"]
    if before <= 0 or (doubtful and around().asked.after(text, after)) or (short and (before < 2 or follows <= 0)):
        return None
    if before < 3 and follows < 4 and text[start:end] in evidence().hardly:
        return None
    if doubtful and before < 3 and not (before >= _EDGE and follows >= 4) and not _CLOSED.match(text, after):
        return None
    gained = gain(text, start, end, NAME + weight)
    if gained < (_DOUBTFUL_LEAST if doubtful else _LEAST):
        return None
    if text[start:end] in evidence().hardly:
        gained -= 3
    weights = Weights(gained, before, (2.5 if short else 6.0) + min(follows, 3) * 0.5)
    return weights.total if weights.total >= _BARS["alone"] + (2 if short else 0) else None


@trigger(".")
def weighed(text: str) -> list[Span]:
    """Return names that are vouched for by everything around them together."""
    text = narrow(text)
    return in_order([*_led(text), *_aged(text), *_titled(text)], "name", "name_weighed")
