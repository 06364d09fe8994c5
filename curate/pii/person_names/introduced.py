"""Chinese names that an introduction, a label of a form or a signature tells; the patterns are in names.yaml."""

import re
from collections.abc import Iterator

from curate.pii.patterns import narrow
from curate.pii.person_names.evidence import RULES
from curate.pii.person_names.foreign import any_name_at, foreign_at, sounds_at
from curate.pii.person_names.lexicon import (
    AGED,
    CALLED,
    COLON,
    FIELD,
    LOOSE,
    Trust,
    bounded,
    known,
    lists,
    name_at,
    name_before,
)
from curate.pii.rules import RuleFile, RuleRecogniser

_RULES = RuleFile("names", lambda: {"given": RULES.source("given")})
_PATTERN = _RULES.pattern

# Names that introductions precede or follow: 我叫王小明, 我是王小明, 我姓王, 患者王小明，男，45岁.

_AFTER_FAMILY = tuple("的名叫今也是")
_NEAR = 16
"""Maximum number of characters from the start of a name to sex or age."""


def _introduced(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    if "岁" in text or "歲" in text:
        for match in _PATTERN("case").finditer(text):
            start = name_before(text, match.start(), AGED)
            if start is not None:
                yield start, match.start()
    yield from _owners(text)
    for name, signs, end_of in _WAYS:
        seen = not signs or any(sign in text for sign in signs)
        for match in _PATTERN(name).finditer(text) if seen else ():
            end = end_of(text, match)
            if end is not None:
                yield match.end(), end


def _owners(text: str) -> Iterator[tuple[int, int]]:
    """Yield names next to a person's number; at the start of a sentence, names with a sure surname before an age."""
    if _PATTERN("long_number").search(text):
        yield from _beside_numbers(text)
    for match in _PATTERN("years_old").finditer(text) if "岁" in text or "歲" in text else ():
        start = name_before(text, match.start(), LOOSE)
        if (
            start is not None
            and text[start] in known().sure
            and text[max(0, start - 1) : start] in ("", "\n", "。", ";")
        ):
            yield start, match.start()


def _beside_numbers(text: str) -> Iterator[tuple[int, int]]:
    for match in _PATTERN("number_behind").finditer(text):
        start = name_before(text, match.start(), LOOSE)
        if start is not None:
            yield start, match.start()
    for match in _PATTERN("number_before").finditer(text):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and text[end : end + 1] in (")", "）"):
            yield match.end(), end


def _called(text: str, cue: re.Match[str]) -> int | None:
    start = cue.end()
    if _PATTERN("no_person").search(text, max(0, cue.start() - 3), cue.start()):
        return None
    end = any_name_at(text, start, LOOSE if cue[0].startswith("叫") else CALLED) or _nick(text, start)
    return end if end is not None or cue[0].startswith("名") else sounds_at(text, start)


def _nick(text: str, start: int) -> int | None:
    """Return the end of a nickname such as 小李, 阿珍 or 乐乐; None for an ordinary word."""
    match = _PATTERN("nick").match(text, start)
    if match is None or match[0] in known().no_nicks:
        return None
    if not bounded(text, match.end()) and not known().called.after(text, match.end()):
        return None
    last = match[0][1]
    return match.end() if last in known().given | known().sure | known().plain else None


def _family(text: str, cue: re.Match[str]) -> int | None:
    start = cue.end()
    end = start + (2 if text[start : start + 2] in known().compounds else 1)
    if end == start + 1 and text[start:end] not in known().usual:
        return None
    follows = bounded(text, end) or known().titles.after(text, end) or text[end : end + 1] in _AFTER_FAMILY
    return end if follows else None


def _stated(text: str, cue: re.Match[str]) -> int | None:
    start = cue.end()
    if _PATTERN("sex_or_age").search(text, start, start + _NEAR):
        end = name_at(text, start, AGED)
        if end is not None and _PATTERN("sex_or_age").match(text, end):
            return end
    if text[start : start + 1] in ("小", "老") and text[start + 1 : start + 2] in known().sure | known().plain:
        known_word = text[start : start + 2] in known().no_nicks
        return start + 2 if bounded(text, start + 2) and not known_word else None
    return foreign_at(text, start) or name_at(text, start, LOOSE)


_WAYS = (("called", "叫名昵", _called), ("family", "姓", _family), ("stated", "", _stated))
"""Tuples: name of a pattern, characters of which each matching text has one, function that returns a name's end."""


name_introduced = RuleRecogniser(_RULES, "name_introduced", _introduced)

# Names after labels of forms: 姓名：张三, 主治医生: 张 三, 联系人张三, 审核：张三、李四.

_PLAIN = frozenset(lists()["labels.plain"])
"""Labels that may precede a name without a colon."""
_PLACEHOLDER = "[姓名]"
"""A masked name; no further name follows it."""


def _labelled(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    for match in _PATTERN("label").finditer(text):
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
    if end is None and (match := _PATTERN("spaced").match(text, start)):
        surname, *given_letters = [letter for letter in match.groups() if letter]
        if surname in known().usual and known().function.isdisjoint(given_letters):
            return match.end()
    return end


name_labelled = RuleRecogniser(_RULES, "name_labelled", _labelled)

# Signatures: names at the end of a letter (——王小明, 此致敬礼 王小明, 王小明敬上).

_TAIL = 60
"""Maximum number of characters from a name to the end of the text: a date may follow the name."""


def _signed(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    for match in _PATTERN("sign").finditer(text):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and _PATTERN("signed").match(text, end):
            yield match.end(), end
    for match in _PATTERN("closing_behind").finditer(text):
        start = name_before(text, match.start(), COLON)
        if start is not None:
            yield start, match.start()
    for match in _PATTERN("last_line").finditer(text, max(0, len(text) - _TAIL)):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and _PATTERN("close").match(text, end):
            yield match.end(), end


name_signed = RuleRecogniser(_RULES, "name_signed", _signed)
