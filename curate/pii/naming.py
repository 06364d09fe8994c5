"""What a Chinese name looks like at a place in a text: surname, given name, and what follows. The lists are in person.yaml."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from curate.config import Section, parse_yaml
from curate.resources import data_file

CJK = "\u3400-\u9fff\U00020000-\U0003ffff"
_CHARACTER = re.compile(f"[{CJK}]")
_COVERED = "*×○●〇·•・‧∙"
"""After a name they say that it goes on: 王*, 张○○ are covered up already, 约翰·史密斯 is no Chinese name."""
_SEX_AND_AGE = re.compile(r"[男女][,，、;； ]{0,2}\d")
_BOUNDARY = 100
"""How sure a name's end is; a following word counts its characters."""


class _Surnames(Section):
    sure: str
    plain: str
    doubtful: str
    rare: str


class _Compounds(Section):
    sure: list[str]
    plain: list[str]


class _Titles(Section):
    doctors: list[str]
    people: list[str]
    kin: list[str]
    one: list[str]


class _Introductions(Section):
    persons: list[str]
    kin: list[str]
    patients: list[str]


class _Labels(Section):
    plain: list[str]
    colon: list[str]


class _Latin(Section):
    surnames: list[str]
    given: list[str]
    eponyms: list[str]
    no_names: list[str]


class Lists(Section):
    """The file person.yaml; what each list means is said there."""

    surnames: _Surnames
    compounds: _Compounds
    given: str
    function: str
    starters: str
    stems: list[str]
    words: list[str]
    endings: list[str]
    titles: _Titles
    leaders: list[str]
    calls: list[str]
    followers: list[str]
    called_followers: list[str]
    introductions: _Introductions
    labels: _Labels
    minority: list[str]
    foreign: str
    sounds: list[str]
    institutions: list[str]
    latin: _Latin


@cache
def lists() -> Lists:
    """Return the lists of person.yaml."""
    return Lists.model_validate(parse_yaml(data_file("pii/person.yaml").read_text(encoding="utf-8")))


class Words:
    """Words of a list, looked up at a place of a text; the longest one counts."""

    def __init__(self, words: list[str]) -> None:
        self._words = frozenset(words)
        self._lengths = sorted({len(word) for word in words}, reverse=True)

    def after(self, text: str, place: int) -> int:
        """Return how long the longest word is that begins at `place`; 0 without one."""
        return next((n for n in self._lengths if text[place : place + n] in self._words), 0)

    def before(self, text: str, place: int) -> int:
        """Return how long the longest word is that ends at `place`; 0 without one."""
        return next((n for n in self._lengths if n <= place and text[place - n : place] in self._words), 0)

    def __contains__(self, word: str) -> bool:
        return word in self._words


@dataclass(frozen=True)
class _Known:
    sure: frozenset[str]
    plain: frozenset[str]
    doubtful: frozenset[str]
    usual: frozenset[str]
    """All of these three."""
    rare: frozenset[str]
    compounds: frozenset[str]
    given: frozenset[str]
    function: frozenset[str]
    starters: frozenset[str]
    stems: Words
    words: Words
    endings: Words
    titles: Words
    followers: Words
    called: Words


@cache
def known() -> _Known:
    """Return the lists as sets: a surname is of one class, the more doubtful one."""
    data = lists()
    rare = frozenset(data.surnames.rare)
    doubtful = frozenset(data.surnames.doubtful) - rare
    plain = frozenset(data.surnames.plain.replace(" ", "")) - doubtful - rare
    sure = frozenset(data.surnames.sure.replace(" ", "")) - plain - doubtful - rare
    function = frozenset(data.function.replace(" ", "") + "某")
    return _Known(
        sure=sure,
        plain=plain,
        doubtful=doubtful,
        usual=sure | plain | doubtful,
        rare=rare,
        compounds=frozenset(data.compounds.sure + data.compounds.plain),
        given=frozenset(data.given.replace(" ", "")) - function,
        function=function,
        starters=frozenset(data.starters),
        stems=Words(data.stems),
        words=Words(data.words),
        endings=Words(data.endings),
        titles=Words(data.titles.doctors + data.titles.people),
        followers=Words(data.followers),
        called=Words(data.followers + data.called_followers),
    )


@dataclass(frozen=True)
class Trust:
    """How far the words in front vouch for a name."""

    field: bool = False
    """A form asks for a name here: any surname, any given name, however much it looks like a word."""
    called: bool = False
    """Somebody is called so: words that can be names are names, and more may follow."""
    aged: bool = False
    """Sex or age follow, as after the name in a case report."""
    rare: bool = False
    """Given names may have characters that are not in the list."""


FIELD = Trust(field=True, rare=True)
CALLED = Trust(called=True, rare=True)
COLON = Trust(rare=True)
AGED = Trust(aged=True, rare=True)
LOOSE = Trust()


def surnames() -> str:
    """Return every character that a name can begin with, for a character class."""
    first = {compound[0] for compound in known().compounds}
    return "".join(sorted(known().usual | known().rare | first))


def is_chinese(text: str, place: int) -> bool:
    """Say whether a Chinese character stands at a place."""
    return 0 <= place < len(text) and _CHARACTER.match(text, place) is not None


def bounded(text: str, end: int) -> bool:
    """Say whether no Chinese character follows, nor a sign that covers the rest of a name."""
    return not is_chinese(text, end) and text[end : end + 1] not in tuple(_COVERED)


def name_at(text: str, start: int, trust: Trust) -> int | None:
    """Return where the surname and given name that begin at `start` end; None if there are none.

    Of the possible lengths the one counts that a boundary follows, else the longest word, else the longer name.
    """
    best, sureness = None, 0.0
    for surname, end in _ends(text, start, trust):
        if _plausible(text, start, surname, end, trust):
            more = _sureness(text, start, surname, end, trust)
            if more > sureness:
                best, sureness = end, more
    return best


def _ends(text: str, start: int, trust: Trust) -> Iterator[tuple[int, int]]:
    """Yield the length of the surname and the end of the name, longest name first."""
    first = text[start : start + 1]
    if text[start : start + 2] in known().compounds:
        yield from ((2, start + 4), (2, start + 3))
    if first in known().usual or (first in known().rare and (trust.field or trust.called)):
        if trust.field and text[start + 1 : start + 2] in known().sure:
            yield 1, start + 4
        yield from ((1, start + 3), (1, start + 2))


def _plausible(text: str, start: int, surname: int, end: int, trust: Trust) -> bool:
    given = text[start + surname : end]
    if end > len(text) or any(letter in known().function for letter in given) or not _written(given):
        return False
    if known().titles.after(text, start + surname) or _SEX_AND_AGE.match(text, end - 1):
        return False
    return not is_word(text, start, end, trust)


def _written(given: str) -> bool:
    return all(_CHARACTER.match(letter) for letter in given)


def common(given: str) -> bool:
    """Say whether all characters are ones that given names are made of."""
    return all(letter in known().given for letter in given)


def is_word(text: str, start: int, end: int, trust: Trust = LOOSE) -> bool:
    """Say whether what looks like a name is an ordinary word, or begins with one that no name does in such a place."""
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
    if follower or not (trust.called and sure):
        return follower
    return 0.5 if text[end - 1] not in known().starters else 0.4
