"""Given names without surname after a kinship word in free text: 老公建国送我来的, 女婿向阳, 孙子浩然，5岁."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import CHINESE, narrow, trigger
from curate.pii.person_names.evidence import LISTS, around
from curate.pii.person_names.lattice import is_word
from curate.pii.person_names.sought import AFTER_KIN, GIVEN_ALONE, KIN_WORDS, LED_OR_KIN
from curate.pii.person_names.weights import NAME, behind, front, gain, given_weight
from curate.pii.spans import in_order
from curate.pii.words import one_of

_BAR = 5.0
_SAID, _DONE = 4.0, 2.5
"""Minimum evidence after a given name: for one that is also a word, and for any other."""
_WORD_WEIGHT = 5.0
"""Additional weight of a given name that is also a word, because few words are on the list and a verb must follow."""
_OWNED_WEIGHT = 3.0
"""Additional weight of a kinship word with a possessive (我弟, 她儿子)."""
_AFTER_KIN = re.compile(rf"(?=(?P<kin>{one_of(KIN_WORDS)})(?P<given>{AFTER_KIN}))")
_CALLED_NAMES = frozenset(LISTS["called"])


@trigger(GIVEN_ALONE, needs=(CHINESE, LED_OR_KIN))
def given_alone(text: str) -> list[Span]:
    """Return two-character given names after a kinship word, if a verb of a person or an age follows."""
    text = narrow(text)
    return in_order(_given_names_alone(text), "name", "name_given")


def _given_names_alone(text: str) -> Iterator[tuple[int, int]]:
    for match in _AFTER_KIN.finditer(text):
        start, end = match.span("given")
        weight = given_weight(match["given"])
        word = is_word(match["given"])
        if weight is None or front(text, start) < around().front.before(text, start)[1]:
            continue
        if word and match["given"] not in _CALLED_NAMES:
            continue
        follows = behind(text, end) + _OWNED_WEIGHT * (not word and around().owned(text, start))
        gained = gain(text, start, end, NAME + weight) + _WORD_WEIGHT * word
        if follows >= (_SAID if word else _DONE) and gained + front(text, start) + follows >= _BAR:
            yield start, end
