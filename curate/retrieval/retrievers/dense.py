"""Dense retrieval by the inner product of an encoder's vectors: exact, approximate, or in parts by an engine."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import ClassVar

import numpy as np

from curate.core.config import Json, Section
from curate.core.progress import StepLabel, counting, furthest
from curate.core.protocols import Corpus, Encoder, Engine, Hits, Kit, Progress, Vectors, quiet
from curate.core.records import Hit, Query
from curate.retrieval.similarity import faiss_search as approximate
from curate.retrieval.similarity.devices import nearest_on
from curate.retrieval.similarity.exact_search import Best, places, top_k
from curate.retrieval.similarity.faiss_search import ApproximateEngine
from curate.retrieval.similarity.screening import Rows, Scores
from curate.retrieval.vectors import CachedEncoder, encode_in_parts, identified, of_corpus, span
from curate.system.egress import Egress

BestOfAll = tuple[Rows, Scores]
"""(Rows, products) of the best documents of all queries, best first; each of shape (queries, documents)."""
Part = tuple[int, int]
"""(Number of the part from 0, number of parts)."""


def search_shards(
    engine: Engine,
    encoder: CachedEncoder,
    corpus: Corpus,
    queries: Sequence[str],
    depth: int,
    device: str,
    progress: Progress,
) -> Iterator[list[tuple[str, float]]]:
    """Yield each query's `depth` best (document id, product), best first, ties by id; the engine searches in parts."""
    shards = [(number, engine.shards) for number in range(engine.shards)]
    encode_in_parts(engine, encoder, corpus, queries, progress)
    query_vectors = encoder.encode(queries, "query")
    ids = [doc.doc_id for batch in corpus.batches() for doc in batch]
    order = places(ids)
    best: BestOfAll = np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0))
    filled = [shard for shard in shards if ids[span(len(ids), *shard)]]
    search_part = partial(_searched, encoder, corpus, query_vectors, depth, device)
    searching = engine.map(search_part, filled)
    for hits in counting(searching, progress, StepLabel(f"searching parts, {encoder.name}", "parts"), len(filled)):
        best = merged(best, hits, order, depth)
    for rows, scores in zip(*best, strict=True):
        yield [(ids[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]


def _searched(encoder: Encoder, corpus: Corpus, queries: Vectors, depth: int, device: str, shard: Part) -> BestOfAll:
    """Return the best documents of a part of the corpus; rows are numbered in the whole corpus."""
    ids, documents = of_corpus(encoder, corpus, quiet, shard)
    best = top_k(queries, documents, ids, depth, nearest_on(device))
    rows, scores = (np.stack(arrays) for arrays in zip(*best, strict=True))
    return rows + span(len(corpus), *shard).start, scores


def merged(left: BestOfAll, right: BestOfAll, order: Rows, depth: int) -> BestOfAll:
    """Return the `depth` best documents of two results, by product, then by `order`, the position among sorted ids."""
    rows, scores = (np.concatenate(arrays, axis=1) for arrays in zip(left, right, strict=True))
    first = np.lexsort((order[rows], -scores), axis=-1)[:, :depth]
    return np.take_along_axis(rows, first, 1), np.take_along_axis(scores, first, 1)


# Dense retrieval: inner product between an encoder's vectors, of all documents or of those that an index finds.

BLOCK = 100
"""Number of queries per block of hits."""


class Config(Section):
    """Which encoder."""

    encoder: str


class DenseRetriever:
    """Retriever by the inner product of the vectors of document and query."""

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

        With an approximate engine, the search sets `facts` and `notes`, with its parameters and recall.
        """
        if not queries:
            return
        texts = [query.text for query in queries]
        looked = furthest(progress, StepLabel(f"searching, {self.name}", "queries"), len(queries))
        if isinstance(self._engine, ApproximateEngine):
            yield from self._approximate(self._engine, corpus, texts, depth, progress, looked)
            return
        if self._engine is not None and isinstance(self.encoder, CachedEncoder):
            best_per_query = search_shards(self._engine, self.encoder, corpus, texts, depth, self._device, progress)
            for number, best in enumerate(best_per_query, start=1):
                yield [Hit(doc_id, rank, score) for rank, (doc_id, score) in enumerate(best, start=1)]
                looked(number)
            return
        ids, documents = of_corpus(self.encoder, corpus, progress)
        query_vectors = self.encoder.encode(texts, "query")
        looked(0)
        rows = top_k(query_vectors, documents, ids, depth, nearest_on(self._device), looked)
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
    """Yield results of `top_k` as arrays, in blocks of queries; `progress` gets the number of queries so far."""
    number = 0
    while block := list(islice(best, BLOCK)):
        rows, scores = (np.concatenate(arrays) for arrays in zip(*block, strict=True))
        yield Hits(ids, rows, scores, np.array([len(rows_of_query) for rows_of_query, _ in block]))
        number += len(block)
        progress(number)
