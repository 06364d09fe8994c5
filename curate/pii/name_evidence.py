"""The words around a name in free text and how much each says for one, read from name_evidence.yaml."""

from dataclasses import dataclass
from functools import cache

from curate.config import Section, parse_yaml
from curate.pii.name_words import Words, known, lists
from curate.resources import data_file


class _Group(Section):
    weight: float
    words: str


class Evidence(Section):
    """The file name_evidence.yaml; what each list means is said there."""

    ordinary: str
    front: dict[str, _Group]
    behind: dict[str, _Group]
    kindred: str
    hardly: str
    prepositions: str
    given: str
    rare: str
    unlikely: str
    doubled: str
    asked: str
    scarce: str
    owners: str
    called: str
    homely: str


class Weighed:
    """Words with a weight each, looked up before or behind a place of a text; the longest word counts."""

    def __init__(self, groups: dict[str, _Group]) -> None:
        self._weights: dict[str, float] = {}
        for group in groups.values():
            for word in group.words.split():
                self._weights.setdefault(word, group.weight)
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
    titles: Words
    short: Words
    family: Words
    kin: Words
    """Words after which a given name may stand alone."""
    asked: Words
    owners: Words

    def owned(self, text: str, place: int) -> bool:
        """Say whether a family word that belongs to somebody ends there: 我弟, 她儿子."""
        kin = self.kin.before(text, place)
        return kin > 0 and self.owners.before(text, place - kin) > 0


@cache
def evidence() -> Evidence:
    """Return the lists of name_evidence.yaml."""
    return Evidence.model_validate(parse_yaml(data_file("pii/name_evidence.yaml").read_text(encoding="utf-8")))


@cache
def around() -> _Around:
    """Return the lists as they are looked up."""
    data = evidence()
    return _Around(
        front=Weighed(data.front),
        behind=Weighed(data.behind),
        titles=Words(data.behind["title"].words.split()),
        short=Words(data.behind["short"].words.split()),
        family=Words(data.behind["family"].words.split()),
        kin=Words(data.front["kin"].words.split()),
        asked=Words(data.asked.split()),
        owners=Words(data.owners.split()),
    )


@cache
def given() -> frozenset[str]:
    """Return the characters that given names in free text are made of."""
    return (known().given | set(evidence().given) | scarce()) - known().function


@cache
def never() -> frozenset[str]:
    """Return the characters that no given name holds."""
    return (known().function | set(evidence().unlikely)) - given()


@cache
def scarce() -> frozenset[str]:
    """Return the characters that hardly stand anywhere but in given names."""
    return frozenset("".join(evidence().scarce.split()))


@cache
def ordinary() -> frozenset[str]:
    """Return the words that the segmentation knows beside those of its dictionary."""
    data = evidence()
    weighed = (group.words.split() for side in (data.front, data.behind) for group in side.values())
    stems = (stem for stem in lists().stems if not known().titles.after(stem, 1))
    every = {word for words in weighed for word in words} | set(data.ordinary.split()) | set(stems)
    endings = {word for word in lists().endings if word[0] not in "小老"}
    return frozenset(word for word in every | endings if 1 < len(word) <= 5)
