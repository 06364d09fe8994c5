"""Weights of candidate names in free text: of their characters against ordinary words, and of their context.

A candidate's weight is its gain over the best segmentation into words (`lattice`) plus the evidence of its context
(`evidence`): labels, kinship words, titles, verbs, sex and age, signs, and boundaries of the text.
"""

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from curate.pii.patterns import narrow
from curate.pii.person_names.evidence import LEADS, PATTERN, RULES, around, characters, given, never, weight
from curate.pii.person_names.lattice import lattice, words_alone
from curate.pii.person_names.lexicon import is_chinese, known, surnames
from curate.pii.rules import RuleRecogniser

NAME = -6.0
"""Log probability of a name in place of a word."""
SURNAME = {"sure": -3.5, "plain": -5.0, "doubtful": -7.0, "rare": -8.5}
_GIVEN, _ODD = -6.3, -9.0
"""Log weights of a character of a given name: listed, and unlisted."""
_SINGLE = -1.0
"""Penalty of one-character given names, which are rarer than two-character ones."""
_ASKED = 6.0
"""Minimum evidence before a candidate that is also a word or a public person; sex or age after it suffices as well."""
_FULL_LEAST = -6.0
"""Minimum gain of a full name; context cannot compensate for less."""
_SPAN, _CHUNK = 16, 32
"""Numbers of characters of a segmented stretch: on each side of a position, and in total."""
EDGE = 2.5
"""Weight of the start or end of a clause."""
_VERB = 1.5
"""Weight of a following verb that is in no word list."""
_DO = weight("behind.do")


class Weights(NamedTuple):
    """Weights of a candidate name: gain over words, evidence before it, evidence after it."""

    gain: float
    front: float
    behind: float

    @property
    def total(self) -> float:
        """Return the sum."""
        return self.gain + self.front + self.behind


def surname_weight(surname: str) -> float | None:
    """Return the weight of a surname; None if it is not one."""
    if len(surname) == 2:
        return SURNAME["plain"] - 1 if surname in known().compounds else None
    if surname in characters("rare"):
        return SURNAME["doubtful"]
    for group in ("sure", "plain", "doubtful", "rare"):
        if surname in getattr(known(), group):
            return SURNAME[group]
    return None


def given_weight(name: str) -> float | None:
    """Return the weight of a given name; None if it has a character that does not occur in names."""
    if not name or not never().isdisjoint(name):
        return None
    return sum(_GIVEN if letter in given() else _unlisted_weight(letter) for letter in name) + _SINGLE * (
        len(name) == 1
    )


@lru_cache(maxsize=4096)
def _unlisted_weight(letter: str) -> float:
    """Return the weight of an unlisted character; characters beyond GB 2312 level 1 occur mostly in names."""
    try:
        first = letter.encode("gb2312")[0]
    except UnicodeEncodeError:
        first = 0xFF
    return _ODD if first >= 0xD8 and not "\u7590" <= letter <= "\u7690" else _ODD - 2.5


@lru_cache(maxsize=8)
def _runs(text: str) -> tuple[list[int], list[int]]:
    """Return the starts and the ends of the runs of Chinese characters in a text."""
    runs = [match.span() for match in PATTERN("run").finditer(text)]
    return [start for start, _ in runs], [end for _, end in runs]


def run_at(text: str, position: int) -> tuple[int, int]:
    """Return (start, end) of the run of Chinese characters at or directly before a position.

    Of a long run, only a stretch around the position is returned.
    """
    starts, ends = _runs(text)
    index = bisect_right(starts, position) - 1
    if index < 0 or position > ends[index]:
        return position, position
    chunk = (position - starts[index]) // _CHUNK * _CHUNK + starts[index]
    return max(starts[index], chunk - _SPAN), min(ends[index], chunk + _CHUNK + _SPAN)


def gain(text: str, start: int, end: int, weight: float) -> float:
    """Return the gain of a name with this weight from `start` to `end` over the best segmentation into words."""
    low, high = run_at(text, start)
    return lattice(text[low:high]).gain(start - low, end - low, weight)


def front(text: str, start: int) -> float:
    """Return the evidence for a name in the text before `start`: a word, a sign, or the start of the text."""
    signs = PATTERN("opened").search(text, max(0, start - 4), start)
    word_end = signs.start() if signs else start
    length, weight = around().front.before(text, word_end)
    if not length and signs is None and start and text[start - 1].isalnum():
        return 0.0
    if length == 1 and not _ends(text, word_end - length, word_end):
        length, weight = 0, 0.0
    if signs is None:
        return weight if length or (start and text[start - 1].isalnum()) else EDGE
    if length and weight > EDGE:
        return weight + (
            1.0 if PATTERN("sure_sign").search(signs[0]) else -1.0 if "," in signs[0] or "，" in signs[0] else 0.0
        )
    return EDGE + (1.0 if "@" in signs[0] else 0.0)


def behind(text: str, end: int) -> float:
    """Return the evidence for a name in the text after `end`."""
    if PATTERN("sex_age").match(text, end):
        return 6.0
    closed = PATTERN("closed").match(text, end)
    position = end
    while position < len(text) and position - end < 2 and text[position] in " ,，、:：(（":
        position += 1
    length, weight = around().behind.after(text, position)
    if length and not begins(text, position, position + length):
        weight = 0.0
    elif length and weight == _DO:
        weight = max(weight, around().behind.after(text, position + length)[1])
    if position > end:
        return max(EDGE, weight - 0.5)
    if length or closed:
        return weight if length else EDGE
    low, high = run_at(text, end)
    return _VERB if end < high and lattice(text[low:high]).verb_follows(end - low) else 0.0


def _ends(text: str, start: int, end: int) -> bool:
    """Return whether a good segmentation of the text before `end` ends in the word from `start`."""
    low, high = run_at(text, end - 1)
    return start < low or lattice(text[low:high]).ends(start - low, end - low)


def behind_word(text: str, position: int) -> bool:
    """Return whether, in the best segmentation, a word of two or more characters ends at a position."""
    low, high = run_at(text, position)
    return position > low and lattice(text[low:high]).behind_word(position - low)


def begins(text: str, start: int, end: int) -> bool:
    """Return whether a good segmentation from `start` begins with the word up to `end`."""
    low, high = run_at(text, start)
    return end > high or lattice(text[low:high]).begins(start - low, end - low)


def full(text: str, start: int, end: int) -> Weights | None:
    """Return the weights of a full name from `start` to `end`; None if it cannot be a name."""
    best: Weights | None = None
    if PATTERN("sex_last").match(text, end - 1):
        return None
    for surname in (2, 1):
        first, second = surname_weight(text[start : start + surname]), given_weight(text[start + surname : end])
        if first is not None and second is not None and 1 <= end - start - surname <= 2:
            weight = NAME + first + second
            if (
                weight - words_alone(text[start:end]) < _FULL_LEAST
                or (gained := gain(text, start, end, weight)) < _FULL_LEAST
            ):
                continue
            candidate = Weights(gained, front(text, start), behind(text, end))
            expected = candidate.front >= _ASKED or PATTERN("sex_age").match(text, end)
            if text[start:end] in known().words and not expected:
                continue
            if best is None or candidate.total > best.total:
                best = candidate
    return best


# Names in free text that no single sign vouches for: the name and everything around it are weighed together.

_BARS = {"full": 4.2, "aged": 6.0, "alone": 3.0}
"""Minimum total weights: of a full name, of one before sex or age, and of a surname before a title."""
_LEAST, _UNLED_LEAST, _DOUBTFUL_LEAST = -7.5, -4.0, -10.0
"""Minimum gains of a surname before a title: with evidence before it, without evidence, and of a doubtful surname."""
_LED_LEAST = -7.0
"""Minimum gain that is assumed after a verb such as 找 and before a verb of a person."""
_CALLS, _TOWARDS = tuple("找请挂约谢问向跟"), tuple("向和跟同与对")
"""One-character verbs and prepositions whose object, if it has a title, is a person."""
_TITLED, _KINDRED, _SHORT = 6.0, 4.0, 2.5
"""Weights of a title: of two or more characters, of a kinship title such as 哥, and of other single characters."""
_FIRST = frozenset(surnames())


def longest(text: str, start: int, twin: bool = False) -> int | None:
    """Return the end of the full name with the highest weight that begins at `start`; None below the minimum.

    `twin`: the name follows directly after another one with the same surname.
    """
    best, most = None, _BARS["full"] - 4 * twin
    for end in range(start + 2, min(start + 5, len(text) + 1)):
        if not is_chinese(text, end - 1):
            break
        weights = full(text, start, end)
        if weights is not None and weights.total >= most:
            best, most = end, weights.total
    return best


def _weighed(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    yield from _led_names(text)
    yield from _aged(text)


name_weighed = RuleRecogniser(RULES, "name_weighed", _weighed)


def _led_names(text: str) -> Iterator[tuple[int, int]]:
    for match in PATTERN("led_at").finditer(text):
        start = match.end() - 2
        end = longest(text, start)
        while end is not None:
            yield start, end
            start = end if text[end : end + 1] == text[start] else end + 1
            joined = start == end or text[end : end + 1] in tuple("、,，/和与及")
            end = longest(text, start, twin=start == end) if joined else None


def _before(text: str, end: int) -> Iterator[int]:
    for start in (end - 4, end - 3, end - 2):
        if start >= 0 and text[start] in _FIRST and all(is_chinese(text, index) for index in range(start, end)):
            yield start


def _aged(text: str) -> Iterator[tuple[int, int]]:
    for match in PATTERN("aged").finditer(text):
        end = match.start()
        candidates = [(weights.total, start) for start in _before(text, end) if (weights := full(text, start, end))]
        if candidates and max(candidates)[0] >= _BARS["aged"] and front(text, max(candidates)[1]) >= 2:
            yield max(candidates)[1], end


def _called(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    for match in PATTERN("title_behind").finditer(text):
        end = match.start()
        if not (text[end - 1] in _FIRST or _FIRST & set(text[max(0, end - 4) : end])):
            continue
        start = _before_title(text, end, match["title"], match.end())
        if start is not None:
            yield start, end


def _before_title(text: str, end: int, title: str, after: int) -> int | None:
    candidates: list[tuple[float, int]] = []
    for start in () if title in around().short else _before(text, end):
        weights = full(text, start, end) if front(text, start) > 0 else None
        if text[end - 1] in characters("prepositions"):
            continue
        if weights is not None and weights.total >= _BARS["full"]:
            candidates.append((weights.total, start))
    for start in (end - 1, end - 2):
        weight = surname_weight(text[start:end]) if start >= 0 and title not in around().family else None
        total = _surname_weight_before_title(text, start, end, weight, title, after) if weight is not None else None
        if total is not None:
            candidates.append((total, start))
    return max(candidates)[1] if candidates and begins(text, after - len(title), after) else None


def _surname_weight_before_title(
    text: str, start: int, end: int, weight: float, title: str, after: int
) -> float | None:
    """Return the total weight of a surname alone before a title; None below the minimum."""
    leading, follows = front(text, start), behind(text, after)
    if not _stands(text, start, end, title, after, (weight, leading, follows)):
        return None
    gained = gain(text, start, end, NAME + weight)
    least = _DOUBTFUL_LEAST if weight <= SURNAME["doubtful"] else _LEAST if leading > 0 else _UNLED_LEAST
    if follows > 0 and weight > SURNAME["rare"] and _led_in(text, start):
        gained = max(gained, _LED_LEAST)
    elif gained < least:
        return None
    elif text[start:end] in characters("hardly"):
        gained -= 3
    title_weight, extra = _titles_say(title)
    weights = Weights(gained, leading, title_weight + min(follows, 4 if extra else 3) * 0.5)
    return weights.total if weights.total >= _BARS["alone"] + extra else None


def _titles_say(title: str) -> tuple[float, float]:
    """Return (weight of a title, additional minimum weight of a surname before it)."""
    if title not in around().short:
        return _TITLED, 0.0
    return (_KINDRED, 0.0) if title in characters("kindred") else (_SHORT, 1.0)


def _led_in(text: str, start: int) -> bool:
    """Return whether a verb whose object is a person ends at `start`."""
    length, weight = around().front.before(text, start)
    return text[start - 1 : start] in _CALLS or (length > 1 and weight == LEADS)


def _stands(text: str, start: int, end: int, title: str, after: int, evidence: tuple[float, float, float]) -> bool:
    """Return whether the context permits a surname alone before a title, regardless of the total weight."""
    weight, leading, follows = evidence
    surname, doubtful, short = text[start:end], weight <= SURNAME["doubtful"], title in around().short
    if leading <= 0 and (doubtful or follows <= 0 or not behind_word(text, start)):
        return False
    is_asked = around().asked.after(text, after) and text[start - 1 : start] not in _TOWARDS
    if (doubtful and is_asked) or (short and (leading < 2 or (follows <= 0 and leading < LEADS))):
        return False
    # a preposition or a doubtful surname needs evidence after the title if no word before it introduces a person
    needed = 4.0 if surname in characters("prepositions") else 3.0 if doubtful else 0.0
    if leading < 3 and not PATTERN("closed").match(text, after) and follows < needed:
        return False
    return surname not in characters("hardly") or leading >= 3 or (leading >= EDGE and follows >= 4)


name_called = RuleRecogniser(RULES, "name_called", _called)
