"""Hospitals named after nothing that we know (`康华医院出院带药`): what they are called, and what is said about them.

A name has to be left when words that begin no name are cut off. Then the characters that hospitals like to be named
with, what stands in front of it and what follows behind it add up.
"""

import re
from collections.abc import Iterator
from functools import cache

from curate.pii.recognisers.institutions_short import behind, in_front
from curate.pii.recognisers.places import NUMBER, place
from curate.pii.words import compiled, one_of, words

_RUN = re.compile(r"[一-龥]{2,10}\Z")
_LONGEST = 7
_ENOUGH = 3
"""What the weights of a name and of the words around it come to at least."""


@cache
def no_name() -> re.Pattern[str]:
    """Return a pattern for words that are in no name (`决定`, `出生后`)."""
    small = "".join(words("institutions")["small_words"])
    return re.compile(f"[{small}]|{one_of(word for word in words('institutions')['no_proper'] if len(word) > 1)}")


@cache
def _kinds() -> re.Pattern[str]:
    lists = words("institutions")
    common = [lists[name] for name in ("hospital_kinds", "disease_kinds", "generic", "hospital_endings")]
    return re.compile(rf"{one_of(*common)}|{place()}|第?{NUMBER}")


_PROPER = frozenset("".join(words("institutions")["proper_characters"]))
_last_kinds = compiled(lambda: rf"(?:{_kinds().pattern})+\Z")
_small = compiled(lambda: one_of(word for word in words("institutions")["no_proper"] if len(word) == 1))


def unknown(text: str, ending: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield where names of hospitals stand that are in no list."""
    for last in ending.finditer(text):
        run = _RUN.search(text, max(0, last.start() - 10), last.start())
        if run is None or last[0][-1] not in "院部所":
            continue
        kinds = _last_kinds().search(text, run.start(), last.start())
        end = kinds.start() if kinds else last.start()
        start = _start(text, run.start(), end)
        if _named(text[start:end], kinds[0] if kinds else "", _evidence(text, start, last.end())):
            yield start, last.end()


def _start(text: str, start: int, end: int) -> int:
    """Return where a name begins: behind the last word that is in none; one character of it may be in a name too."""
    for match in no_name().finditer(text, start, end):
        start = match.end()
    for match in _small().finditer(text, start, max(start, end - 2)):
        start = match.end()
    return start


def _evidence(text: str, start: int, end: int) -> int:
    """Return the weights of the words around, those on one side no more than two."""
    return min(2, in_front(text, start)) + min(2, behind(text, end))


def _named(own: str, kinds: str, evidence: int) -> bool:
    """Say whether a name, the kinds of a hospital behind it and what is said around it make one."""
    if not 2 <= len(own) <= _LONGEST or len(_kinds().sub("", own)) < 2 or not evidence:
        return False
    proper = set(own) <= _PROPER and len(own) <= 4
    telling = any(kind in kinds for kind in words("institutions")["telling_kinds"])
    if not proper and _small().search(own):
        return False
    return 2 * (proper or telling) + evidence >= (_ENOUGH if proper or telling else _ENOUGH + 1)
