"""Contradictions between similar texts: another number, body side, sex, age, type, or a negation.

They are a safeguard for decisions by cosine similarity: differences that embeddings are known to miss, and no others.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curate.core.config import parse_yaml

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*\s*(?:%|‰|°[cf]?|[a-zµμ]+|[\u4e00-\u9fff])?")
_NEGATION = re.compile(r"\b(?:not?|never|without|none|neither|nor|cannot)\b|n't\b|[不没无非未勿]")


class Assertions(NamedTuple):
    """Facts stated in a text that another text may contradict: values by class, and the number of negations."""

    values: Mapping[str, frozenset[str]]
    """Class of words (such as sex) -> its values in the text; `number` has numbers with their units."""
    negations: int


def assertions(text: str) -> Assertions:
    """Return the numbers, the values of each class of words, and the count of negations in a text."""
    plain = unicodedata.normalize("NFKC", text).lower()
    values: dict[str, set[str]] = {}
    for match in _NUMBER.finditer(plain):
        values.setdefault("number", set()).add("".join(match[0].split()))
    words, pattern = _words()
    for match in pattern.finditer(plain):
        name, meaning = words[match[0]]
        values.setdefault(name, set()).add(meaning)
    return Assertions({name: frozenset(of_class) for name, of_class in values.items()}, len(_NEGATION.findall(plain)))


def contradict(left: Assertions, right: Assertions, *, statements: bool) -> bool:
    """Return whether two texts contradict each other: for some class, each has a value that the other lacks.

    With `statements`, also if their numbers of negations differ. Questions often mean the same with and without a
    negation ("is it not safe").
    """
    if statements and left.negations != right.negations:
        return True
    shared = left.values.keys() & right.values.keys()
    return any(left.values[name] - right.values[name] and right.values[name] - left.values[name] for name in shared)


class Contradictions:
    """Function, for a list of texts, that returns which of them contradict a given one (see `diversity.Contradict`)."""

    def __init__(self, texts: Iterable[str], *, statements: bool) -> None:
        self.assertions = [assertions(text) for text in texts]
        self.statements = statements

    def __call__(self, item: int, others: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether each of `others` (rows of texts) contradicts the text `item`."""
        return np.array(
            [contradict(self.assertions[item], self.assertions[index], statements=self.statements) for index in others],
            bool,
        )


@cache
def _words() -> tuple[Mapping[str, tuple[str, str]], re.Pattern[str]]:
    """Return word -> (class, value), and the pattern that matches the longest word at every position."""
    path = Path(__file__).with_name("contradictions.yaml")
    classes: Mapping[str, Mapping[str, list[str]]] = parse_yaml(path.read_text(encoding="utf-8"))
    words = {
        unicodedata.normalize("NFKC", word).lower(): (name, meaning)
        for name, words_by_meaning in classes.items()
        for meaning, synonyms in words_by_meaning.items()
        for word in synonyms
    }
    longest_first = sorted(words, key=len, reverse=True)
    bounded = (rf"(?<![a-z]){re.escape(w)}(?![a-z])" if w.isascii() else re.escape(w) for w in longest_first)
    return words, re.compile("|".join(bounded))
