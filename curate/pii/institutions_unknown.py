"""Hospitals named after nothing that we know (`康华医院出院带药`): what they are called, and what is said about them.

A name has to be left when words that begin no name are cut off. Then the characters that hospitals like to be named
with, what stands in front of it and what follows behind it add up.
"""

import re
from collections.abc import Iterator
from functools import cache

from curate.pii.institutions_short import evidence_behind, evidence_in_front
from curate.pii.places import NUMBER, place
from curate.pii.words import one_of, words

_RUN = re.compile(r"[一-龥]{2,10}\Z")
_LONGEST = 7
_ENOUGH = 3
"""What the weights of a name and of the words around it come to at least."""


@cache
def no_proper() -> re.Pattern[str]:
    """Return a pattern for words that are in no name (`决定`, `出生后`)."""
    return re.compile(one_of(words("institutions")["no_proper"]))


@cache
def no_name() -> re.Pattern[str]:
    """Return a pattern for the words of these that are more than a character, which may be part of a name."""
    return re.compile(one_of(word for word in words("institutions")["no_proper"] if len(word) > 1))


@cache
def _kinds() -> re.Pattern[str]:
    lists = words("institutions")
    common = [lists[name] for name in ("hospital_kinds", "disease_kinds", "generic", "hospital_endings")]
    return re.compile(rf"{one_of(*common)}|{place()}|第?{NUMBER}")


@cache
def _proper_characters() -> frozenset[str]:
    return frozenset("".join(words("institutions")["proper_characters"]))


def unknown(text: str, ending: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield where names of hospitals stand that are in no list."""
    for last in ending.finditer(text):
        run = _RUN.search(text, max(0, last.start() - 10), last.start())
        if run is None or last[0][-1] not in "院部所":
            continue
        start = _start(text, run.start(), last.start())
        if _named(text, start, last.start(), last.end()):
            yield start, last.end()


def _start(text: str, start: int, end: int) -> int:
    """Return where a name begins: behind the last word that is in none."""
    for match in no_proper().finditer(text, start, end):
        start = match.end()
    return start


def _named(text: str, start: int, end: int, behind: int) -> bool:
    name = text[start:end]
    own = _kinds().sub("", name)
    if not 2 <= len(name) <= _LONGEST or len(own) < 2 or not name.startswith(own):
        return False
    proper = 2 if set(own) <= _proper_characters() and len(own) <= 4 else 0
    evidence = min(2, evidence_in_front(text, start)) + min(2, evidence_behind(text, behind))
    return evidence > 0 and proper + evidence >= _ENOUGH + (not proper)
