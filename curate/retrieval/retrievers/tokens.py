"""Tokenisation: jieba's words or character bigrams, in several processes."""

import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from curate.system.processes import spread

if TYPE_CHECKING:
    import jieba

Cut = Callable[[str], list[str]]
Kind = Literal["words", "bigrams"]
Numbers = npt.NDArray[np.int32]
Batch = tuple[list[str], Numbers, Numbers]
"""Distinct tokens in order of occurrence; every token's index in them; number of tokens of each text."""


def cutter(kind: Kind, cache: Path) -> Cut:
    """Return the function that cuts a text; `cache` is the folder of jieba's dictionary."""
    return bigrams if kind == "bigrams" else words(cache)


def words(cache: Path) -> Cut:
    """Return a function that cuts a text into words by jieba's search mode, lower case, NFKC."""
    tokenizer = _tokenizer()
    if not tokenizer.initialized:
        cache.mkdir(parents=True, exist_ok=True)
        tokenizer.tmp_dir = str(cache)  # jieba's default is a file in the shared temporary folder

    def cut(text: str) -> list[str]:
        plain = unicodedata.normalize("NFKC", text).lower()
        return [word for word in tokenizer.lcut_for_search(plain) if any(map(str.isalnum, word))]

    return cut


@once
def _tokenizer() -> "jieba.Tokenizer":
    """Return the one tokenizer of this process: its dictionary takes a second to read."""
    import jieba

    jieba.setLogLevel(logging.CRITICAL)  # it logs, and goes on, if its cache cannot be written
    return jieba.Tokenizer()


def bigrams(text: str) -> list[str]:
    """Return the character bigrams of a text, lower case, NFKC, without those that touch punctuation or spaces."""
    plain = unicodedata.normalize("NFKC", text).lower()
    pairs = (plain[start : start + 2] for start in range(len(plain) - 1))
    return [pair for pair in pairs if all(map(str.isalnum, pair))]


def cut_all(kind: Kind, cache: Path, batches: Iterable[Sequence[str]], processes: int) -> Iterator[Batch]:
    """Yield the tokens of each batch of texts, in order; one process means this one."""
    batches_in_order = spread(partial(_cutting, kind, cache), ((None, texts) for texts in batches), processes)
    return (batch for _, batch in batches_in_order)


def _cutting(kind: Kind, cache: Path) -> Callable[[Sequence[str]], Batch]:
    return partial(_cut_batch, cutter(kind, cache))


def _cut_batch(cut: Cut, texts: Sequence[str]) -> Batch:
    vocabulary: dict[str, int] = {}
    tokens = [[vocabulary.setdefault(token, len(vocabulary)) for token in cut(text)] for text in texts]
    counts = np.array([len(token) for token in tokens], dtype=np.int32)
    numbers = np.fromiter((number for token in tokens for number in token), np.int32, counts.sum())
    return list(vocabulary), numbers, counts
