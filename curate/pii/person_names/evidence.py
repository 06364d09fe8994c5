"""Words around names in free text, with weights that add up to evidence; read from name_evidence.yaml."""

from dataclasses import dataclass
from functools import cache

from curate.pii.person_names.lexicon import WordList, known, lists
from curate.pii.words import words

LISTS = words("name_evidence")
"""Key -> word list of name_evidence.yaml, which documents the keys."""


def weight(group: str) -> float:
    """Return the weight of a group of words, such as `behind.do`."""
    return float(LISTS[f"{group}.weight"][0])


def groups(side: str) -> dict[str, list[str]]:
    """Return group -> words, for the words before a name (side `front`) or after it (`behind`)."""
    entries = ((key.split("."), listed) for key, listed in LISTS.items())
    return {path[1]: listed for path, listed in entries if path[0] == side and path[-1] == "words"}


@cache
def characters(name: str) -> str:
    """Return all characters of a list of name_evidence.yaml."""
    return "".join(LISTS[name])


class Weighed:
    """Words with weights, looked up next to a position of a text; the longest match counts."""

    def __init__(self, side: str) -> None:
        self._weights: dict[str, float] = {}
        for group, listed in groups(side).items():
            for word in listed:
                self._weights.setdefault(word, weight(f"{side}.{group}"))
        self._lengths = sorted({len(word) for word in self._weights}, reverse=True)

    def before(self, text: str, position: int) -> tuple[int, float]:
        """Return length and weight of the longest word that ends at `position`; zeros without one."""
        for length in self._lengths:
            if length <= position and (weight := self._weights.get(text[position - length : position])) is not None:
                return length, weight
        return 0, 0.0

    def after(self, text: str, position: int) -> tuple[int, float]:
        """Return length and weight of the longest word that begins at `position`; zeros without one."""
        for length in self._lengths:
            weight = self._weights.get(text[position : position + length])
            if weight is not None and position + length <= len(text):
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
    """Kinship words after which a given name may occur alone."""
    asked: WordList
    owners: WordList

    def owned(self, text: str, position: int) -> bool:
        """Return whether a kinship word with a possessive ends at `position`: 我弟, 她儿子."""
        kin = self.kin.before(text, position)
        return kin > 0 and self.owners.before(text, position - kin) > 0


@cache
def around() -> _Around:
    """Return the word lists as lookup tables."""
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
    """Return the characters of given names in free text."""
    return (known().given | set(characters("given")) | scarce()) - known().function


@cache
def never() -> frozenset[str]:
    """Return the characters that do not occur in given names."""
    return (known().function | set(characters("unlikely"))) - given()


@cache
def scarce() -> frozenset[str]:
    """Return the characters that rarely occur outside given names."""
    return frozenset(characters("scarce"))


@cache
def ordinary() -> frozenset[str]:
    """Return the words that extend the dictionary of the segmentation (`lattice`)."""
    weighed = (word for name, listed in LISTS.items() if name.endswith(".words") for word in listed)
    stems = (stem for stem in lists()["stems"] if not known().titles.after(stem, 1))
    endings = (word for word in lists()["endings"] if word[0] not in "小老")
    return frozenset(word for word in (*weighed, *LISTS["ordinary"], *stems, *endings) if 1 < len(word) <= 5)
