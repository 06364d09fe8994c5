"""Names behind an English family word that belongs to somebody: my husband John Smith, his mother Maria."""

import re
from collections.abc import Iterator

from curate.pii.digits import TWO_SIGNS
from curate.pii.people import given_names
from curate.pii.spans import in_order
from curate.pii.text import narrow, trigger
from curate.pii.words import either, one_of, raw, words
from curate.records import Span

_LISTS = words("kin")
_WORD = r"[A-Z\u00c0-\u00de](?:[a-z\u00df-\u024f]{1,15}|['’][A-Z][a-z]{1,14})(?:-[A-Z][a-z]{1,14})?"
_KIN = rf"{one_of(_LISTS['words'])}"
_BETWEEN = rf"(?:{one_of(_LISTS['between'])}[ -]){{0,2}}"
_OWNED = re.compile(
    rf"(?<![A-Za-z])(?i:{either(_LISTS['owners'])} {_BETWEEN}{_KIN})(?P<link>,? )"
    rf"(?P<first>{_WORD})(?P<rest>(?: (?:[A-Z]\.? )?{_WORD}){{0,2}})(?P<end>['’]s)?(?![A-Za-z0-9])"
)
_VERB = re.compile(rf"(?:,|\(|['’]s)? ?(?:{one_of(_LISTS['verbs'])})(?![A-Za-z])|,|\(| ?\(|['’]s")
_NOT = frozenset(_LISTS["no_names"])
_DOUBTFUL = frozenset(_LISTS["doubtful"])


@trigger(rf"{raw(_LISTS['words'])}[,，]?\s[A-ZＡ-ＺÀ-Þ]", needs=TWO_SIGNS)
def of_kin(text: str) -> list[Span]:
    """Return the name of somebody's relative, friend or colleague behind the word for that, with the surname.

    A given name of the list is enough, unless it is also a word; another one needs a verb of a person, a comma or a
    bracket behind it. Headings in which every word has a capital, weekdays, eponyms and diseases stay.
    """
    return in_order(_places(narrow(text)), "name", "name_of_kin")


def _places(text: str) -> Iterator[tuple[int, int]]:
    for match in _OWNED.finditer(text):
        first = match["first"]
        names = [first, *match["rest"].split()]
        kept = next((n for n, name in enumerate(names) if name in _NOT and name not in _DOUBTFUL), len(names))
        start, end = match.start("first"), match.start("first") + len(" ".join(names[:kept]))
        if kept and _vouched(text, first, end, comma="," in match["link"]):
            yield start, end


def _vouched(text: str, first: str, end: int, *, comma: bool) -> bool:
    """Say whether a word with a capital is a name: of the list, or a person's verb follows."""
    follows = _VERB.match(text, end) is not None
    if first.casefold() in given_names() and first not in _DOUBTFUL:
        return True
    return follows and not comma and not (first in _NOT and first not in _DOUBTFUL)
