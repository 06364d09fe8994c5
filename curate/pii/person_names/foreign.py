"""Foreign and minority names in Chinese characters: with dots (买买提·吐尔逊), or alone in a form field."""

import re

from curate.core.records import Span
from curate.pii.patterns import narrow, trigger
from curate.pii.person_names.lexicon import CJK, Trust, is_chinese, known, lists, name_at
from curate.pii.words import either

_DOTS = "·•・‧∙"
DOT = f"[{_DOTS}]"
LETTER = f"(?:{either(lists()['sounds'])}|[{''.join(sorted(set(''.join(lists()['foreign']))))}])"
"""A character of transcribed foreign names."""
PEOPLE = either(lists()["minority"])
_FIRST = frozenset(word[0] for word in lists()["minority"])

_OWN = rf"(?:{PEOPLE}{LETTER}{{0,6}}|{LETTER}{{1,9}}|[A-Z]\.?)"
_DOTTED = re.compile(rf"{_OWN}(?:{DOT}{_OWN}){{1,3}}")
_ANY_DOTTED = re.compile(rf"[{CJK}]{{1,9}}(?:{DOT}[{CJK}]{{1,9}}){{1,3}}(?![{CJK}])")
_ALONE = re.compile(f"{PEOPLE}{LETTER}{{0,6}}(?![{CJK}·])")
_SOUNDS = re.compile(f"{LETTER}{{3,6}}(?![{CJK}·])")
_LATIN = re.compile("[A-Z]")
_INITIALS = re.compile(rf"(?:[A-Z.]|{DOT})+")
_INSTITUTION = re.compile(either(lists()["institutions"]))


@trigger(rf"[A-ZＡ-Ｚ][.．]?{DOT}[{CJK}A-ZＡ-Ｚ]|[{CJK}]{DOT}[A-ZＡ-Ｚ]", needs=DOT)
def dotted(text: str) -> list[Span]:
    """Return foreign names with a dot and an initial (J·史密斯), except in names of institutions and book titles."""
    text = narrow(text)
    return [
        Span(match.start(), match.end(), "name", "name_dotted")
        for match in _DOTTED.finditer(text)
        if _LATIN.search(match[0])
        and len(match[0]) > 3
        and not _INITIALS.fullmatch(match[0])
        and not _INSTITUTION.match(text, match.end())
        and text[max(0, match.start() - 1) : match.start()] != "《"
    ]


def foreign_at(text: str, start: int) -> int | None:
    """Return the end of a dotted name or Chinese minority name that begins at `start`; None if there is none."""
    dotted = _DOTTED.match(text, start) if any(dot in text for dot in _DOTS) else None
    match = dotted or (_ALONE.match(text, start) if text[start : start + 1] in _FIRST else None)
    return match.end() if match else None


def any_name_at(text: str, start: int, trust: Trust) -> int | None:
    """Return the end of a dotted, minority or Han Chinese name that begins at `start`; None if there is none."""
    if not is_chinese(text, start):
        return foreign_at(text, start)
    match = _ANY_DOTTED.match(text, start)
    plausible = match is not None and known().function.isdisjoint(match[0])
    return match.end() if match and plausible else foreign_at(text, start) or name_at(text, start, trust)


def sounds_at(text: str, start: int) -> int | None:
    """Return the end of three to six characters of transcribed names at `start`; None if more Chinese follows."""
    match = _SOUNDS.match(text, start)
    return match.end() if match else None
