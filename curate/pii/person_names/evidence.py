"""The words around a name in free text and how much each says for one, read from name_evidence.yaml."""

from dataclasses import dataclass
from functools import cache

from curate.pii.person_names.lexicon import WordList, known, lists
from curate.pii.words import words

LISTS = words("name_evidence")
"""The lists of name_evidence.yaml; what each means is said there."""


def weight(group: str) -> float:
    """Return the weight of a group of words, such as behind.do."""
    return float(LISTS[f"{group}.weight"][0])


def groups(side: str) -> dict[str, list[str]]:
    """Return the words by group, of those in front of a name or behind it."""
    parts = ((key.split("."), listed) for key, listed in LISTS.items())
    return {part[1]: listed for part, listed in parts if part[0] == side and part[-1] == "words"}


@cache
def characters(name: str) -> str:
    """Return all characters of a list of name_evidence.yaml."""
    return "".join(LISTS[name])


class Weighed:
    """Words with a weight each, looked up before or behind a place of a text; the longest word counts."""

    def __init__(self, side: str) -> None:
        self._weights: dict[str, float] = {}
        for group, listed in groups(side).items():
            for word in listed:
                self._weights.setdefault(word, weight(f"{side}.{group}"))
        self._lengths = sorted({len(word) for word in self._weights}, reverse=True)

    def before(self, text: str, place: int) -> tuple[int, float]:
        """Return length and weight of the longest word that ends at `place`; zeros without one."""
        for length in self._lengths:
            if length <= place and (weight := self._weights.get(text[place - length : place])) is not None:
                return length, weight
        return 0, 0.0

    def after(self, text: str, place: int) -> tuple[int, float]:
        """Return length and weight of the longest word that begins at `place`; zeros without one."""
        for length in self._lengths:
            weight = self._weights.get(text[place : place + length])
            if weight is not None and place + length <= len(text):
                return length, weight
        return 0, 0.0


@dataclass(frozen=True)
class _Around:
    front: Weighed
    behind: Weighed
    titles: WordList
    short: WordList
    family: WordList
    kin: WordList
    """Words after which a given name may stand alone."""
    asked: WordList
    owners: WordList

    def owned(self, text: str, place: int) -> bool:
        """Say whether a family word with an owner ends there: 我弟, 她儿子."""
        kin = self.kin.before(text, place)
        return kin > 0 and self.owners.before(text, place - kin) > 0


@cache
def around() -> _Around:
    """Return the lists as they are looked up."""
    return _Around(
        front=Weighed("front"),
        behind=Weighed("behind"),
        titles=WordList(LISTS["behind.title.words"]),
        short=WordList(LISTS["behind.short.words"]),
        family=WordList(LISTS["behind.family.words"]),
        kin=WordList(LISTS["front.kin.words"]),
        asked=WordList(LISTS["asked"]),
        owners=WordList(LISTS["owners"]),
    )


@cache
def given() -> frozenset[str]:
    """Return the characters that given names in free text are made of."""
    return (known().given | set(characters("given")) | scarce()) - known().function


@cache
def never() -> frozenset[str]:
    """Return the characters that no given name holds."""
    return (known().function | set(characters("unlikely"))) - given()


@cache
def scarce() -> frozenset[str]:
    """Return the characters that hardly stand anywhere but in given names."""
    return frozenset(characters("scarce"))


@cache
def ordinary() -> frozenset[str]:
    """Return the words that the segmentation knows beside those of its dictionary."""
    weighed = (word for name, listed in LISTS.items() if name.endswith(".words") for word in listed)
    stems = (stem for stem in lists()["stems"] if not known().titles.after(stem, 1))
    endings = (word for word in lists()["endings"] if word[0] not in "小老")
    return frozenset(word for word in (*weighed, *LISTS["ordinary"], *stems, *endings) if 1 < len(word) <= 5)
