"""Dense retrieval: exact inner product between an encoder's vectors."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

import numpy as np

from curate.config import Json, Section
from curate.protocols import Corpus, Hits, Kit, Progress, Vectors
from curate.records import Hit, Query
from curate.retrievers import parts
from curate.search import top_k
from curate.vectors import CachedEncoder, of_corpus

BLOCK = 100
"""Queries whose hits are given at once."""


class Config(Section):
    """Which encoder."""

    encoder: str


class Dense:
    """Rank documents by the inner product of their vectors with the query's."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name = name
        self.encoder, self._engine = kit.encoder(config.encoder), kit.engine
        self.identity: Json = {"kind": "dense", "encoder": self.encoder.name, "revision": self.encoder.revision}

    def search(
        self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
    ) -> Iterator[Hits | list[Hit]]:
        """Yield each query's `depth` nearest documents; scores are cosines, ties by document id."""
        if not queries:
            return
        texts = [query.text for query in queries]
        if self._engine is not None and isinstance(self.encoder, CachedEncoder):
            found = parts.search(self._engine, self.encoder, corpus, texts, depth, progress)
            for number, best in enumerate(found, start=1):
                yield [Hit(doc_id, rank, score) for rank, (doc_id, score) in enumerate(best, start=1)]
                progress(f"search, {self.name}", len(queries), number)
            return
        ids, documents = of_corpus(self.encoder, corpus, progress)
        asked = self.encoder.encode(texts, "query")
        yield from nearest(asked, documents, ids, depth, partial(progress, f"search, {self.name}", len(queries)))


def nearest(
    queries: Vectors, documents: Vectors, ids: Sequence[str], depth: int, done: Callable[[int], None]
) -> Iterator[Hits]:
    """Yield the nearest documents of some queries at once, by `top_k`; `done` is told how many were searched."""
    found, number = top_k(queries, documents, ids, depth), 0
    while lists := list(islice(found, BLOCK)):
        flat = np.fromiter(chain.from_iterable(lists), dtype=[("row", "i8"), ("score", "f8")])
        yield Hits(ids, flat["row"], np.ascontiguousarray(flat["score"]), np.array([len(each) for each in lists]))
        number += len(lists)
        done(number)
