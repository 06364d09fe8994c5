"""Names that show by a title after them, 王医生 and 张三主任医师, or by 老 and 小 before them."""

import re

from curate.core.records import Span
from curate.pii.person_names.evidence import around
from curate.pii.person_names.names import CJK, bounded, common, is_chinese, is_word
from curate.pii.person_names.sought import ANY_TITLE, BEFORE_TITLE
from curate.pii.person_names.words import WordList, known, lists, surnames, titles
from curate.pii.text import CHINESE, narrow, trigger
from curate.pii.words import either

_TITLE = re.compile(either(titles("doctors", "people", "kin", "one")))
_KIN = frozenset(titles("kin"))
_ONE = frozenset(titles("one"))
_FIRST = frozenset(surnames())
_SPLITS = ((2, 2), (2, 1), (2, 0), (1, 2), (1, 1), (1, 0))
"""Characters of the surname and of the given name, in the order in which they are tried."""
_LEADERS, _CALLS = WordList(lists()["leaders"]), WordList(lists()["calls"])
_PLAIN_COMPOUNDS = frozenset(lists()["compounds.plain"])
_GREETED = re.compile(r"[,，、!！ ]{0,2}(?:您好|你好|好[,，!！。]|[:：])")
_SAID = re.compile(r"[说您你好的也在和今是让给帮告就]")
_FAMILIAR = re.compile(rf"[小老](?=[{CJK}])")


@trigger(BEFORE_TITLE, needs=(CHINESE, ANY_TITLE))
def titled(text: str) -> list[Span]:
    """Return names before a title, without it: 王医生, 欧阳教授, 王小明同学; surnames that are words need a context."""
    text = narrow(text)
    spans: list[Span] = []
    for match in _TITLE.finditer(text):
        if _FIRST.isdisjoint(text[max(0, match.start() - 4) : match.start()]):
            continue
        start = _start(text, match.start(), match[0])
        if start is not None and (not spans or start >= spans[-1].end):
            spans.append(Span(start, match.start(), "name", "name_titled"))
    return spans


def _start(text: str, end: int, title: str) -> int | None:
    for surname, given in _SPLITS:
        start = end - surname - given
        if start >= 0 and _named(text, start, surname, end) and _stands(text, start, surname, end, title):
            return start
    return None


def _named(text: str, start: int, surname: int, end: int) -> bool:
    """Say whether a surname and a given name of common characters stand there, and no word."""
    first = text[start : start + surname]
    if surname == 2 and first not in known().compounds:
        return False
    if surname == 1 and first not in known().usual:
        return False
    if not _given(text, start, start + surname, end) or is_word(text, start, end):
        return False
    if surname == 2:
        return True
    pair = first not in known().sure and text[start + 1 : start + 2] in known().sure and end > start + 1
    return not pair and not known().endings.before(text, start + 1)


def _given(text: str, start: int, middle: int, end: int) -> bool:
    """Say whether a given name stands there; a single character may be any after a sure surname that is led in."""
    given = text[middle:end]
    if common(given):
        return True
    odd = len(given) == 1 and text[start] in known().sure and is_chinese(text, middle) and given not in known().function
    return odd and _led(text, start)


def _led(text: str, start: int) -> bool:
    free = start == 0 or (bounded(text, start - 1) and not text[start - 1].isdigit())
    return free or bool(_LEADERS.before(text, start))


def _stands(text: str, start: int, surname: int, end: int, title: str) -> bool:
    """Say whether what stands around a surname lets it be one."""
    alone = end == start + surname
    after = end + len(title)
    if alone and title in _KIN:
        return False
    free = start == 0 or (bounded(text, start - 1) and not text[start - 1].isdigit())
    led = _led(text, start)
    first = text[start : start + surname]
    if title in _ONE:
        return (
            led and alone and first in known().sure and (bounded(text, after) or _SAID.match(text, after) is not None)
        )
    if first in known().sure or (surname == 2 and first not in _PLAIN_COMPOUNDS):
        return True
    if first in known().doubtful and around().asked.after(text, after):
        return False
    if first in known().doubtful:
        called = bool(_CALLS.before(text, start))
        return called or (free and (not alone or _GREETED.match(text, after) is not None))
    return led


@trigger(rf"[小老][{''.join(sorted(known().sure))}]")
def familiar(text: str) -> list[Span]:
    """Return 老王 and 小张 that stand for themselves: a boundary before, a boundary or a word such as 说 after."""
    text = narrow(text)
    return [
        Span(match.start(), match.start() + 2, "name", "name_familiar")
        for match in _FAMILIAR.finditer(text)
        if _stands_alone(text, match.start())
    ]


def _stands_alone(text: str, start: int) -> bool:
    end = start + 2
    if text[start + 1] not in known().sure or known().endings.before(text, end) or text[start:end] in known().endings:
        return False
    if start and is_chinese(text, start - 1) and not _LEADERS.before(text, start):
        return False
    if text[end : end + 1] in ("女", "子", "家"):
        return False
    return bounded(text, end) or known().called.after(text, end) > 0
