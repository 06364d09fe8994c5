"""BM25 of this package, as mteb's search protocol has it."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256

import numpy as np

from curate.commands.evaluate.tasks import Foreign
from curate.core.config import digest
from curate.core.protocols import Progress
from curate.core.records import Document, Query
from curate.retrieval.retrievers.bm25 import Bm25


class Searcher:
    """BM25 as mteb's search protocol has it: it indexes a corpus, then answers queries or reranks candidates."""

    def __init__(self, bm25: Bm25, meta: Foreign, progress: Progress) -> None:
        self.mteb_model_meta, self._progress = meta, progress
        self._bm25, self._corpus = bm25, _Listed([])

    def index(self, corpus: Foreign, **_named: Foreign) -> None:
        """Take the corpus over, and build the index or find it in the cache."""
        titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
        rows = zip(corpus["id"], titles, corpus["text"], strict=True)
        self._corpus = _Listed([Document(key, title or "", text) for key, title, text in rows])
        list(self._bm25.search(self._corpus, [Query("", "a")], 1, self._progress))  # also reads the dictionary of words

    def search(
        self, queries: Foreign, *, top_k: int, top_ranked: Mapping[str, Sequence[str]] | None = None, **_named: Foreign
    ) -> dict[str, dict[str, float]]:
        """Return query -> document -> score; candidates that share no word with their query score 0."""
        asked = [Query(key, text) for key, text in zip(queries["id"], queries["text"], strict=True)]
        depth = len(self._corpus) if top_ranked else min(top_k, len(self._corpus))
        found: dict[str, dict[str, float]] = {}
        for hits in self._bm25.search(self._corpus, asked, depth, self._progress):
            ends = np.cumsum(hits.counts)
            for end, count in zip(ends, hits.counts, strict=True):
                rows = slice(end - count, end)
                scored = {hits.ids[row]: float(s) for row, s in zip(hits.rows[rows], hits.scores[rows], strict=True)}
                found[asked[len(found)].query_id] = scored
        if top_ranked is None:
            return found
        return {key: {doc: found[key].get(doc, 0.0) for doc in docs} for key, docs in top_ranked.items()}


class _Listed:
    """A corpus in memory."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    @cached_property
    def digest(self) -> str:
        """Return what identifies ids and texts."""
        found = sha256()
        for each in self._documents:
            found.update(digest([each.doc_id, each.title, each.text]).encode())
        return found.hexdigest()

    def __len__(self) -> int:
        return len(self._documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        for start in range(0, len(self._documents), 2_000):
            yield self._documents[start : start + 2_000]
