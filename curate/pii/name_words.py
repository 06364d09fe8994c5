"""The words of names.yaml: surnames, given names, titles, labels, and the words that look like names."""

from dataclasses import dataclass
from functools import cache

from curate.core.config import Section, parse_yaml
from curate.system.resources import data_file


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


class NameLists(Section):
    """The file names.yaml; what each list means is said there."""

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
    ailing_followers: list[str]
    introductions: _Introductions
    labels: _Labels
    minority: list[str]
    foreign: str
    sounds: list[str]
    institutions: list[str]
    no_nicks: list[str]
    latin: _Latin


@cache
def lists() -> NameLists:
    """Return the lists of names.yaml."""
    return NameLists.model_validate(parse_yaml(data_file("pii/names.yaml").read_text(encoding="utf-8")))


class WordList:
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
        stems=WordList(data.stems),
        words=WordList(data.words),
        endings=WordList(data.endings),
        titles=WordList(data.titles.doctors + data.titles.people),
        followers=WordList(data.followers),
        called=WordList(data.followers + data.called_followers),
        ailing=WordList(data.ailing_followers),
        no_nicks=frozenset(data.no_nicks),
    )


def surnames() -> str:
    """Return every character that a name can begin with, for a character class."""
    first = {compound[0] for compound in known().compounds}
    return "".join(sorted(known().usual | known().rare | first))
