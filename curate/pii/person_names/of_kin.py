"""Names after an English kinship word with a possessive: my husband John Smith, his mother Maria."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import TWO_SIGNS, narrow, trigger
from curate.pii.person_names import kin_abroad
from curate.pii.person_names.lexicon import given_names
from curate.pii.spans import in_order
from curate.pii.words import either, one_of, raw, words

_LISTS = words("kin")
_WORD = r"[A-Z\u00c0-\u00de](?:[a-z\u00df-\u024f]{1,15}|['’][A-Z][a-z]{1,14})(?:-[A-Z][a-z]{1,14})?"
_KIN = rf"{one_of(_LISTS['words'])}"
_CALLED = either(_LISTS["called"])
_BETWEEN = rf"(?:{one_of(_LISTS['between'])}[ -]){{0,2}}"
_GIVEN = sorted(name for name in given_names() - set(_LISTS["small"]) if len(name) > 2 and name.isascii())
"""Given names that are also recognised in lower case."""
_OWNED = re.compile(
    rf"(?<![A-Za-z])(?i:{either(_LISTS['owners'])} {_BETWEEN}{_KIN})(?P<link>,? | ?\(|(?i:{_CALLED}))"
    rf"(?:(?P<first>{_WORD})(?P<rest>(?: (?:[A-Z]\.? )?{_WORD}){{0,2}})|(?P<small>{one_of(_GIVEN)})(?![\w-]))"
    r"(?P<end>['’]s)?(?![A-Za-z0-9])"
)
_VERB = re.compile(rf"(?:,|\(|['’]s)? ?(?:{one_of(_LISTS['verbs'])})(?![A-Za-z])|,|\(| ?\(|['’]s")
_CLOSED = re.compile(r" ?[,)]| who ")
"""End of an apposition by a comma or a bracket, as in: her son, Tyler, is."""
_NOT = frozenset(_LISTS["no_names"])
_DOUBTFUL = frozenset(_LISTS["doubtful"])
_SET_OFF = re.compile(rf", ?(?:(?:{one_of(_LISTS['verbs'])})(?![A-Za-z])|[0-9]{{1,2}},)")


@trigger(kin_abroad.RAW, needs=TWO_SIGNS)
@trigger(
    rf"{raw(_LISTS['words'])}(?:[,，]?\s|\s?[(（]|{raw(_LISTS['called'])})(?:[A-ZＡ-ＺÀ-Þ]|{either(_GIVEN)})",
    needs=TWO_SIGNS,
)
def of_kin(text: str) -> list[Span]:
    """Return names, with the surname, of relatives, friends and colleagues after a word such as `my husband`.

    A listed given name needs no further context, and may be in lower case unless it is also a common word. Any other
    capitalised word needs a word such as `named` before it, or a verb of a person, a comma or a bracket after it.
    Headings in title case, weekdays, eponyms and diseases are not masked.
    """
    text = narrow(text)
    return in_order([*_names_of_kin(text), *kin_abroad.places(text)], "name", "name_of_kin")


def _names_of_kin(text: str) -> Iterator[tuple[int, int]]:
    for match in _OWNED.finditer(text):
        if match["small"]:
            yield match.span("small")
            continue
        first = match["first"]
        names = [first, *match["rest"].split()]
        count = next((index for index, name in enumerate(names) if name in _NOT and name not in _DOUBTFUL), len(names))
        start, end = match.start("first"), match.start("first") + len(" ".join(names[:count]))
        if count and _vouched(text, first, end, match["link"]):
            yield start, end


def _vouched(text: str, first: str, end: int, link: str) -> bool:
    """Return whether a capitalised word is a name: listed, announced, in apposition, or before a verb of a person."""
    follows = _VERB.match(text, end) is not None
    if first.casefold() in given_names() and first not in _DOUBTFUL:
        return True
    if first in _NOT and first not in _DOUBTFUL:
        return False
    if "," in link or "(" in link:
        return _CLOSED.match(text, end) is not None
    return follows or link.strip() != ""
