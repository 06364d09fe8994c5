"""Hospitals with an unlisted proper name (`康华医院出院带药`), recognised by characters and context.

The words that occur in no name are removed from the characters before the ending. If a name is left, its typical
characters and the words before and after it count as evidence.
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
"""Minimum total weight of a name and its context."""


@cache
def no_name() -> re.Pattern[str]:
    """Return a pattern for words that occur in no name (`决定`, `出生后`)."""
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
    """Yield (start, end) of unlisted names of hospitals."""
    for last in ending.finditer(text):
        run = _RUN.search(text, max(0, last.start() - 10), last.start())
        if run is None or last[0][-1] not in "院部所":
            continue
        kinds = _last_kinds().search(text, run.start(), last.start())
        end = kinds.start() if kinds else last.start()
        start = _start(text, run.start(), end)
        evidence = min(2, in_front(text, start)) + min(2, behind(text, last.end()))
        if _is_name(text[start:end], kinds[0] if kinds else "", evidence):
            yield start, last.end()


def _start(text: str, start: int, end: int) -> int:
    """Return the start of a name: after the last word that occurs in no name."""
    for match in no_name().finditer(text, start, end):
        start = match.end()
    for match in _small().finditer(text, start, max(start, end - 2)):
        start = match.end()
    return start


def _is_name(stem: str, kinds: str, evidence: int) -> bool:
    """Return whether a stem, the hospital kinds after it, and the evidence of the context make a name."""
    if not 2 <= len(stem) <= _LONGEST or len(_kinds().sub("", stem)) < 2 or not evidence:
        return False
    proper = set(stem) <= _PROPER and len(stem) <= 4
    telling = any(kind in kinds for kind in words("institutions")["telling_kinds"])
    if not proper and _small().search(stem):
        return False
    return 2 * (proper or telling) + evidence >= (_ENOUGH if proper or telling else _ENOUGH + 1)
