"""Names after labels of forms: 姓名：张三, 主治医生: 张 三, 联系人张三, 审核：张三、李四."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import CHINESE, narrow, trigger
from curate.pii.person_names.foreign import DOT, LETTER, any_name_at
from curate.pii.person_names.lexicon import CJK, COLON, FIELD, LOOSE, Trust, known, lists, name_at, surnames
from curate.pii.spans import in_order
from curate.pii.words import either

_ALL = either(lists()["labels.plain"] + lists()["labels.colon"])
_PLAIN = frozenset(lists()["labels.plain"])
"""Labels that may precede a name without a colon."""
_LABEL = re.compile(
    rf"(?P<label>{_ALL})[】\])）]?(?P<colon>[\s\"“_|*]{{0,3}}[:：=][\s\"“_|*]{{0,6}})?(?P<gap>[\s|_（(\[]{{0,3}})"
)
_SPACED = re.compile(rf"([{CJK}])[ .]{{1,4}}([{CJK}])(?:[ .]{{1,4}}(?![男女])([{CJK}]))?(?![{CJK}])")
"""A spaced name, such as 张 三 and 王.小.明."""


_PLACEHOLDER = "[姓名]"
"""A masked name; no further name follows it."""
_OPEN = r"[】\])）］]?"
_FIRST_LABELLED = rf"(?:[{surnames()}]|{LETTER}|[{CJK}]{{1,9}}{DOT}|[A-ZＡ-Ｚ]{DOT})"


def _spaced_pattern(pattern: str) -> str:
    return pattern.replace(re.escape(" "), r"\s")


@trigger(rf"{_spaced_pattern(either(_PLAIN))}{_OPEN}[\s\"“_＿|｜*:：=（(\[［]{{0,12}}{_FIRST_LABELLED}", needs=CHINESE)
@trigger(
    rf"{_spaced_pattern(_ALL)}{_OPEN}[\s\"“_＿|｜*]{{0,3}}[:：=][\s\"“_＿|｜*（(\[［]{{0,9}}{_FIRST_LABELLED}",
    needs=(CHINESE, "[:：=]"),
)
def labelled(text: str) -> list[Span]:
    """Return names after labels of forms and reports, also several names separated by 、 or /."""
    return in_order(_labelled_names(narrow(text)), "name", "name_labelled")


def _labelled_names(text: str) -> Iterator[tuple[int, int]]:
    for match in _LABEL.finditer(text):
        trust = _trust(match)
        start, end = match.end(), _value(text, match.end(), trust) if trust else None
        while end is not None:
            yield start, end
            start = end + 1
            end = name_at(text, start, LOOSE) if text[end : end + 1] in ("、", "/") else None


def _trust(match: re.Match[str]) -> Trust | None:
    if match.string[max(0, match.start() - 1) : match.end("label") + 1] == _PLACEHOLDER and not match["colon"]:
        return None
    if match["label"] not in _PLAIN:
        return COLON if match["colon"] else None
    return FIELD if match["colon"] or match["gap"] else LOOSE


def _value(text: str, start: int, trust: Trust) -> int | None:
    end = any_name_at(text, start, trust)
    if end is None and (match := _SPACED.match(text, start)):
        surname, *given_letters = [letter for letter in match.groups() if letter]
        if surname in known().usual and known().function.isdisjoint(given_letters):
            return match.end()
    return end
