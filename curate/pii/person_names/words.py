"""The words of names.yaml: surnames, given names, titles, labels, and the words that look like names."""

from dataclasses import dataclass
from functools import cache

from curate.pii.words import words


def lists() -> dict[str, list[str]]:
    """Return the lists of names.yaml."""
    return words("names")


def titles(*kinds: str) -> list[str]:
    """Return the titles of some kinds: doctors, people, kin, one."""
    return [word for kind in kinds for word in lists()[f"titles.{kind}"]]


def characters(name: str) -> frozenset[str]:
    """Return all characters of a list of names.yaml."""
    return frozenset("".join(lists()[name]))


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
        compounds=frozenset(data["compounds.sure"] + data["compounds.plain"]),
        given=characters("given") - function,
        function=function,
        starters=characters("starters"),
        stems=WordList(data["stems"]),
        words=WordList(data["words"]),
        endings=WordList(data["endings"]),
        titles=WordList(titles("doctors", "people")),
        followers=WordList(data["followers"]),
        called=WordList(data["followers"] + data["called_followers"]),
        ailing=WordList(data["ailing_followers"]),
        no_nicks=frozenset(data["no_nicks"]),
    )


def surnames() -> str:
    """Return every character that a name can begin with, for a character class."""
    first = {compound[0] for compound in known().compounds}
    return "".join(sorted(known().usual | known().rare | first))
