"""Names in free text that no single sign vouches for: the name and everything around it are weighed together."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.person_names.evidence import around, characters
from curate.pii.person_names.names import CJK, is_chinese
from curate.pii.person_names.sought import (
    ANY_TITLE,
    BEFORE_AGE,
    BEFORE_TITLE,
    CUE_WORDS,
    EVERYDAY_BEFORE_TITLE,
    LEADS,
    LED,
    LED_OR_KIN,
    OFTEN,
    SEX_OR_YEARS,
    TITLE_WORDS,
)
from curate.pii.person_names.weights import (
    CLOSED,
    EDGE,
    NAME,
    SEX_AGE,
    SURNAME,
    Weights,
    begins,
    behind,
    behind_word,
    front,
    full,
    gain,
    surname_weight,
)
from curate.pii.person_names.words import surnames
from curate.pii.spans import in_order
from curate.pii.text import CHINESE, narrow, trigger
from curate.pii.words import one_of

_BARS = {"full": 4.2, "aged": 6.0, "alone": 3.0}
"""What a whole name, one before sex or age, or a surname before a title must reach."""
_LEAST, _UNLED_LEAST, _DOUBTFUL_LEAST = -7.5, -4.0, -10.0
"""Words that explain a surname before a title this much better are not outweighed by anything."""
_LED_LEAST = -7.0
"""Behind a verb such as 找, and before what persons do, they are not counted for more."""
_CALLS, _TOWARDS = tuple("找请挂约谢问向跟"), tuple("向和跟同与对")
"""Verbs of one character, and prepositions: who follows them is a person, with a title."""
_TITLED, _KINDRED, _SHORT = 6.0, 4.0, 2.5
"""What a title says for a surname: a word, 哥 and its like, and other single characters."""
_FIRST = frozenset(surnames())
_LED = re.compile(f"(?=[{''.join({word[0] for word in (*CUE_WORDS, *OFTEN)})}])(?:{LED})")
"""The first characters come first: `re` tries all those words at every place otherwise."""
_TITLE = re.compile(rf"(?<=[{CJK}]) ?(?P<title>{one_of(TITLE_WORDS)})")
_AGED = re.compile(rf"(?<=[{CJK}])(?={SEX_AGE.pattern})")


@trigger(BEFORE_AGE, needs=SEX_OR_YEARS)
@trigger(LED, needs=(CHINESE, LED_OR_KIN))
def weighed(text: str) -> list[Span]:
    """Return whole names behind a label, a family word or a role, and before sex and age: 家属刘翠花, 郑佳怡，6岁."""
    text = narrow(text)
    return in_order([*_led(text), *_aged(text)], "name", "name_weighed")


@trigger(BEFORE_TITLE, EVERYDAY_BEFORE_TITLE, needs=(CHINESE, ANY_TITLE))
def called(text: str) -> list[Span]:
    """Return surnames and names before a title in running text: 今天陈护士, 谢谢向护士; not 应对医生, 全主治."""
    text = narrow(text)
    return in_order(_titled(text), "name", "name_called")


def longest(text: str, start: int, twin: bool = False) -> int | None:
    """Return where the whole name ends that begins at `start` and weighs most; None below the bar.

    A twin's stands right behind a name with the same surname.
    """
    best, most = None, _BARS["full"] - 4 * twin
    for end in range(start + 2, min(start + 5, len(text) + 1)):
        if not is_chinese(text, end - 1):
            break
        weights = full(text, start, end)
        if weights is not None and weights.total >= most:
            best, most = end, weights.total
    return best


def _led(text: str) -> Iterator[tuple[int, int]]:
    for match in _LED.finditer(text):
        start = match.end() - 2
        end = longest(text, start)
        while end is not None:
            yield start, end
            start = end if text[end : end + 1] == text[start] else end + 1
            joined = start == end or text[end : end + 1] in tuple("、,，/和与及")
            end = longest(text, start, twin=start == end) if joined else None


def _before(text: str, end: int) -> Iterator[int]:
    for start in (end - 4, end - 3, end - 2):
        if start >= 0 and text[start] in _FIRST and all(is_chinese(text, place) for place in range(start, end)):
            yield start


def _aged(text: str) -> Iterator[tuple[int, int]]:
    for match in _AGED.finditer(text):
        end = match.start()
        found = [(each.total, start) for start in _before(text, end) if (each := full(text, start, end))]
        if found and max(found)[0] >= _BARS["aged"] and front(text, max(found)[1]) >= 2:
            yield max(found)[1], end


def _titled(text: str) -> Iterator[tuple[int, int]]:
    for match in _TITLE.finditer(text):
        end = match.start()
        if not (text[end - 1] in _FIRST or _FIRST & set(text[max(0, end - 4) : end])):
            continue
        start = _before_title(text, end, match["title"], match.end())
        if start is not None:
            yield start, end


def _before_title(text: str, end: int, title: str, after: int) -> int | None:
    found: list[tuple[float, int]] = []
    for start in () if title in around().short else _before(text, end):
        weights = full(text, start, end) if front(text, start) > 0 else None
        if text[end - 1] in characters("prepositions"):
            continue
        if weights is not None and weights.total >= _BARS["full"]:
            found.append((weights.total, start))
    for start in (end - 1, end - 2):
        weight = surname_weight(text[start:end]) if start >= 0 and title not in around().family else None
        total = _alone(text, start, end, weight, title, after) if weight is not None else None
        if total is not None:
            found.append((total, start))
    return max(found)[1] if found and begins(text, after - len(title), after) else None


def _needed(surname: str, doubtful: bool) -> float:
    """Return the evidence needed behind a title where no word in front introduces the person."""
    if surname in characters("prepositions"):
        return 4.0
    return 3.0 if doubtful else 0.0


def _alone(text: str, start: int, end: int, weight: float, title: str, after: int) -> float | None:
    """Weigh a surname alone before a title; None below the bar."""
    before, follows = front(text, start), behind(text, after)
    if not _stands(text, start, end, title, after, (weight, before, follows)):
        return None
    gained = gain(text, start, end, NAME + weight)
    least = _DOUBTFUL_LEAST if weight <= SURNAME["doubtful"] else _LEAST if before > 0 else _UNLED_LEAST
    if follows > 0 and weight > SURNAME["rare"] and _led_in(text, start):
        gained = max(gained, _LED_LEAST)
    elif gained < least:
        return None
    elif text[start:end] in characters("hardly"):
        gained -= 3
    named, more = _titles_say(title)
    weights = Weights(gained, before, named + min(follows, 4 if more else 3) * 0.5)
    return weights.total if weights.total >= _BARS["alone"] + more else None


def _titles_say(title: str) -> tuple[float, float]:
    """Return what a title says for a surname, and how much more must be reached with it."""
    if title not in around().short:
        return _TITLED, 0.0
    return (_KINDRED, 0.0) if title in characters("kindred") else (_SHORT, 1.0)


def _led_in(text: str, start: int) -> bool:
    """Say whether a verb stands right before a place whose object is a person."""
    length, weight = around().front.before(text, start)
    return text[start - 1 : start] in _CALLS or (length > 1 and weight == LEADS)


def _stands(text: str, start: int, end: int, title: str, after: int, said: tuple[float, float, float]) -> bool:
    """Say whether what stands around lets a surname alone before a title be one, however much it weighs."""
    weight, before, follows = said
    surname, doubtful, short = text[start:end], weight <= SURNAME["doubtful"], title in around().short
    if before <= 0 and (doubtful or follows <= 0 or not behind_word(text, start)):
        return False
    asked = around().asked.after(text, after) and text[start - 1 : start] not in _TOWARDS
    if (doubtful and asked) or (short and (before < 2 or (follows <= 0 and before < LEADS))):
        return False
    if before < 3 and not CLOSED.match(text, after) and follows < _needed(surname, doubtful):
        return False
    return surname not in characters("hardly") or before >= 3 or (before >= EDGE and follows >= 4)
