"""Names after a kinship word, in Chinese, English and five other languages."""

import re
import unicodedata
from collections.abc import Iterator

from curate.pii.patterns import narrow
from curate.pii.person_names.evidence import LISTS, PATTERN, RULES, around
from curate.pii.person_names.lattice import is_word
from curate.pii.person_names.lexicon import given_names
from curate.pii.person_names.weights import NAME, behind, front, gain, given_weight
from curate.pii.rules import RuleFile, RuleRecogniser
from curate.pii.words import one_of, words

# Given names without surname after a kinship word in free text: 老公建国送我来的, 女婿向阳, 孙子浩然，5岁.

_BAR = 5.0
_SAID, _DONE = 4.0, 2.5
"""Minimum evidence after a given name: for one that is also a word, and for any other."""
_WORD_WEIGHT = 5.0
"""Additional weight of a given name that is also a word, because few words are on the list and a verb must follow."""
_OWNED_WEIGHT = 3.0
"""Additional weight of a kinship word with a possessive (我弟, 她儿子)."""
_CALLED_NAMES = frozenset(LISTS["called"])


def _given_alone(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    for match in PATTERN("kin_and_given").finditer(text):
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


name_given = RuleRecogniser(RULES, "name_given", _given_alone)

# Names after a kinship word in German, French, Spanish, Italian and Portuguese: mein Mann Jürgen, mon fils Mathéo.

_LISTS = words("kin")
_GIVEN = frozenset(name for name in given_names() - set(_LISTS["small"]) if len(name) > 2 and name.isascii())
"""Given names that are also recognised in lower case."""
_RULES = RuleFile("kin", lambda: {"given": one_of(_GIVEN)})
_PATTERN = _RULES.pattern
_NOT_ABROAD = frozenset(_LISTS["abroad.no_names"])
_VERBS = frozenset(_LISTS["abroad.verbs"])
_GIVEN_ABROAD = (given_names() | {given.casefold() for given in _LISTS["abroad.given"]}) - {
    given.casefold() for given in _LISTS["abroad.doubtful"]
}
_LONGEST = 60
"""Number of characters before a kinship word that are searched for its possessive."""


def _abroad(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of names after kinship words in a narrowed text.

    A listed given name needs no further evidence. Any other name needs a verb of a person after it and, after a comma,
    a second comma before that verb. German nouns are capitalised, and a German clause may end with its verb: in that
    position, or with a noun ending, an unlisted word is not a name.
    """
    for match in _PATTERN("behind_kin").finditer(text):
        front = text[max(0, match.start() - _LONGEST) : match.start()]
        owner = _PATTERN("owned_abroad").search(front)
        if owner is None or _ordinary(match["first"]):
            continue
        start, end = match.start("first"), _end(text, match.end("first"))
        letters = unicodedata.normalize("NFD", match["first"].casefold())
        plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
        known_name = plain in _GIVEN_ABROAD or plain.split("-")[0] in _GIVEN_ABROAD
        if known_name or _vouched_abroad(match, end, front[: owner.start()]):
            yield start, end


def _end(text: str, end: int) -> int:
    """Return the end of the surnames after a given name; the first word that is no name ends them."""
    tail = _PATTERN("names_behind").match(text, end)
    for name in _PATTERN("name_abroad").finditer(text, end, tail.end()) if tail else ():
        if _ordinary(name[0]):
            break
        end = name.end()
    return end


def _vouched_abroad(match: re.Match[str], end: int, front: str) -> bool:
    """Return whether a verb of a person follows unlisted words; in German not if it ends the clause."""
    text, name = match.string, match.string[match.start("first") : end]
    verb = _PATTERN("verb_abroad").match(text, end)
    if verb is None or ("," in match["link"]) != bool(verb["comma"]) or _PATTERN("noun_ending").match(name.casefold()):
        return False
    if match["kin"][0].islower():
        return True
    goes_on = verb["more"] is not None and not _PATTERN("and_abroad").match(text, verb.end() - len(verb["more"]))
    return (goes_on or " " in name) and _PATTERN("verb_last").search(front) is None


def _ordinary(word: str) -> bool:
    return word in _NOT_ABROAD or word.casefold() in _VERBS


# Names after an English kinship word with a possessive: my husband John Smith, his mother Maria.

_NOT = frozenset(_LISTS["no_names"])
_DOUBTFUL = frozenset(_LISTS["doubtful"])


def _of_kin(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    yield from _abroad(text)
    for match in _PATTERN("owned").finditer(text):
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
    follows = _PATTERN("verb").match(text, end) is not None
    if first.casefold() in given_names() and first not in _DOUBTFUL:
        return True
    if first in _NOT and first not in _DOUBTFUL:
        return False
    if "," in link or "(" in link:
        return _PATTERN("apposition_end").match(text, end) is not None
    return follows or link.strip() != ""


name_of_kin = RuleRecogniser(_RULES, "name_of_kin", _of_kin)
