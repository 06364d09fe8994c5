"""What looks like a name and is medicine: drugs, herbs, points, eponyms, and numbers that are compared.

One veto for every recogniser of names and hospitals, by the word lists of medicine.yaml, so that no rule of names has
exceptions of its own for medicine.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from curate.core.records import Span
from curate.pii.patterns import narrow
from curate.pii.person_names.lattice import is_verb, is_word
from curate.pii.person_names.lexicon import is_chinese
from curate.pii.rules import rules
from curate.pii.words import words

_PATTERN = rules("medicine").pattern
_ON_A_FORM = frozenset(("name_labelled", "name_handle"))
"""Recognisers whose names stand in a field for a name."""
_BEFORE_TITLE = frozenset(("name_titled", "name_called"))
"""Recognisers of names that are told by the title after them."""
_REST_OF_A_DRUG = 3
"""Number of characters after 阿 and another one in which the rest of a drug's name may begin: 阿托|伐他汀."""


@cache
def _listed(*names: str) -> frozenset[str]:
    """Return the words of lists of medicine.yaml."""
    return frozenset(word for name in names for word in words("medicine")[name])


@cache
def _characters(name: str) -> frozenset[str]:
    """Return the characters of a list of medicine.yaml."""
    return frozenset("".join(words("medicine")[name]))


@cache
def _compounds() -> frozenset[str]:
    """Return the characters of substances without those that people name alone: 孩子王明碘过敏."""
    return _characters("substances") - _characters("elements")


@cache
def _longest_term() -> int:
    return max(map(len, _listed("terms", "names_too")))


def spared(spans: Iterable[Span], text: str) -> Iterator[Span]:
    """Yield the spans of a text without names that are medicine, and without hospitals that are none of a name.

    A name that ran into a comparator ends before it.
    """
    narrowed = narrow(text)
    for span in spans:
        if span.recogniser.startswith("name_"):
            end = _before_comparator(narrowed, span)
            whole = end == span.end and end > span.start
            if (whole or end - span.start > 1) and not is_medicine(narrowed, replace(span, end=end)):
                yield replace(span, end=end)
        elif not (span.recogniser.startswith("hospital") and _is_no_hospital(narrowed, span)):
            yield span


def is_medicine(text: str, name: Span) -> bool:
    """Return whether a possible name in a narrowed text is a medicine, a finding, a point, or part of an eponym."""
    start, end = name.start, name.end
    on_form = name.recogniser in _ON_A_FORM or _PATTERN("labelled").search(text, max(0, start - 8), start)
    if on_form or not is_chinese(text, start):
        return False
    if (
        _ends_a_word(text, start, end)
        or _is_substance(text, start, end)
        or _PATTERN("eponym_head").match(text, end)
        or _PATTERN("asked_of_thing").match(text, end)
    ):
        return True
    if name.recogniser in _BEFORE_TITLE and not text.startswith(" ", end):
        return False
    term, person = _term(text, start, end), _PATTERN("person_behind").match(text, end) is not None
    if term is not None and not (person and term in _listed("names_too")):
        return True
    return not person and _listed("eponyms").issuperset(_PATTERN("not_chinese").split(text[start:end]))


def _is_no_hospital(text: str, hospital: Span) -> bool:
    """Return whether a place and a kind name none (上海类风湿医院, 广州整形医院排行榜), or 305 is a number of weeks."""
    start, end = hospital.start, hospital.end
    if text[start:end].isdecimal():
        return _PATTERN("unit").match(text, end) is not None
    of_illness = _PATTERN("illness_hospital").fullmatch(text, start, end)
    if of_illness and (not of_illness["organ"] or is_word(of_illness["organ"])):
        return True
    treated = _PATTERN("treated").match(text, start, end) if hospital.recogniser == "hospital" else None
    if treated and is_verb(treated["verb"]):
        return True
    if text[max(0, start - 1) : start] in tuple("和与跟、") or _PATTERN("one_hospital").search(text, start, end):
        return False
    return bool(
        _PATTERN("asked_for").match(text, end) or _PATTERN("asked_for_before").search(text, max(0, start - 8), start)
    )


def _ends_a_word(text: str, start: int, end: int) -> bool:
    """Return whether a surname is the end of something else: 四君子汤 医生推荐, 305周医生."""
    if text[start - 1 : start].isdecimal() and _PATTERN("unit").match(text, start):
        return True
    return end == start + 1 and text.startswith(" ", end) and is_chinese(text, start - 1)


def _before_comparator(text: str, name: Span) -> int:
    """Return the end of a name without the beginning of a comparator that stands before a number: 李明|小于18岁."""
    for position in range(name.start, name.end):
        if position + 2 >= name.end and _PATTERN("comparator").match(text, position):
            return position
    return name.end


def _is_substance(text: str, start: int, end: int) -> bool:
    """Return whether a name holds, or goes on in, what names of substances and illnesses are made of: 吉法|酯."""
    if text[start] == "阿":
        beyond = _REST_OF_A_DRUG
    else:
        word_follows = any(is_word(text[end:stop]) for stop in range(end + 2, end + 5))
        beyond = 0 if word_follows else 2
    last = min(end + beyond, len(text))
    if not (_characters("substances").isdisjoint(text[start:end]) and _compounds().isdisjoint(text[end:last])):
        return True
    endings = (_PATTERN("ending").match(text, position) for position in range(start + 1, last))
    return any(
        ending.end() >= end and (len(ending[0]) > 1 or ending.end() == end > start + 2) for ending in endings if ending
    )


def _term(text: str, start: int, end: int) -> str | None:
    """Return the longest term of medicine that covers a possible name; None without one."""
    for low in range(max(0, start - 3), start + 1):
        for high in range(min(len(text), low + _longest_term()), end - 1, -1):
            if text[low:high] in _listed("terms", "names_too"):
                return text[low:high]
    return None
