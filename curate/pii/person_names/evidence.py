"""Words around names in free text, with weights that add up to evidence; read from name_evidence.yaml."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from curate.pii.person_names.lexicon import WordList, known, lists
from curate.pii.rules import RuleFile
from curate.pii.words import either, words

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


# Patterns of names in free text: classes of characters are computed, all else is in name_evidence.yaml.

LEADS = 3.5
"""Minimum weight of a preceding word that permits any word after a nickname."""
_NO_CUES = frozenset((*"为為系是名", *LISTS["often"]))
"""Words that lead to a name and are no cues, for they are too frequent."""


def _class(characters: Iterable[str]) -> str:
    """Return the content of a character class with ranges, so that the automaton stays small."""
    codes = sorted(set(map(ord, characters)))
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(chr(low) if low == high else f"{chr(low)}-{chr(high)}" for low, high in ranges)


def _classes() -> dict[str, str]:
    """Return the classes of characters by name."""
    fronts, behinds = groups("front"), groups("behind")
    first = {*known().usual, *characters("rare"), *(word[0] for word in known().compounds)}
    everyday = known().rare - first
    strong = (word[-1] for group, listed in fronts.items() if weight(f"front.{group}") >= LEADS for word in listed)
    classes: dict[str, Iterable[str]] = {
        "first": first,
        "everyday": everyday,
        "first_or_everyday": first | everyday,
        "sure": known().sure,
        "likely": known().sure | known().plain,
        "given_signs": (letter for letter in map(chr, range(0x4E00, 0xA000)) if letter not in never()),
        "scarce_signs": scarce(),
        "front_last": (word[-1] for listed in fronts.values() for word in listed),
        "behind_first": (word[0] for listed in behinds.values() for word in listed),
        "strong": strong,
        "nick_surname": known().usual | set(characters("rare")),
        "nick_given": known().given,
    }
    return {name: _class(letters) for name, letters in classes.items()}


def _computed() -> dict[str, str]:
    fronts = groups("front")
    cues = (word for group in ("label", "kin", "role") for word in fronts[group] if word not in _NO_CUES)
    return {"cues": either(cues), **_classes()}


RULES = RuleFile("name_evidence", _computed)
PATTERN = RULES.pattern
