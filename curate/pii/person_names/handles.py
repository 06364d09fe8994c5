"""Personal names in handles (@-names) of running text: @王小明医生, @dr_john_smith, @zhangwei1985."""

import re
from collections.abc import Iterator, Sequence

from curate.pii.patterns import narrow
from curate.pii.person_names.lexicon import given_names, is_name, known, lists
from curate.pii.person_names.weights import behind, longest
from curate.pii.rules import RuleFile, RuleRecogniser
from curate.pii.words import one_of, words

_LISTS = words("handles")
_SURNAMES, _NOBODY, _TITLE_WORDS = (frozenset(_LISTS[name]) for name in ("surnames", "no_person", "titles"))
_NO_PARTS = frozenset(_LISTS["institutions"] + _LISTS["joints"])
_PINYIN_SURNAMES = frozenset(name.casefold() for name in lists()["latin.surnames"])
_RULES = RuleFile("handles", lambda: {"pinyin_surname": one_of(_PINYIN_SURNAMES)})
_PATTERN = _RULES.pattern
_TITLES = ("dr", "doctor", "prof", "nurse", "mr", "mrs", "ms", "miss")
"""Titles that may precede a surname alone, as in @DrPatel; prefixes such as `real` and `its` are weaker evidence."""
_UNMARKED, _MARKED = 7, 6
"""Minimum number of letters of a pinyin name, without and with digits or _ in the handle; with them, words are rare."""


def _handles(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    yield from _chinese(text)
    yield from _latin(text)


name_handle = RuleRecogniser(_RULES, "name_handle", _handles)


def _chinese(text: str) -> Iterator[tuple[int, int]]:
    for match in _PATTERN("chinese_handle").finditer(text):
        run, start = match["name"], match.start("name")
        titled = _PATTERN("titled").match(run)
        name = titled["name"] if titled else run
        if titled is None and (length := _before_verb(run)):
            yield start, start + length
        elif not _PATTERN("institution").search(name) and _is_full_name(name):
            yield start, start + len(name)
        elif (end := longest(text, start)) is not None and behind(text, end) > 0:  # the sentence goes on: @许志强说得对
            yield start, end


def _before_verb(run: str) -> int:
    """Return the length of the longest name before a verb at the start of `run`; 0 if there is none."""
    longest = 4 if run[:2] in known().compounds else 3
    for length in range(longest, 1, -1):
        name = run[:length]
        if name[-1] in _LISTS["speech"]:
            continue
        surname = 2 if name[:2] in known().compounds else 1
        if (
            _PATTERN("verb").match(run, length)
            and _is_full_name(name)
            and not _PATTERN("institution").search(name)
            and surname < length
        ):
            return length
    return 0


def _is_full_name(name: str) -> bool:
    """Return whether a word is a surname with a given name; a surname alone or a nickname is not."""
    return (
        len(name) > 2 - (name[:1] in known().sure) and name[0] not in "小老阿" and name[-1] != "某" and is_name([name])
    )


def _latin(text: str) -> Iterator[tuple[int, int]]:
    for match in _PATTERN("latin_handle").finditer(text):
        name = match["id"].rstrip("._-")
        if not _PATTERN("host").search(name) and _person(
            [piece.casefold() for piece in _PATTERN("piece").findall(name)], name
        ):
            yield match.start("id"), match.start("id") + len(name)


def _person(pieces: Sequence[str], name: str) -> bool:
    joined = "".join(pieces)
    if joined in _NOBODY or not _NO_PARTS.isdisjoint(pieces) or name.isupper():
        return False
    name_parts = [piece for piece in pieces if piece not in _TITLE_WORDS]
    if len(name_parts) == 1:
        titled = pieces[0] in _TITLES and name_parts[0] in _SURNAMES
        return titled or _is_one_word_name(name_parts[0], fewest=_MARKED if re.search("[0-9_]", name) else _UNMARKED)
    if not 2 <= len(name_parts) <= 3:
        return False
    if name_parts[0] in given_names() or (name_parts[-1] in given_names() and len(name_parts[0]) > 1):
        return True
    return _has_name_in_context(name_parts, titled=len(name_parts) < len(pieces)) or _spelt(name_parts, name)


def _has_name_in_context(name_parts: Sequence[str], *, titled: bool) -> bool:
    """Return whether a given name is between two words, or a surname follows an initial or a title."""
    if len(name_parts) == 3 and name_parts[1] in given_names() and min(map(len, name_parts)) > 3:
        return True
    return name_parts[-1] in _SURNAMES and (len(name_parts[0]) == 1 or titled)


def _spelt(name_parts: Sequence[str], name: str) -> bool:
    """Return whether the parts are a name in pinyin; a short name needs capitals and digits."""
    joined, surnames = "".join(name_parts), _PINYIN_SURNAMES
    if _PATTERN("capital_syllables").fullmatch(name) and _PATTERN("pinyin").fullmatch(joined):
        return name_parts[0] in surnames
    return _pinyin(joined) and (name_parts[0] in surnames or name_parts[-1] in surnames)


def _is_one_word_name(word: str, fewest: int) -> bool:
    """Return whether a word is a given name, a given name with a surname, or a name in pinyin."""
    if word in given_names():
        return len(word) > 3
    cuts = range(3, len(word) - 2)
    return any(word[:cut] in given_names() and word[cut:] in _SURNAMES for cut in cuts) or _pinyin(word, fewest)


def _pinyin(word: str, fewest: int = _UNMARKED) -> bool:
    """Return whether a word is a surname and one or two syllables in pinyin, with at least `fewest` letters."""
    return len(word) >= fewest and _PATTERN("pinyin").fullmatch(word) is not None
