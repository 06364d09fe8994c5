"""Dense retrieval: exact inner product between an encoder's vectors."""

from collections.abc import Iterator, Sequence

from curate.config import Json, Section
from curate.protocols import Corpus, Kit, Progress
from curate.records import Hit, Query
from curate.retrievers import parts
from curate.search import top_k
from curate.vectors import CachedEncoder, of_corpus


class Config(Section):
    """Which encoder."""

    encoder: str


class Dense:
    """Rank documents by the inner product of their vectors with the query's."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name = name
        self.encoder, self._engine = kit.encoder(config.encoder), kit.engine
        self.identity: Json = {"kind": "dense", "encoder": self.encoder.name, "revision": self.encoder.revision}

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        """Yield each query's `depth` nearest documents; scores are cosines, ties by document id."""
        if not queries:
            return
        texts = [query.text for query in queries]
        for number, best in enumerate(self._ranked(corpus, texts, depth, progress), start=1):
            yield [Hit(doc_id, rank, score) for rank, (doc_id, score) in enumerate(best, start=1)]
            progress(f"search, {self.name}", len(queries), number)

    def _ranked(
        self, corpus: Corpus, texts: Sequence[str], depth: int, progress: Progress
    ) -> Iterator[list[tuple[str, float]]]:
        if self._engine is not None and isinstance(self.encoder, CachedEncoder):
            yield from parts.search(self._engine, self.encoder, corpus, texts, depth, progress)
            return
        ids, documents = of_corpus(self.encoder, corpus, progress)
        for best in top_k(self.encoder.encode(texts, "query"), documents, ids, depth):
            yield [(ids[row], score) for row, score in best]
