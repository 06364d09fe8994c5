"""What a name in free text weighs: its characters against ordinary words, and what stands before and behind it.

A candidate counts for what it gains over the words that would stand there otherwise (`name_lattice`), and for what
stands around it (`name_evidence`): labels, family words, titles, verbs, sex and age, signs, the text's ends.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from curate.pii.person_names.evidence import around, characters, given, never, weight
from curate.pii.person_names.lattice import lattice, words_alone
from curate.pii.person_names.names import CJK
from curate.pii.person_names.words import known

NAME = -6.0
"""How rarely a name stands where a word might (logarithm)."""
SURNAME = {"sure": -3.5, "plain": -5.0, "doubtful": -7.0, "rare": -8.5}
_GIVEN, _ODD = -6.3, -9.0
"""A character of a given name: one of the list, or any other."""
_SINGLE = -1.0
"""Given names of one character are rarer than those of two."""
_ASKED = 6.0
"""What is also a word, or a person of public life, is a name only where a form asks for one, or before an age."""
_FULL_LEAST = -6.0
"""Words that explain a whole name this much better are not outweighed by anything."""
_SPAN, _CHUNK = 16, 32
"""The segmentation looks at stretches of so many characters, and so many on either side."""
_RUN = re.compile(f"[{CJK}]+")
EDGE = 2.5
"""A clause begins or ends here."""
SEX_AGE = re.compile(
    r"[\s,，、;；:：/|(（]{0,3}(?:性别[:：]?)?(?:[男女](?=[\s,，、;；|/(（。.0-9]|$)|[0-9]{1,3} ?(?:周?岁|歲|个?月龄))"
)
_SEX_LAST = re.compile(r"[男女][,，、;； ]{0,2}\d")
"""李芳男45岁: the name ends before its sex."""
_OPEN = re.compile(r"[\s,，、:：;；|/(（)）\[【\"“'‘「『@#*=_-]{1,4}$")
_SURE_SIGN = re.compile(r"[:：(（@\[【=]")
CLOSED = re.compile(r"[\s,，、:：;；。.!！?？…~)）\]】\"”'’」』|/\d]|$")

_VERB = 1.5
"""A verb that no list holds follows."""
_DO = weight("behind.do")


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
        return SURNAME["plain"] - 1 if surname in known().compounds else None
    if surname in characters("rare"):
        return SURNAME["doubtful"]
    for group in ("sure", "plain", "doubtful", "rare"):
        if surname in getattr(known(), group):
            return SURNAME[group]
    return None


def given_weight(name: str) -> float | None:
    """Return the weight of a given name; None if a character is one that no name has."""
    if not name or not never().isdisjoint(name):
        return None
    return sum(_GIVEN if letter in given() else _odd(letter) for letter in name) + _SINGLE * (len(name) == 1)


@lru_cache(maxsize=4096)
def _odd(letter: str) -> float:
    """Return the weight of a character outside the list: those of level 2 and beyond stand in names or nowhere."""
    try:
        first = letter.encode("gb2312")[0]
    except UnicodeEncodeError:
        first = 0xFF
    return _ODD if first >= 0xD8 and not "\u7590" <= letter <= "\u7690" else _ODD - 2.5


@lru_cache(maxsize=8)
def _runs(text: str) -> tuple[list[int], list[int]]:
    """Return where the runs of Chinese characters of a text begin and end."""
    found = [match.span() for match in _RUN.finditer(text)]
    return [start for start, _ in found], [end for _, end in found]


def run_at(text: str, place: int) -> tuple[int, int]:
    """Return the run of Chinese characters at a place or right before it; of a long one a stretch around the place."""
    starts, ends = _runs(text)
    which = bisect_right(starts, place) - 1
    if which < 0 or place > ends[which]:
        return place, place
    chunk = (place - starts[which]) // _CHUNK * _CHUNK + starts[which]
    return max(starts[which], chunk - _SPAN), min(ends[which], chunk + _CHUNK + _SPAN)


def gain(text: str, start: int, end: int, weight: float) -> float:
    """Return what the segmentation gains if a name of such a weight stands there."""
    low, high = run_at(text, start)
    return lattice(text[low:high]).gain(start - low, end - low, weight)


def front(text: str, start: int) -> float:
    """Return what stands before a place says for a name: a word, a sign, or the start of the text."""
    signs = _OPEN.search(text, max(0, start - 4), start)
    place = signs.start() if signs else start
    length, weight = around().front.before(text, place)
    if not length and signs is None and start and text[start - 1].isalnum():
        return 0.0
    if length == 1 and not _ends(text, place - length, place):
        length, weight = 0, 0.0
    if signs is None:
        return weight if length or (start and text[start - 1].isalnum()) else EDGE
    if length and weight > EDGE:
        return weight + (1.0 if _SURE_SIGN.search(signs[0]) else -1.0 if "," in signs[0] or "，" in signs[0] else 0.0)
    return EDGE + (1.0 if "@" in signs[0] else 0.0)


def behind(text: str, end: int) -> float:
    """Return what stands behind a place says for a name."""
    if SEX_AGE.match(text, end):
        return 6.0
    closed = CLOSED.match(text, end)
    place = end
    while place < len(text) and place - end < 2 and text[place] in " ,，、:：(（":
        place += 1
    length, weight = around().behind.after(text, place)
    if length and not begins(text, place, place + length):
        weight = 0.0
    elif length and weight == _DO:
        weight = max(weight, around().behind.after(text, place + length)[1])
    if place > end:
        return max(EDGE, weight - 0.5)
    if length or closed:
        return weight if length else EDGE
    return _VERB if _verb(text, end) else 0.0


def _verb(text: str, place: int) -> bool:
    low, high = run_at(text, place)
    return place < high and lattice(text[low:high]).verb_follows(place - low)


def _ends(text: str, start: int, end: int) -> bool:
    """Say whether a good segmentation of what stands before `end` ends in the word from `start`."""
    low, high = run_at(text, end - 1)
    return start < low or lattice(text[low:high]).ends(start - low, end - low)


def behind_word(text: str, place: int) -> bool:
    """Say whether a word of two characters or more ends at a place, by the best segmentation."""
    low, high = run_at(text, place)
    return place > low and lattice(text[low:high]).behind_word(place - low)


def begins(text: str, start: int, end: int) -> bool:
    """Say whether a good segmentation of what follows `start` begins with the word up to `end`."""
    low, high = run_at(text, start)
    return end > high or lattice(text[low:high]).begins(start - low, end - low)


def full(text: str, start: int, end: int) -> Weights | None:
    """Weigh a surname and a given name that stand from `start` to `end`."""
    best: Weights | None = None
    if _SEX_LAST.match(text, end - 1):
        return None
    for surname in (2, 1):
        first, second = surname_weight(text[start : start + surname]), given_weight(text[start + surname : end])
        if first is not None and second is not None and 1 <= end - start - surname <= 2:
            weight = NAME + first + second
            if (
                weight - words_alone(text[start:end]) < _FULL_LEAST
                or (more := gain(text, start, end, weight)) < _FULL_LEAST
            ):
                continue
            found = Weights(more, front(text, start), behind(text, end))
            asked = found.front >= _ASKED or SEX_AGE.match(text, end)
            if text[start:end] in known().words and not asked:
                continue
            if best is None or found.total > best.total:
                best = found
    return best
