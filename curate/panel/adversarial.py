"""Adversarial controls: passages made so that a judge which counts words, or obeys them, calls them relevant.

A judge can agree well with people on ordinary pairs and still grade query words pasted into a random passage as
relevant (Alaofi et al. 2024, LLMs can be fooled into labelling a document as relevant). Six families are made: random
passages with the query's words, three times as long, with a claim of relevance, or with an order to the grader; and
positives turned into their negation, or without the sentences that answer. All of them should be graded not relevant.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from curate.core.config import Section, check, read_yaml
from curate.core.sampling import generator, shuffled
from curate.core.scale import Scale
from curate.llm.passages import sentences
from curate.stats.sample_estimates import Estimate, wilson
from curate.system.resources import data_file

RANDOM = ("query words", "padding", "claim", "injection")
"""Families that are made of random passages."""
MADE = ("negated", "answer removed")
"""Families that are made of positives."""
FAMILIES = (*RANDOM, *MADE)
NEEDED = {
    **dict.fromkeys(RANDOM, "random passages that no pool holds"),
    "padding": "random passages that no pool holds, enough for three times the length",
    "negated": "positives with a sentence that a rule of negation of their language applies to",
    "answer removed": "positives of three sentences or more",
}
"""Family -> what it is made of."""
TIMES = 3
"""How many times as long a padded passage is."""
ID = "adversarial "
"""What ids of these passages begin with."""
Pair = tuple[str, str]
"""A query's id, and a passage."""


class _File(Section):
    marks: Mapping[str, float]
    claims: Mapping[str, str]
    injections: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class AdversarialControl:
    """One passage, at a query that it does not answer."""

    family: str
    query_id: str
    doc_id: str
    text: str


@dataclass(frozen=True)
class FamilyResult:
    """How a judge did on one family."""

    right: Estimate | None
    """Share that it graded not relevant, with its interval; None where it answered none."""
    mark: float
    failed: bool
    """Whether even the upper end of the interval is below the mark."""
    unanswered: int


@cache
def _file() -> _File:
    path = data_file("panel/adversarial.yaml")
    return check(_File, read_yaml(path), str(path))


def marks() -> Mapping[str, float]:
    """Return family -> share of right answers that a judge must be able to reach."""
    return _file().marks


@dataclass(frozen=True)
class Recipe:
    """What passages are made with."""

    queries: Mapping[str, str]
    """Id -> text."""
    best: str
    """The best grade of the scale."""
    language: str
    negate: Callable[[str], str | None]
    """Returns a sentence turned into its negation; None where no rule applies."""
    seed: int

    def make(self, random: Sequence[Pair], positives: Sequence[Pair], size: int) -> list[AdversarialControl]:
        """Return at most `size` controls of each family; fewer where passages are too few or no rule applies.

        `random` are passages that no query's pool holds, at a query each; `positives` are passages that people call
        relevant to theirs. Equal arguments give equal controls.
        """
        found = []
        for family in FAMILIES:
            source = random if family in RANDOM else positives
            pairs = shuffled(list(source), self.seed, "adversarial", family)
            texts = ((query, self._text(family, query, text, at, pairs)) for at, (query, text) in enumerate(pairs))
            made = [(query, text) for query, text in texts if text is not None][:size]
            found += [
                AdversarialControl(family, query, f"{ID}{family} {number:03}", text)
                for number, (query, text) in enumerate(made, start=1)
            ]
        return found

    def _text(self, family: str, query: str, text: str, at: int, pairs: Sequence[Pair]) -> str | None:
        asked = self.queries[query]
        if family == "query words":
            return self._planted(asked, text, at)
        if family == "padding":
            others = [pairs[(at + step) % len(pairs)][1] for step in range(1, len(pairs))]
            return _padded(text, others)
        if family == "claim":
            return f"{_turn(self._claims(), at)}\n{text}"
        if family == "injection":
            return f"{text}\n{_turn(self._orders(), at)}".replace("{best}", self.best)
        if family == "negated":
            return self._negated(text)
        return _answerless(asked, text)

    def _planted(self, asked: str, text: str, at: int) -> str:
        """Return a passage with the query in front, in the middle and at the end."""
        parts = sentences(text) or [text]
        middle = generator(self.seed, "adversarial", "middle", at).randrange(len(parts) + 1)
        return "\n".join([asked, *parts[:middle], asked, *parts[middle:], asked])

    def _claims(self) -> list[str]:
        own = self.language.partition("-")[0]
        claims = _file().claims
        return [claims[name] for name in sorted(claims, key=lambda name: (name != own, name))]

    def _orders(self) -> list[str]:
        orders = _file().injections
        own = self.language.partition("-")[0]
        return [text for name in sorted(orders, key=lambda name: (name != own, name)) for text in orders[name]]

    def _negated(self, text: str) -> str | None:
        """Return a passage of which every sentence that a rule applies to says the opposite; None if none does."""
        parts = [(sentence, self.negate(sentence)) for sentence in sentences(text)]
        if not any(turned for _, turned in parts):
            return None
        return " ".join(turned or part for part, turned in parts)


def _turn(texts: Sequence[str], at: int) -> str:
    return texts[at % len(texts)]


def _padded(text: str, others: Sequence[str]) -> str | None:
    """Return a passage made `TIMES` as long by sentences of other random passages; None without enough of them."""
    parts, length = [text], len(text)
    for part in (sentence for other in others for sentence in sentences(other)):
        if length >= TIMES * len(text):
            break
        parts.append(part)
        length += len(part)
    return "\n".join(parts) if length >= TIMES * len(text) else None


def _answerless(asked: str, text: str) -> str | None:
    """Return the sentence that says most of the question again, alone; None where there are fewer than three.

    The answer stands in what says something else, so a passage of which only the echo of the question is left answers
    nothing.
    """
    parts = sentences(text)
    if len(parts) < 3:
        return None
    known = set(_pieces(asked))
    return max(parts, key=lambda part: (sum(piece in known for piece in _pieces(part)) / max(len(part), 1), part))


def _pieces(text: str) -> Iterator[str]:
    bare = "".join(char for char in text.lower() if char.isalnum())
    return (bare[at : at + 2] for at in range(len(bare) - 1))


def frame(controls: Sequence[AdversarialControl]) -> pl.DataFrame:
    """Return query_id, doc_id and kind (the family), sorted as ordinary controls are."""
    rows = [(control.query_id, control.doc_id, control.family) for control in controls]
    columns = dict.fromkeys(("query_id", "doc_id", "kind"), pl.String)
    return pl.DataFrame(rows, columns, orient="row").sort("query_id", "doc_id")


def left_out(families: Collection[str]) -> list[str]:
    """Return a sentence per family that is not among those of which there are controls."""
    return [
        f"no controls of the family {name!r}, so no judge is tested on it: found none of what it is made of, "
        f"{NEEDED[name]}"
        for name in FAMILIES
        if name not in families
    ]


def measure(said: pl.DataFrame, scale: Scale) -> dict[str, FamilyResult]:
    """Return family -> how a judge did, from rows of `kind` and `grade` (None where there is none)."""
    found = {}
    for family, mark in marks().items():
        mine = said.filter(pl.col("kind") == family)
        grades = mine["grade"].drop_nulls().to_list()
        if mine.is_empty():
            continue
        right = wilson(sum(grade not in scale.relevant for grade in grades), len(grades))
        failed = right is not None and right.high < mark
        found[family] = FamilyResult(right, mark, failed, mine.height - len(grades))
    return found
