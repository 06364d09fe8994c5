"""Lexical shortcut baselines: the commonest class, a keyword per class, length, shared characters.

A model that does not beat them shows no understanding (Gururangan et al., NAACL 2018, for sentence pairs). They need no
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
"""Chinese characters and Japanese kana: texts of mostly these have no spaces between words."""
_WORD = re.compile(r"\w+")
PER_CLASS, DRAWS, SEED = 8, 10, 42
"""Training texts of a class, draws, and seed of stock mteb's classification."""


def overlap(one: str, other: str) -> float:
    """Return the cosine of raw counts of lower-case character 1- and 2-grams, 0 to 1; 0 for an empty text."""
    counts_one, counts_other = _counts(one), _counts(other)
    length = math.sqrt(sum(n * n for n in counts_one.values()) * sum(n * n for n in counts_other.values()))
    return sum(count * counts_other[gram] for gram, count in counts_one.items()) / length if length else 0.0


def alike_in_length(one: str, other: str) -> float:
    """Return the negative difference of two texts' lengths in characters."""
    return -float(abs(len(one) - len(other)))


def _counts(text: str) -> Counter[str]:
    low = text.lower()
    return Counter(low) + Counter(first + second for first, second in pairwise(low))


def drawn(
    labels: Sequence[int], per_class: int = PER_CLASS, draws: int = DRAWS, seed: int = SEED
) -> Iterator[list[int]]:
    """Yield the training texts of every draw of stock mteb, at most `per_class` per class.

    Like in mteb, every draw shuffles the order of the last one, with the same seed.
    """
    order = list(range(len(labels)))
    for _ in range(draws):
        np.random.RandomState(seed).shuffle(order)
        counts: Counter[int] = Counter()
        chosen = []
        for index in order:
            counts[labels[index]] += 1
            if counts[labels[index]] <= per_class:
                chosen.append(index)
        yield chosen


def commonest(labels: Sequence[int]) -> int:
    """Return the most frequent label; of several the lowest."""
    return min(Counter(labels).items(), key=lambda counted: (-counted[1], counted[0]))[0]


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
    """Return the candidate keywords of every text: character 1- to 4-grams, or lower-case word 1- to 2-grams.

    Characters where most letters of all texts are Chinese or Japanese.
    """
    if unspaced(texts):
        return [_grams_of(text, CHARACTERS) for text in texts]
    return [_grams_of(_WORD.findall(text.lower()), WORDS) for text in texts]


def unspaced(texts: Sequence[str]) -> bool:
    """Return whether most letters of these texts belong to a script without spaces."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    return 2 * sum(any(low <= letter <= high for low, high in UNSPACED) for letter in letters) > len(letters)


def _grams_of(pieces: Sequence[str], sizes: Sequence[int]) -> frozenset[str]:
    between = "" if isinstance(pieces, str) else " "
    return frozenset(
        between.join(pieces[start : start + size]) for size in sizes for start in range(len(pieces) - size + 1)
    )


def keyword_rule(texts: Sequence[frozenset[str]], labels: Sequence[int], otherwise: int) -> KeywordRule:
    """Return per class the n-gram with the best F1 on these texts; ties by length, then alphabetically.

    `texts` are given by their n-grams.
    """
    among, best = Counter(gram for held in texts for gram in held), []
    for label, size in sorted(Counter(labels).items()):
        inside = Counter(
            gram for held, text_label in zip(texts, labels, strict=True) if text_label == label for gram in held
        )
        scored = [(-2 * hits / (among[gram] + size), len(gram), gram) for gram, hits in inside.items()]
        if scored:
            best.append((min(scored), label))
    return KeywordRule([(gram, label) for (_, _, gram), label in sorted(best)], otherwise)
