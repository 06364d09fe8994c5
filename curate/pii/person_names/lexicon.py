"""Lexicon of names.yaml, and detection of Chinese names at a position of a text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from curate.pii.patterns import CHINESE
from curate.pii.words import words


def lists() -> dict[str, list[str]]:
    """Return the lists of names.yaml."""
    return words("names")


def titles(*kinds: str) -> list[str]:
    """Return the titles of these kinds in names.yaml, such as `doctors` and `kin`."""
    return [word for kind in kinds for word in lists()[f"titles.{kind}"]]


def characters(name: str) -> frozenset[str]:
    """Return all characters of a list of names.yaml."""
    return frozenset("".join(lists()[name]))


class WordList:
    """Words of a list, looked up next to a position of a text; the longest match counts."""

    def __init__(self, words: list[str]) -> None:
        self._words = frozenset(words)
        self._lengths = sorted({len(word) for word in words}, reverse=True)

    def after(self, text: str, position: int) -> int:
        """Return the length of the longest word that begins at `position`; 0 without one."""
        return next((length for length in self._lengths if text[position : position + length] in self._words), 0)

    def before(self, text: str, position: int) -> int:
        """Return the length of the longest word that ends at `position`; 0 without one."""
        return next(
            (
                length
                for length in self._lengths
                if length <= position and text[position - length : position] in self._words
            ),
            0,
        )

    def __contains__(self, word: str) -> bool:
        return word in self._words


@dataclass(frozen=True)
class _Known:
    sure: frozenset[str]
    plain: frozenset[str]
    doubtful: frozenset[str]
    usual: frozenset[str]
    """Union of `sure`, `plain` and `doubtful`."""
    rare: frozenset[str]
    compounds: frozenset[str]
    given: frozenset[str]
    function: frozenset[str]
    starters: frozenset[str]
    stems: WordList
    words: WordList
    endings: WordList
    titles: WordList
    followers: WordList
    called: WordList
    ailing: WordList
    no_nicks: frozenset[str]


@cache
def known() -> _Known:
    """Return the lists as sets; a surname in several classes is in the most doubtful one only."""
    word_lists = lists()
    rare = characters("surnames.rare")
    doubtful = characters("surnames.doubtful") - rare
    plain = characters("surnames.plain") - doubtful - rare
    sure = characters("surnames.sure") - plain - doubtful - rare
    function = characters("function") | {"某"}
    return _Known(
        sure=sure,
        plain=plain,
        doubtful=doubtful,
        usual=sure | plain | doubtful,
        rare=rare,
        compounds=frozenset(word_lists["compounds.sure"] + word_lists["compounds.plain"]),
        given=characters("given") - function,
        function=function,
        starters=characters("starters"),
        stems=WordList(word_lists["stems"]),
        words=WordList(word_lists["words"]),
        endings=WordList(word_lists["endings"]),
        titles=WordList(titles("doctors", "people")),
        followers=WordList(word_lists["followers"]),
        called=WordList(word_lists["followers"] + word_lists["called_followers"]),
        ailing=WordList(word_lists["ailing_followers"]),
        no_nicks=frozenset(word_lists["no_nicks"]),
    )


def surnames() -> str:
    """Return the first characters of all surnames, as the content of a character class."""
    first = {compound[0] for compound in known().compounds}
    return "".join(sorted(known().usual | known().rare | first))


# What a Chinese name looks like at a place in a text: surname, given name, and what follows.

_CHARACTER = re.compile(CHINESE)
_COVERED = "*×○●〇·•・‧∙"
"""Characters after which a name continues: 王* and 张○○ are masked already, 约翰·史密斯 is not a Han Chinese name."""
_SEX_AND_AGE = re.compile(r"[男女][,，、;； ]{0,2}\d")
_BOUNDARY = 100
"""Sureness of a name's end at a boundary; at a following known word, the sureness is the word's length."""


@dataclass(frozen=True)
class Trust:
    """Evidence for a name from its context; decides which characters and words it may have."""

    field: bool = False
    """Whether a form field asks for a name: any surname and given name count, even if they look like a word."""
    called: bool = False
    """Whether a verb of naming precedes: words that can be names are names, and more text may follow."""
    aged: bool = False
    """Whether sex or age follows, as in a case report."""
    rare: bool = False
    """Whether given names may have unlisted characters."""


FIELD = Trust(field=True, rare=True)
CALLED = Trust(called=True, rare=True)
COLON = Trust(rare=True)
AGED = Trust(aged=True, rare=True)
LOOSE = Trust()


def is_chinese(text: str, position: int) -> bool:
    """Return whether the character at `position` is Chinese."""
    return 0 <= position < len(text) and _CHARACTER.match(text, position) is not None


def bounded(text: str, end: int) -> bool:
    """Return whether neither a Chinese character nor a sign in `_COVERED` follows."""
    return not is_chinese(text, end) and text[end : end + 1] not in tuple(_COVERED)


def name_at(text: str, start: int, trust: Trust) -> int | None:
    """Return the end of the surname and given name that begin at `start`; None if there are none.

    Of several lengths, one with a boundary after it is preferred, then the one with the longest following known word,
    then the longest name.
    """
    best, sureness = None, 0.0
    for surname, end in _ends(text, start, trust):
        if _plausible(text, start, surname, end, trust):
            candidate_sureness = _sureness(text, start, surname, end, trust)
            if candidate_sureness > sureness:
                best, sureness = end, candidate_sureness
    return best


def _ends(text: str, start: int, trust: Trust) -> Iterator[tuple[int, int]]:
    """Yield (length of the surname, end of the name) for all possible names at `start`, longest name first."""
    first = text[start : start + 1]
    if text[start : start + 2] in known().compounds:
        yield from ((2, start + 4), (2, start + 3))
    if first in known().usual or (first in known().rare and (trust.field or trust.called)):
        if trust.field and text[start + 1 : start + 2] in known().sure:
            yield 1, start + 4
        yield from ((1, start + 3), (1, start + 2))


def _plausible(text: str, start: int, surname: int, end: int, trust: Trust) -> bool:
    given_name = text[start + surname : end]
    if (
        end > len(text)
        or any(letter in known().function for letter in given_name)
        or not all(map(_CHARACTER.match, given_name))
    ):
        return False
    if known().titles.after(text, start + surname) or _SEX_AND_AGE.match(text, end - 1):
        return False
    return not is_word(text, start, end, trust)


def common(given_name: str) -> bool:
    """Return whether all characters are listed as common in given names."""
    return all(letter in known().given for letter in given_name)


def is_word(text: str, start: int, end: int, trust: Trust = LOOSE) -> bool:
    """Return whether a candidate is an ordinary word, or begins with one that cannot begin a name in this context."""
    if text[start:end] in known().words:
        return not (trust.field or trust.called or trust.aged)
    stem = known().stems.after(text, start)
    if not stem or not bounded(text, end) or not common(text[start + 1 : start + stem]):
        return bool(stem)
    return not (trust.field or trust.called or (trust.aged and stem < end - start))


def _sureness(text: str, start: int, surname: int, end: int, trust: Trust) -> float:
    sure = surname == 2 or text[start] in known().sure
    likely = sure or text[start] in known().plain
    plenty = common(text[start + surname : end])
    if bounded(text, end):
        return _BOUNDARY if plenty or trust.field or (trust.rare and (sure if trust.aged else likely)) else 0
    if not plenty or not is_chinese(text, end) or not (likely or trust.field):
        return 0
    followers = known().called if trust.called else known().followers
    follower = followers.after(text, end) or min(2, known().stems.after(text, end))
    if not follower and (sure or end - start == 3):
        follower = known().ailing.after(text, end)
    if follower or not (trust.called and sure):
        return follower
    return 0.5 if text[end - 1] not in known().starters else 0.4


def name_before(text: str, end: int, trust: Trust) -> int | None:
    """Return the start of the name that ends at `end`, with a boundary before it; None if there is none."""
    for start in (end - 4, end - 3, end - 2):
        free = start == 0 or (start > 0 and bounded(text, start - 1))
        if free and name_at(text[start:end], 0, trust) == end - start:
            return start
    return None


# Whether a rater is called by the name of a person: Alice, María García, wang_fang, 张三, 老王.

_CAPITAL = re.compile("[A-Z][a-z]+")


def is_name(rater: Sequence[str]) -> bool:
    """Return whether a rater's name consists of personal names only; `rater` are its words without accents.

    If all words are capitalised, it suffices that the first one is a listed given name.
    """
    if rater and all(map(_is_known_name, rater)):
        return True
    return len(rater) > 1 and all(map(_CAPITAL.fullmatch, rater)) and rater[0].casefold() in given_names()


def _is_known_name(word: str) -> bool:
    """Return whether a word is a personal name; given names listed only in people.yaml must be capitalised."""
    if not word.isascii():
        return _chinese(word)
    return word.casefold() in _latin() or (word[0].isupper() and word.casefold() in given_names())


def _chinese(word: str) -> bool:
    """Return whether a word is a Chinese name: 张三, 欧阳娜娜, 老王, 李工."""
    if word in known().words or word in known().stems or word in words("people")["no_person"]:
        return False
    if word[0] in words("people")["before"] and word[1:] in known().usual | known().compounds:
        return True
    surname = word[:2] if word[:2] in known().compounds else word[:1]
    given_name = word[len(surname) :]
    if surname not in known().usual | known().compounds or not given_name:
        return False
    sure = surname in known().sure | known().compounds and not set(given_name) & known().function
    usual = sure or set(given_name) <= known().given
    return given_name in words("people")["after"] or (len(given_name) <= 2 and usual)


@cache
def _latin() -> frozenset[str]:
    """Return the Latin names of names.yaml, in lower case."""
    return frozenset(name.casefold() for name in (*lists()["latin.surnames"], *lists()["latin.given"]))


@cache
def given_names() -> frozenset[str]:
    """Return all Latin given names, in lower case."""
    return frozenset(name.casefold() for name in (*lists()["latin.given"], *words("people")["given"]))
