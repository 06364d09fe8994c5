"""Names with a title or an introduction: Dr. Smith, 我叫Linda, 王医生, 张三主任医师, 老王; patterns in names.yaml."""

from collections.abc import Iterator

from curate.pii.patterns import narrow
from curate.pii.person_names.evidence import RULES, around
from curate.pii.person_names.lexicon import (
    WordList,
    bounded,
    common,
    is_chinese,
    is_word,
    known,
    lists,
    surnames,
    titles,
)
from curate.pii.rules import RuleFile, RuleRecogniser

_RULES = RuleFile("names", lambda: {name: RULES.source(name) for name in ("any_title", "before_title")})
_PATTERN = _RULES.pattern
_NOT = frozenset(lists()["latin.no_names"])
_SURNAMES = frozenset(lists()["latin.surnames"])
_EPONYMS = frozenset(lists()["latin.eponyms"])
_GIVEN = frozenset(lists()["latin.given"])
_ANNOUNCED = ("asked", "small_letters", "capitals", "before_name", "closed", "latin_titled")
"""Patterns of Latin names whose first group is a name by the words around it."""


def _latin(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    for name in _ANNOUNCED:
        for match in _PATTERN(name).finditer(text):
            start, end = match.span(match.lastindex or 1)
            words = text[start:end].split()
            if words[0] not in _NOT and words[0].capitalize() not in _NOT and _EPONYMS.isdisjoint(words):
                yield start, end
    for match in _PATTERN("latin_stated").finditer(text):
        words = match[1].split()
        # a listed given name, or a surname and a given name in pinyin
        if words[0] in _GIVEN or (len(words) == 2 and not _SURNAMES.isdisjoint(words) and _NOT.isdisjoint(words)):
            yield match.span(1)


name_latin = RuleRecogniser(_RULES, "name_latin", _latin)

# Names that show by a title after them, 王医生 and 张三主任医师, or by 老 and 小 before them.

_KIN = frozenset(titles("kin"))
_ONE = frozenset(titles("one"))
_FIRST = frozenset(surnames())
_SPLITS = ((2, 2), (2, 1), (2, 0), (1, 2), (1, 1), (1, 0))
"""Lengths of surname and given name, in the order of the attempts."""
_LEADERS, _CALLS = WordList(lists()["leaders"]), WordList(lists()["calls"])
_PLAIN_COMPOUNDS = frozenset(lists()["compounds.plain"])


def _titled(original: str) -> Iterator[tuple[int, int]]:
    text, last_end = narrow(original), 0
    for match in _PATTERN("title").finditer(text):
        if _FIRST.isdisjoint(text[max(0, match.start() - 4) : match.start()]):
            continue
        start = _start(text, match.start(), match[0])
        if start is not None and start >= last_end:
            last_end = match.start()
            yield start, last_end


def _start(text: str, end: int, title: str) -> int | None:
    for surname_length, given_length in _SPLITS:
        start = end - surname_length - given_length
        if (
            start >= 0
            and _is_full_name(text, start, surname_length, end)
            and _stands(text, start, surname_length, end, title)
        ):
            return start
    return None


def _is_full_name(text: str, start: int, surname: int, end: int) -> bool:
    """Return whether a piece is a surname and a given name of common characters, and not a word."""
    first = text[start : start + surname]
    if surname == 2 and first not in known().compounds:
        return False
    if surname == 1 and first not in known().usual:
        return False
    if not _is_given_name(text, start, start + surname, end) or is_word(text, start, end):
        return False
    if surname == 2:
        return True
    pair = first not in known().sure and text[start + 1 : start + 2] in known().sure and end > start + 1
    return not pair and not known().endings.before(text, start + 1)


def _is_given_name(text: str, start: int, middle: int, end: int) -> bool:
    """Return whether `middle` to `end` is a given name.

    After a sure surname with evidence, any single character is one.
    """
    given_name = text[middle:end]
    if common(given_name):
        return True
    odd = (
        len(given_name) == 1
        and text[start] in known().sure
        and is_chinese(text, middle)
        and given_name not in known().function
    )
    return odd and _has_lead(text, start)


def _has_lead(text: str, start: int) -> bool:
    free = start == 0 or (bounded(text, start - 1) and not text[start - 1].isdigit())
    return free or bool(_LEADERS.before(text, start))


def _stands(text: str, start: int, surname: int, end: int, title: str) -> bool:
    """Return whether title and context indicate that a possible surname, or full name, is a name."""
    alone = end == start + surname
    after = end + len(title)
    if alone and title in _KIN:
        return False
    free = start == 0 or (bounded(text, start - 1) and not text[start - 1].isdigit())
    led = _has_lead(text, start)
    first = text[start : start + surname]
    if title in _ONE:
        return (
            led
            and alone
            and first in known().sure
            and (bounded(text, after) or _PATTERN("said").match(text, after) is not None)
        )
    if first in known().sure or (surname == 2 and first not in _PLAIN_COMPOUNDS):
        return True
    if first in known().doubtful and around().asked.after(text, after):
        return False
    if first in known().doubtful:
        called = bool(_CALLS.before(text, start))
        return called or (free and (not alone or _PATTERN("greeted").match(text, after) is not None))
    return led


name_titled = RuleRecogniser(_RULES, "name_titled", _titled)


def _familiar(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    for match in _PATTERN("familiar").finditer(text):
        if _stands_alone(text, match.start()):
            yield match.start(), match.start() + 2


def _stands_alone(text: str, start: int) -> bool:
    end = start + 2
    if text[start + 1] not in known().sure or known().endings.before(text, end) or text[start:end] in known().endings:
        return False
    if start and is_chinese(text, start - 1) and not _LEADERS.before(text, start):
        return False
    if text[end : end + 1] in ("女", "子", "家"):
        return False
    return bounded(text, end) or known().called.after(text, end) > 0


name_familiar = RuleRecogniser(_RULES, "name_familiar", _familiar)
