"""Whether a rater is called by the name of a person: Alice, María García, wang_fang, 张三, 老王.

These are names of columns, not texts, so that a word alone must do: a Latin one is in a list, a Chinese one is a
surname with one or two characters that given names are made of (any, after one that is hardly anything else), and no
word of the language.
"""

import re
from collections.abc import Sequence
from functools import cache

from curate.pii.person_names.words import known, lists
from curate.pii.words import words

_CAPITAL = re.compile("[A-Z][a-z]+")


def is_name(rater: Sequence[str]) -> bool:
    """Say whether a rater is called by names of people alone; these are its words, as written but without accents.

    The second word of a full name may be unknown if both are written with a capital.
    """
    if rater and all(map(_known, rater)):
        return True
    return len(rater) > 1 and all(map(_CAPITAL.fullmatch, rater)) and rater[0].casefold() in given_names()


def _known(word: str) -> bool:
    """Say whether a word is a name; those of the world must begin with a capital."""
    if not word.isascii():
        return _chinese(word)
    return word.casefold() in _latin() or (word[0].isupper() and word.casefold() in given_names())


def _chinese(word: str) -> bool:
    """Say whether a word is a Chinese name: 张三, 欧阳娜娜, 老王, 李工."""
    if word in known().words or word in known().stems or word in words("people")["no_person"]:
        return False
    if word[0] in words("people")["before"] and word[1:] in known().usual | known().compounds:
        return True
    surname = word[:2] if word[:2] in known().compounds else word[:1]
    given = word[len(surname) :]
    if surname not in known().usual | known().compounds or not given:
        return False
    sure = surname in known().sure | known().compounds and not set(given) & known().function
    usual = sure or set(given) <= known().given
    return given in words("people")["after"] or (len(given) <= 2 and usual)


@cache
def _latin() -> frozenset[str]:
    """Return the names of names.yaml, in small letters."""
    return frozenset(name.casefold() for name in (*lists()["latin.surnames"], *lists()["latin.given"]))


@cache
def given_names() -> frozenset[str]:
    """Return all given names, in small letters."""
    return frozenset(name.casefold() for name in (*lists()["latin.given"], *words("people")["given"]))
