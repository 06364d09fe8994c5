"""Names of hospitals and schools, listed or not.

The words that occur in no name are removed from the characters before the ending. If a name is left, its typical
characters and the words before and after it count as evidence.
"""

import re
from collections.abc import Iterator
from functools import cache

from curate.pii.recognisers.institutions_short import behind, in_front
from curate.pii.rules import RuleRecogniser, rules
from curate.pii.words import fold, words

_PATTERN = rules("institutions").pattern
_PROPER = frozenset("".join(words("institutions")["proper_characters"]))
_LONGEST = 7
_ENOUGH = 3
"""Minimum total weight of a name and its context."""


def _unknown(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of unlisted names of hospitals."""
    for last in _PATTERN("hospital_ending").finditer(text):
        run = _PATTERN("chinese_run").search(text, max(0, last.start() - 10), last.start())
        if run is None or last[0][-1] not in "院部所":
            continue
        kinds = _PATTERN("last_kinds").search(text, run.start(), last.start())
        end = kinds.start() if kinds else last.start()
        start = _start(text, run.start(), end)
        evidence = min(2, in_front(text, start)) + min(2, behind(text, last.end()))
        if _is_name(text[start:end], kinds[0] if kinds else "", evidence):
            yield start, last.end()


def _start(text: str, start: int, end: int) -> int:
    """Return the start of a name: after the last word that occurs in no name."""
    for match in _PATTERN("no_name").finditer(text, start, end):
        start = match.end()
    for match in _PATTERN("no_name_sign").finditer(text, start, max(start, end - 2)):
        start = match.end()
    return start


def _is_name(stem: str, kinds: str, evidence: int) -> bool:
    """Return whether a stem, the hospital kinds after it, and the evidence of the context make a name."""
    if not 2 <= len(stem) <= _LONGEST or len(_PATTERN("common_kind").sub("", stem)) < 2 or not evidence:
        return False
    proper = set(stem) <= _PROPER and len(stem) <= 4
    telling = any(kind in kinds for kind in words("institutions")["telling_kinds"])
    if not proper and _PATTERN("no_name_sign").search(stem):
        return False
    return 2 * (proper or telling) + evidence >= (_ENOUGH if proper or telling else _ENOUGH + 1)


# Names of hospitals and schools: `长沙市中心医院`, `就读于育才中学`, but not `正规医院` or `上大学`.

_REACH = 26
"""Maximum length of a hospital's name without its ending."""
_SIGNS = "，。！？；\n"
"""Signs that occur in no name; the search stops at them."""


def _hospitals(text: str) -> Iterator[tuple[int, int]]:
    folded = fold(text)
    names = [
        _longer("hospital_branch", folded, *extent)
        for extent in _longest_names(folded, "hospital_ending", "hospital", "common")
    ]
    yield from names
    for start, end in _unknown(folded):
        if all(end <= first or last <= start for first, last in names):
            yield start, end
    yield from _english(folded)


def _english(text: str) -> Iterator[tuple[int, int]]:
    """Yield English names such as Xiangya Hospital, St. Mary's Hospital and Mount Sinai Medical Center."""
    for match in _PATTERN("english").finditer(text):
        proper = [word for word in re.findall(r"[A-Za-z'’-]+", match["words"]) if not _is_plain(word)]
        told = _PATTERN("telling").search(match["words"]) and not _PATTERN("illness").search(match["words"])
        if proper and (told or not match["small"]):
            yield match.start() + (4 if match[0].startswith("The ") else 0), match.end()


@cache
def _plain_words() -> frozenset[str]:
    generic = (*words("institutions")["english_generic"], *words("clinical")["common"])
    return frozenset(word.casefold() for word in generic)


def _is_plain(word: str) -> bool:
    """Return whether a word of an English name tells nothing about which hospital it is."""
    return word.islower() or re.sub("['’]s?$", "", word.casefold()) in _plain_words()


def _longest_names(text: str, ending: str, name: str, common: str) -> Iterator[tuple[int, int]]:
    """Yield the longest name before every ending, unless it consists of common words; the arguments name patterns."""
    last_end = 0
    for last in _PATTERN(ending).finditer(text):
        low = max(0, last.start() - _REACH)
        clause = 1 + max(text.rfind(sign, low, last.start()) for sign in _SIGNS)
        match = _PATTERN(name).search(text, max(last_end, low, clause), last.end())
        while match and not _proper(match, _PATTERN(common)):
            match = _PATTERN(name).search(text, match.start() + 1, last.end())
        if match:
            last_end = match.end()
            inside = (match.start() + 1, match.end("unit") + 1) if match["unit"] else None
            known_place = rules("places").pattern("place").search(text, *inside) if inside else None
            yield (known_place or match).start(), last_end  # 长沙市 in 妈妈长沙市, which is an unknown place


def _longer(branches: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Return (start, end) of a name, extended by a larger place before it and a branch (`东院`) after it."""
    branch = _PATTERN(branches).match(text, end)
    larger = rules("places").pattern("place_last").search(text, max(0, start - 8), start)
    return larger.start() if larger else start, branch.end() if branch else end


def _proper(match: re.Match[str], common: re.Pattern[str]) -> bool:
    """Return whether the unlisted words of a match are a proper name, that is, not only kinds and qualities."""
    proper_name, unit = match["own"], match["unit"]
    alone = match["alone"] or match.groupdict().get("brand") or match.groupdict().get("quarter")
    if alone:
        return len(common.sub("", alone)) >= 2 and not _PATTERN("no_name").match(alone)
    if unit and _PATTERN("no_name").search(unit):  # 治疗首选县医院
        return False
    return not (proper_name or unit) or common.sub("", proper_name or unit) != ""


def _schools(text: str) -> Iterator[tuple[int, int]]:
    folded = fold(text)
    for extent in _longest_names(folded, "school_last", "school", "common_school"):
        start, end = _longer("faculty", folded, *extent)
        attended = _PATTERN("school_cue").search(folded, max(0, start - 10), start)
        if attended or _PATTERN("behind_school").match(folded, end):
            yield start, end


hospital = RuleRecogniser(rules("institutions"), "hospital", _hospitals)
school = RuleRecogniser(rules("institutions"), "school", _schools)
