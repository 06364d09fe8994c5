"""Retrievers without vectors in mteb's search protocol: BM25, sparse vectors, rerankers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from curate.commands.evaluate.loading import local_meta
from curate.commands.evaluate.tasks import Foreign
from curate.core.config import Json, digest
from curate.core.errors import ConfigError, DataError
from curate.core.progress import StepLabel
from curate.core.protocols import Encoder, Kit, Progress, Retriever
from curate.core.records import Document, Query
from curate.pipeline.stage import home
from curate.retrieval import ranking
from curate.retrieval.retrievers import bm25, reranker, sparse
from curate.retrieval.retrievers.bm25 import Bm25
from curate.retrieval.retrievers.reranker import Reranker
from curate.system.files import read_json

Scores = Callable[[str, Sequence[str]], list[float]]
"""A reranker's function from (query, texts) to one score per text."""
BM25 = "bm25"
ENGLISH = "eng"
"""mteb's code of the language whose tasks BM25 searches by English stems."""


@dataclass(frozen=True)
class Search:
    """A retriever to evaluate; where all texts of a task are English, `english` searches in its place."""

    name: str
    retriever: Retriever
    english: Retriever | None = None

    @property
    def revision(self) -> str:
        """Return a digest of everything that affects its rankings."""
        identity: Json = self.retriever.identity
        return digest([identity, self.english.identity] if self.english else identity)[:16]

    def model(self, progress: Progress) -> "Searcher":
        """Return the model for `mteb.evaluate`."""
        return Searcher(self, progress)


def named(name: str, retrievers: Mapping[str, Callable[[], Retriever]], device: str | None) -> Search | None:
    """Return bm25, a retriever of the run's pipeline, or a cross-encoder or sparse model in a folder; None for others.

    A cross-encoder ranks BM25's best 100 documents again.
    """
    if name == BM25:
        return Search(BM25, _bm25(), Bm25(BM25, bm25.Config.model_validate({"tokens": "english"}), _kit()))
    if name in retrievers:
        return Search(name, retrievers[name]())
    folder = Path(name).expanduser()
    class_name = _class_of(folder)
    if class_name == "CrossEncoder":
        settings = {"model": name, "over": BM25, "device": device}
        return Search(folder.name, Reranker(folder.name, reranker.Config.model_validate(settings), _kit()))
    if class_name == "SparseEncoder":
        config = sparse.Config.model_validate({"model": name, "device": device})
        return Search(folder.name, sparse.SparseRetriever(folder.name, config, _kit()))
    return None


def _bm25(_name: str = BM25) -> Bm25:
    return Bm25(BM25, bm25.Config(), _kit())


def _kit() -> Kit:
    return Kit(_no_encoder, home() / "cache", retriever=_bm25)


def _no_encoder(name: str) -> Encoder:
    raise ConfigError(f"bm25 asked for the encoder {name!r}, and needs none")


def _class_of(folder: Path) -> str:
    """Return the class of sentence-transformers that a folder states; empty if it states none."""
    path = folder / "config_sentence_transformers.json"
    try:
        return str(read_json(path).get("model_type", "")) if path.is_file() else ""
    except DataError:
        return ""


class Searcher:
    """A retriever with mteb's search protocol: indexes a corpus, then searches it or ranks candidates."""

    def __init__(self, search: Search, progress: Progress) -> None:
        self.mteb_model_meta, self._progress = local_meta(search.name), progress
        self._search, self.retriever, self.corpus = search, search.retriever, _Listed([])

    def index(self, corpus: Foreign, *, task_metadata: Foreign = None, **_named: Foreign) -> None:
        """Store the corpus, and build its index or read it from the cache."""
        is_english = {*getattr(task_metadata, "languages", ())} == {ENGLISH}
        self.retriever = self._search.english if self._search.english and is_english else self._search.retriever
        titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
        rows = zip(corpus["id"], titles, corpus["text"], strict=True)
        self.corpus = _Listed([Document(key, title or "", text) for key, title, text in rows])
        indexed = getattr(self.retriever, "inner", self.retriever)
        list(indexed.search(self.corpus, [Query("", "a")], 1, self._progress))  # also reads the dictionary of words

    def search(
        self, queries: Foreign, *, top_k: int, top_ranked: Mapping[str, Sequence[str]] | None = None, **_named: Foreign
    ) -> dict[str, dict[str, float]]:
        """Return query -> document -> score; candidates that are not retrieved have score 0."""
        query_list = [Query(key, text) for key, text in zip(queries["id"], queries["text"], strict=True)]
        scores: Scores | None = getattr(self.retriever, "scores", None)
        if top_ranked is not None and scores is not None:
            return self._reranked(scores, query_list, top_ranked)
        depth = len(self.corpus) if top_ranked else min(top_k, len(self.corpus))
        scores_by_query: dict[str, dict[str, float]] = {}
        for block, hits in ranking.ask(self.retriever, self.corpus, query_list, depth, self._progress):
            scores_by_query |= {query.query_id: {} for query in block}
            for row in ranking.frame("", block, hits, depth).iter_rows(named=True):
                scores_by_query[row["query_id"]][row["doc_id"]] = row["score"]
        if top_ranked is None:
            return scores_by_query
        return {key: {doc: scores_by_query[key].get(doc, 0.0) for doc in docs} for key, docs in top_ranked.items()}

    def _reranked(
        self, score: Scores, queries: Sequence[Query], top_ranked: Mapping[str, Sequence[str]]
    ) -> dict[str, dict[str, float]]:
        """Return query -> candidate -> the reranker's score."""
        texts = {document.doc_id: document.shown() for batch in self.corpus.batches() for document in batch}
        label = StepLabel(f"reranking, {self.retriever.name}", "queries")
        scores_by_query: dict[str, dict[str, float]] = {}
        for number, query in enumerate(queries):
            self._progress(label, len(queries), number)
            candidates = list(top_ranked[query.query_id])
            scores = score(query.text, [texts[doc_id] for doc_id in candidates])
            scores_by_query[query.query_id] = dict(zip(candidates, scores, strict=True))
        return scores_by_query


class _Listed:
    """A corpus in memory."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    @cached_property
    def digest(self) -> str:
        """Return a digest of ids and texts."""
        content_digest = sha256()
        for document in self._documents:
            content_digest.update(digest([document.doc_id, document.title, document.text]).encode())
        return content_digest.hexdigest()

    def __len__(self) -> int:
        return len(self._documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        for start in range(0, len(self._documents), 2_000):
            yield self._documents[start : start + 2_000]
