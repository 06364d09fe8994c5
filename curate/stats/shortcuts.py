"""Shortcuts that solve a task without its meaning: the commonest class, a keyword per class, length, shared characters.

A model that does not beat them has shown nothing (Gururangan et al., NAACL 2018, for sentence pairs). None needs a
model, so an export can try them as well as an evaluation.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

CHARACTERS, WORDS = (1, 2, 3, 4), (1, 2)
"""Lengths of keywords: in characters for scripts without spaces, else in words."""
UNSPACED = (("\u2e80", "\u9fff"), ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"))
"""Chinese characters and Japanese kana: a text of mostly these has no words to be told by their spaces."""
_WORD = re.compile(r"\w+")
PER_CLASS, DRAWS, SEED = 8, 10, 42
"""Training texts of a class, draws, and seed of stock mteb's classification."""


def overlap(one: str, other: str) -> float:
    """Return the cosine of raw counts of lower-case character 1- and 2-grams, 0 to 1; 0 for an empty text."""
    here, there = _counts(one), _counts(other)
    length = math.sqrt(sum(n * n for n in here.values()) * sum(n * n for n in there.values()))
    return sum(count * there[gram] for gram, count in here.items()) / length if length else 0.0


def alike_in_length(one: str, other: str) -> float:
    """Return how alike two texts are in length: 0 for equal ones, else less by each character."""
    return -float(abs(len(one) - len(other)))


def _counts(text: str) -> Counter[str]:
    low = text.lower()
    return Counter(low) + Counter(first + second for first, second in pairwise(low))


def drawn(
    labels: Sequence[int], per_class: int = PER_CLASS, draws: int = DRAWS, seed: int = SEED
) -> Iterator[list[int]]:
    """Yield the training texts of every draw, so many per class at most: those that stock mteb draws.

    As mteb does, each draw shuffles the order that the last one left, with the same seed.
    """
    order = list(range(len(labels)))
    for _ in range(draws):
        np.random.RandomState(seed).shuffle(order)
        taken: Counter[int] = Counter()
        chosen = []
        for place in order:
            taken[labels[place]] += 1
            if taken[labels[place]] <= per_class:
                chosen.append(place)
        yield chosen


def commonest(labels: Sequence[int]) -> int:
    """Return the label that occurs most often; of several the least."""
    return min(Counter(labels).items(), key=lambda each: (-each[1], each[0]))[0]


@dataclass(frozen=True)
class KeywordRule:
    """One keyword per class: a text is of the first class whose keyword it holds."""

    keywords: Sequence[tuple[str, int]]
    """Keyword and label, the keyword with the best F1 first."""
    otherwise: int
    """Label of a text that holds none of them."""

    def __call__(self, texts: Sequence[frozenset[str]]) -> list[int]:
        """Return the label of every text, which is given by its n-grams."""
        return [next((label for word, label in self.keywords if word in held), self.otherwise) for held in texts]


def grams(texts: Sequence[str]) -> list[frozenset[str]]:
    """Return what can be a keyword of each text: character 1- to 4-grams, or lower-case word 1- to 2-grams.

    Characters where most letters of all texts are Chinese or Japanese.
    """
    if unspaced(texts):
        return [_of(text, CHARACTERS) for text in texts]
    return [_of(_WORD.findall(text.lower()), WORDS) for text in texts]


def unspaced(texts: Sequence[str]) -> bool:
    """Return whether most letters of these texts belong to a script without spaces."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    return 2 * sum(any(low <= letter <= high for low, high in UNSPACED) for letter in letters) > len(letters)


def _of(parts: Sequence[str], sizes: Sequence[int]) -> frozenset[str]:
    between = "" if isinstance(parts, str) else " "
    return frozenset(between.join(parts[at : at + size]) for size in sizes for at in range(len(parts) - size + 1))


def keyword_rule(texts: Sequence[frozenset[str]], labels: Sequence[int], otherwise: int) -> KeywordRule:
    """Return for every class the n-gram with the best F1 on these texts, of equal ones the shortest, then the first.

    `texts` are given by their n-grams.
    """
    among, found = Counter(gram for held in texts for gram in held), []
    for label, size in sorted(Counter(labels).items()):
        inside = Counter(gram for held, own in zip(texts, labels, strict=True) if own == label for gram in held)
        scored = [(-2 * hits / (among[gram] + size), len(gram), gram) for gram, hits in inside.items()]
        if scored:
            found.append((min(scored), label))
    return KeywordRule([(gram, label) for (_, _, gram), label in sorted(found)], otherwise)
