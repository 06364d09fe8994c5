"""BM25 over jieba words or character bigrams."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from curate.core.config import Json, Section
from curate.core.progress import StepLabel
from curate.core.protocols import Corpus, Hits, Kit, Progress
from curate.core.records import Query
from curate.retrieval.ranking import Numbers, Scores, best_first
from curate.retrieval.retrievers.bm25_index import Index, index
from curate.retrieval.retrievers.tokens import Cut, Kind, cutter
from curate.system.egress import Egress

DIGITS = 6
"""Scores are float32 sums; they are rounded to this many digits before they are compared."""
BLOCK = 100
"""Queries per block of hits."""


class Config(Section):
    """Settings of tokens and weights."""

    tokens: Kind = "words"
    """Words by jieba (its search mode, which also gives the parts of long words), or character bigrams."""
    k1: float = Field(default=1.5, ge=0)
    b: float = Field(default=0.75, ge=0, le=1)


class Bm25:
    """Rank documents by BM25 (Lucene's variant, by bm25s); a document that shares no token is not retrieved."""

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config, self._cache = name, config, kit.cache
        packages = {package: version(package) for package in ("bm25s", "jieba")}
        self.identity: Json = {"kind": "bm25", **config.model_dump(), **packages}

    def opened(self, corpus: Corpus, progress: Progress) -> tuple[Index, Cut, Numbers]:
        """Return the index, the tokeniser of queries, and every document's position in the order of ids."""
        weights = {"k1": self.config.k1, "b": self.config.b}
        bm25_index = index(self._cache, self.identity, corpus, self.config.tokens, weights, progress, self.name)
        tie_order = pl.Series(bm25_index.ids, dtype=pl.String).rank("ordinal").to_numpy().astype(np.int64)
        return bm25_index, cutter(self.config.tokens, self._cache), tie_order

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[Hits]:
        """Yield each query's best `depth` documents with a score above 0, ties by document id."""
        bm25_index, cutting, tie_order = self.opened(corpus, progress)
        label = StepLabel(f"searching, {self.name}", "queries")
        progress(label, len(queries), 0)
        for start in range(0, len(queries), BLOCK):
            block = queries[start : start + BLOCK]
            best = [best_scores(tie_order, bm25_index.scores(cutting(query.text)), depth) for query in block]
            rows, scores = (np.concatenate(arrays) for arrays in zip(*best, strict=True))
            yield Hits(bm25_index.ids, rows, scores, np.array([len(rows_of_query) for rows_of_query, _ in best]))
            progress(label, len(queries), start + len(block))


def best_scores(tie_order: Numbers, scores: npt.NDArray[np.float32], depth: int) -> tuple[Numbers, Scores]:
    """Return the rows of the best `depth` documents with a rounded score above 0, ties by `tie_order`, and scores."""
    floor = 0.0
    if len(scores) > depth:  # two scores that rounding makes equal or swaps differ by 1e-6 at most
        floor = float(np.partition(scores, len(scores) - depth)[len(scores) - depth]) - 2 * 10.0**-DIGITS
    rows: Numbers = np.flatnonzero(scores >= floor if floor > 0 else scores > 0)
    rounded: Scores = scores[rows].astype(np.float64).round(DIGITS)
    best = best_first(tie_order[rows], rounded, depth)
    return rows[best], rounded[best]
