"""Adversarial controls: passages that a judge calls relevant if it counts words or obeys orders in them.

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
"""Length of a padded passage as a multiple of the original."""
ID = "adversarial "
"""Prefix of the ids of these passages."""
Pair = tuple[str, str]
"""A query's id, and a passage."""


class _File(Section):
    marks: Mapping[str, float]
    claims: Mapping[str, str]
    injections: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class AdversarialControl:
    """A passage that does not answer its query."""

    family: str
    query_id: str
    doc_id: str
    text: str


@dataclass(frozen=True)
class FamilyResult:
    """Result of a judge on one family."""

    right: Estimate | None
    """Share graded not relevant, with its interval; None without answers."""
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
    """Inputs of the passages: queries, best grade, negation."""

    queries: Mapping[str, str]
    """Id -> text."""
    best: str
    """The best grade of the scale."""
    language: str
    negate: Callable[[str], str | None]
    """Returns the negation of a sentence; None if no rule applies."""
    seed: int

    def make(self, random: Sequence[Pair], positives: Sequence[Pair], size: int) -> list[AdversarialControl]:
        """Return at most `size` controls of each family; fewer where passages are too few or no rule applies.

        `random` are passages outside of all pools, paired with queries; `positives` are passages that people graded
        relevant to their query. Deterministic.
        """
        controls = []
        for family in FAMILIES:
            source = random if family in RANDOM else positives
            pairs = shuffled(list(source), self.seed, "adversarial", family)
            texts = (
                (query, self._text(family, query, text, index, pairs)) for index, (query, text) in enumerate(pairs)
            )
            written = [(query, text) for query, text in texts if text is not None][:size]
            controls += [
                AdversarialControl(family, query, f"{ID}{family} {number:03}", text)
                for number, (query, text) in enumerate(written, start=1)
            ]
        return controls

    def _text(self, family: str, query: str, text: str, index: int, pairs: Sequence[Pair]) -> str | None:
        query_text = self.queries[query]
        if family == "query words":
            pieces = sentences(text) or [text]
            middle = generator(self.seed, "adversarial", "middle", index).randrange(len(pieces) + 1)
            return "\n".join([query_text, *pieces[:middle], query_text, *pieces[middle:], query_text])
        if family == "padding":
            others = [pairs[(index + step) % len(pairs)][1] for step in range(1, len(pairs))]
            return _padded(text, others)
        if family == "claim":
            return f"{_turn(self._claims(), index)}\n{text}"
        if family == "injection":
            return f"{text}\n{_turn(self._orders(), index)}".replace("{best}", self.best)
        if family == "negated":
            return self._negated(text)
        return _answerless(query_text, text)

    def _claims(self) -> list[str]:
        language = self.language.partition("-")[0]
        claims = _file().claims
        return [claims[name] for name in sorted(claims, key=lambda name: (name != language, name))]

    def _orders(self) -> list[str]:
        orders = _file().injections
        language = self.language.partition("-")[0]
        return [text for name in sorted(orders, key=lambda name: (name != language, name)) for text in orders[name]]

    def _negated(self, text: str) -> str | None:
        """Return a passage with every sentence negated that a rule applies to; None if there is none."""
        negations = [(sentence, self.negate(sentence)) for sentence in sentences(text)]
        if not any(turned for _, turned in negations):
            return None
        return " ".join(turned or sentence for sentence, turned in negations)


def _turn(texts: Sequence[str], index: int) -> str:
    return texts[index % len(texts)]


def _padded(text: str, others: Sequence[str]) -> str | None:
    """Return a passage made `TIMES` as long by sentences of other random passages; None without enough of them."""
    pieces, length = [text], len(text)
    for piece in (sentence for other_text in others for sentence in sentences(other_text)):
        if length >= TIMES * len(text):
            break
        pieces.append(piece)
        length += len(piece)
    return "\n".join(pieces) if length >= TIMES * len(text) else None


def _answerless(query_text: str, text: str) -> str | None:
    """Return the sentence that repeats most of the question; None for fewer than three sentences.

    The answer is in the other sentences, so the echo of the question alone answers nothing.
    """
    pieces = sentences(text)
    if len(pieces) < 3:
        return None
    query_pieces = set(_pieces(query_text))
    return max(
        pieces,
        key=lambda sentence: (
            sum(piece in query_pieces for piece in _pieces(sentence)) / max(len(sentence), 1),
            sentence,
        ),
    )


def _pieces(text: str) -> Iterator[str]:
    bare = "".join(char for char in text.lower() if char.isalnum())
    return (bare[start : start + 2] for start in range(len(bare) - 1))


def frame(controls: Sequence[AdversarialControl]) -> pl.DataFrame:
    """Return query_id, doc_id and kind (the family), in the order of ordinary controls."""
    rows = [(control.query_id, control.doc_id, control.family) for control in controls]
    columns = dict.fromkeys(("query_id", "doc_id", "kind"), pl.String)
    return pl.DataFrame(rows, columns, orient="row").sort("query_id", "doc_id")


def left_out(families: Collection[str]) -> list[str]:
    """Return a sentence per family without controls; `families` are those with controls."""
    return [
        f"no controls of the family {name!r}, so no judge is tested on it: found none of what it is made of, "
        f"{NEEDED[name]}"
        for name in FAMILIES
        if name not in families
    ]


def measure(said: pl.DataFrame, scale: Scale) -> dict[str, FamilyResult]:
    """Return family -> result of a judge, from rows of `kind` and `grade` (None without one)."""
    results = {}
    for family, mark in marks().items():
        rows = said.filter(pl.col("kind") == family)
        grades = rows["grade"].drop_nulls().to_list()
        if rows.is_empty():
            continue
        right = wilson(sum(grade not in scale.relevant for grade in grades), len(grades))
        failed = right is not None and right.high < mark
        results[family] = FamilyResult(right, mark, failed, rows.height - len(grades))
    return results
