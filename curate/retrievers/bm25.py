"""BM25 over jieba words or character bigrams."""

import logging
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache as once
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from curate.config import Json, Section
from curate.protocols import Corpus, Kit, Progress
from curate.ranking import best_first
from curate.records import Hit, Query

if TYPE_CHECKING:
    import jieba

DIGITS = 6
"""Scores are float32 sums; they are rounded to this many digits before they are compared."""

Cut = Callable[[str], list[str]]
Scores = npt.NDArray[np.float64]


class Config(Section):
    """How texts are cut and weighted."""

    tokens: Literal["words", "bigrams"] = "words"
    """Words by jieba (its search mode, which also gives the parts of long words), or character bigrams."""
    k1: float = Field(default=1.5, ge=0)
    b: float = Field(default=0.75, ge=0, le=1)


class Bm25:
    """Rank documents by BM25 (Lucene's variant, by bm25s); a document that shares no token is not retrieved."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config, self._cache = name, config, kit.cache
        packages = {package: version(package) for package in ("bm25s", "jieba")}
        self.identity: Json = {"kind": "bm25", **config.model_dump(), **packages}

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        """Yield each query's best `depth` documents with a score above 0, ties by document id."""
        cut = bigrams if self.config.tokens == "bigrams" else words(self._cache)
        ids, scores = self._index(corpus, cut, progress)
        for number, query in enumerate(queries, start=1):
            yield best_first(ids, scores(cut(query.text)), depth)
            progress(f"search, {self.name}", len(queries), number)

    def _index(self, corpus: Corpus, cut: Cut, progress: Progress) -> tuple[list[str], Callable[[list[str]], Scores]]:
        """Return document ids, and a function from a query's tokens to every document's score."""
        import bm25s

        ids: list[str] = []
        vocabulary: dict[str, int] = {}
        tokens: list[list[int]] = []  # numbers: the texts of all tokens would be ten times as large
        for batch in corpus.batches():
            ids.extend(doc.doc_id for doc in batch)
            tokens.extend(
                [vocabulary.setdefault(token, len(vocabulary)) for token in cut(doc.shown())] for doc in batch
            )
            progress(f"tokens, {self.name}", len(corpus), len(ids))
        if not vocabulary:  # bm25s cannot index nothing
            return ids, lambda _: np.zeros(len(ids))
        index = bm25s.BM25(k1=self.config.k1, b=self.config.b)
        index.index((tokens, vocabulary), create_empty_token=False, show_progress=False)

        def scores(asked: list[str]) -> np.ndarray:
            known = [vocabulary[token] for token in asked if token in vocabulary]
            found: Scores = np.round(index.get_scores_from_ids(known).astype(np.float64), DIGITS)
            return found

        return ids, scores


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
    pairs = (plain[at : at + 2] for at in range(len(plain) - 1))
    return [pair for pair in pairs if all(map(str.isalnum, pair))]
