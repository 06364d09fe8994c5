"""Dense retrieval: exact inner product between an encoder's vectors."""

from collections.abc import Iterator, Sequence

from curate.config import Json, Section
from curate.protocols import Corpus, Kit, Progress
from curate.records import Hit, Query
from curate.search import top_k
from curate.vectors import of_corpus


class Config(Section):
    """Which encoder."""

    encoder: str


class Dense:
    """Rank documents by the inner product of their vectors with the query's."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name = name
        self.encoder = kit.encoder(config.encoder)
        self.identity: Json = {"kind": "dense", "encoder": self.encoder.name, "revision": self.encoder.revision}

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        """Yield each query's `depth` nearest documents; scores are cosines, ties by document id."""
        if not queries:
            return
        ids, documents = of_corpus(self.encoder, corpus, progress)
        asked = self.encoder.encode([query.text for query in queries], "query")
        for number, best in enumerate(top_k(asked, documents, ids, depth), start=1):
            yield [Hit(ids[row], rank, score) for rank, (row, score) in enumerate(best, start=1)]
            progress(f"search, {self.name}", len(queries), number)
