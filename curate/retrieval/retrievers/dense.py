"""Dense retrieval: inner product between an encoder's vectors, of all documents or of those that an index finds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar

import numpy as np

from curate.core.config import Json, Section
from curate.core.progress import StepLabel, furthest
from curate.core.protocols import Corpus, Hits, Kit, Progress
from curate.core.records import Hit, Query
from curate.retrieval.retrievers import sharded_search
from curate.retrieval.similarity import faiss_search as approximate
from curate.retrieval.similarity.devices import screen_for_search
from curate.retrieval.similarity.exact_search import Best, top_k
from curate.retrieval.similarity.faiss_search import ApproximateEngine
from curate.retrieval.vectors import CachedEncoder, identified, of_corpus
from curate.system.egress import Egress

BLOCK = 100
"""Queries per block of hits."""


class Config(Section):
    """Which encoder."""

    encoder: str


class DenseRetriever:
    """Rank documents by the inner product of their vectors with the query's."""

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name = name
        self.encoder, self._engine = kit.encoder(config.encoder), kit.engine
        self._device, self._cache = kit.device, kit.cache
        self.identity: Json = {
            "kind": "dense",
            "encoder": self.encoder.name,
            "revision": self.encoder.revision,
            **({"engine": self._engine.identity} if isinstance(self._engine, ApproximateEngine) else {}),
        }
        self.facts: Mapping[str, Json] = {}
        self.notes: Sequence[str] = ()

    def search(
        self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
    ) -> Iterator[Hits | list[Hit]]:
        """Yield each query's `depth` nearest documents; scores are cosines, ties by document id.

        With an approximate engine, `facts` and `notes` hold its parameters and recall afterwards.
        """
        if not queries:
            return
        texts = [query.text for query in queries]
        looked = furthest(progress, StepLabel(f"searching, {self.name}", "queries"), len(queries))
        if isinstance(self._engine, ApproximateEngine):
            yield from self._approximate(self._engine, corpus, texts, depth, progress, looked)
            return
        if self._engine is not None and isinstance(self.encoder, CachedEncoder):
            best_per_query = sharded_search.search(
                self._engine, self.encoder, corpus, texts, depth, self._device, progress
            )
            for number, best in enumerate(best_per_query, start=1):
                yield [Hit(doc_id, rank, score) for rank, (doc_id, score) in enumerate(best, start=1)]
                looked(number)
            return
        ids, documents = of_corpus(self.encoder, corpus, progress)
        query_vectors = self.encoder.encode(texts, "query")
        looked(0)
        screen = screen_for_search(self._device, len(query_vectors) * len(documents))
        rows = top_k(query_vectors, documents, ids, depth, screen, looked)
        yield from in_columns(rows, ids, looked)

    def _approximate(
        self,
        engine: ApproximateEngine,
        corpus: Corpus,
        texts: Sequence[str],
        depth: int,
        progress: Progress,
        looked: Callable[[int], None],
    ) -> Iterator[Hits]:
        ids, documents, key = identified(self.encoder, corpus, progress)
        queries, section = self.encoder.encode(texts, "query"), f"retrievers.{self.name}"
        request = approximate.Asked(section, queries, documents, ids, depth, self._device)
        self.facts, self.notes = request.facts, request.notes
        yield from in_columns(approximate.search(request, engine, self._cache, key, progress, looked), ids, looked)


def in_columns(best: Iterator[Best], ids: Sequence[str], progress: Callable[[int], None]) -> Iterator[Hits]:
    """Yield results of `top_k` in blocks of queries; `progress` gets the number of queries so far."""
    number = 0
    while block := list(islice(best, BLOCK)):
        rows, scores = (np.concatenate(arrays) for arrays in zip(*block, strict=True))
        yield Hits(ids, rows, scores, np.array([len(rows_of_query) for rows_of_query, _ in block]))
        number += len(block)
        progress(number)
