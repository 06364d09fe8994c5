"""Names in English records: behind labels (Attending: Sarah Thompson), before degrees (A. Patel, MD), in signatures."""

import re
from collections.abc import Iterator

from curate.pii.patterns import narrow
from curate.pii.person_names.lexicon import given_names
from curate.pii.rules import RuleRecogniser, rules
from curate.pii.words import words

_RULES = rules("clinical")
_PATTERN = _RULES.pattern
_COMMON = frozenset(word.casefold() for word in words("clinical")["common"])
_LONGEST_LABEL = 32
_REACH = 60
"""Maximum number of characters of a name before a degree."""


def _names(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    for field in _PATTERN("field").finditer(text):
        label = _PATTERN("label").search(text, max(0, field.start() - _LONGEST_LABEL), field.start())
        match = _PATTERN("name").match(text, field.end()) if label else None
        extent = _name(text, *match.span("name"), sure=label["sure"] is not None) if label and match else None
        if extent is not None:
            yield extent
    for match in _PATTERN("signed").finditer(text):
        extent = _name(text, *match.span("name"), sure=True)
        if extent is not None:
            yield extent
    yield from _with_degrees(text)


def _with_degrees(text: str) -> Iterator[tuple[int, int]]:
    """Yield names of two words or more before a degree; before one that is also a state, a given name or an initial."""
    for degree in _PATTERN("degree_behind").finditer(text):
        low = max(0, degree.start() - _REACH)
        match = _PATTERN("name_in_front").search(text, low, degree.start())
        extent = _name(text, *match.span("name"), sure=False) if match else None
        if match is None or extent is None or extent[1] != degree.start():
            continue
        name = match["name"].split()
        telling = any(len(word.strip(".")) == 1 or word.casefold() in given_names() for word in name)
        if len(name) > 1 and (telling or not _PATTERN("state").match(degree["degree"])):
            yield extent


def _name(text: str, start: int, end: int, *, sure: bool) -> tuple[int, int] | None:
    """Return (start, end) of the name that a match begins with, up to the first common word; None if it is none."""
    pieces = list(re.finditer(r"[^\s,]+", text[start:end]))
    kept = next((number for number, piece in enumerate(pieces) if _is_common(piece[0])), len(pieces))
    name = [piece[0].strip(".") for piece in pieces[:kept]]
    while name and name[-1].islower():
        name.pop()
    full = [word for word in name if len(word) > 1]
    if not full:
        return None
    end = start + pieces[len(name) - 1].end()
    listed = any(word.casefold() in given_names() for word in full)
    told = _PATTERN("with_degree").match(text, end) or _PATTERN("titled").search(text, max(0, start - 10), start)
    if len(name) == 1:
        return (start, end) if listed or told or (sure and _ends_field(text, end)) else None
    if listed or told or sure or len(full) < len(name):
        return start, end
    return None if any(_PATTERN("no_name").search(word.casefold()) for word in full) else (start, end)


def _is_common(word: str) -> bool:
    plain = word.strip(".").removesuffix("'s").removesuffix("’s")
    return len(plain) > 1 and plain.casefold() in _COMMON


def _ends_field(text: str, end: int) -> bool:
    return _PATTERN("field_end").match(text[end : end + 6]) is not None


name_clinical = RuleRecogniser(_RULES, "name_clinical", _names)
