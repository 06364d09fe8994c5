"""Retrieval by learned sparse vectors (SPLADE, BGE-M3's lexical weights), from models of sentence-transformers."""

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from curate.core.config import Json, digest
from curate.core.errors import RunFailed
from curate.core.progress import StepLabel
from curate.core.protocols import Corpus, Hits, Kit, Progress
from curate.core.records import Query
from curate.retrieval.ranking import Numbers
from curate.retrieval.retrievers.bm25 import best_scores
from curate.retrieval.stored_model import ModelConfig, StoredModel
from curate.system.egress import Egress

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BLOCK = 32
"""Number of queries whose products with all documents are in memory at a time."""


class Config(ModelConfig):
    """A model of sentence-transformers' class SparseEncoder."""

    query_prompt: str | None = None
    """Prefix of every query; None takes the model's own, an empty text none."""
    document_prompt: str | None = None
    """Prefix of every document, likewise."""


class SparseRetriever:
    """Retriever by the inner product of sparse vectors; a document without a common token is not retrieved."""

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config, self._cache = name, config, kit.cache
        self._stored = StoredModel(f"retrievers.{name}", config)
        self.identity: Json = {"kind": "sparse", "revision": self._stored.revision()}

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[Hits]:
        """Yield each query's best `depth` documents with a score above 0, ties by document id.

        Vectors of documents are kept on disk, by model and corpus.
        """
        ids, documents = self._documents(corpus, progress)
        by_token = documents.T.tocsr()
        tie_order = pl.Series(ids, dtype=pl.String).rank("ordinal").to_numpy().astype(np.int64)
        label = StepLabel(f"searching, {self.name}", "queries")
        progress(label, len(queries), 0)
        for start in range(0, len(queries), BLOCK):
            block = queries[start : start + BLOCK]
            scores = (self._encoded([query.text for query in block], is_query=True) @ by_token).toarray()
            best = [best_scores(tie_order, row, depth) for row in scores]
            rows, values = (np.concatenate(arrays) for arrays in zip(*best, strict=True))
            yield Hits(ids, rows, values, np.array([len(rows_of_query) for rows_of_query, _ in best]))
            progress(label, len(queries), start + len(block))

    def _documents(self, corpus: Corpus, progress: Progress) -> tuple[list[str], "csr_matrix"]:
        """Return ids and sparse vectors of all documents, from disk if they are there."""
        from scipy.sparse import load_npz, vstack

        ids = [document.doc_id for batch in corpus.batches() for document in batch]
        file = self._cache / "sparse" / f"{digest([self.identity, corpus.digest])}.npz"
        if file.is_file():
            return ids, load_npz(file)
        label, blocks, n_encoded = StepLabel(f"encoding documents, {self.name}", "documents"), [], 0
        progress(label, len(ids), 0)
        for batch in corpus.batches():
            for start in range(0, len(batch), 16 * self.config.batch_size):
                texts = [document.shown() for document in batch[start : start + 16 * self.config.batch_size]]
                blocks.append(self._encoded(texts, is_query=False))
                n_encoded += len(texts)
                progress(label, len(ids), n_encoded)
        documents = vstack(blocks, format="csr") if blocks else self._encoded([""], is_query=False)[:0]
        _keep(documents, file)
        return ids, documents

    def _encoded(self, texts: Sequence[str], *, is_query: bool) -> "csr_matrix":
        """Return one sparse row per text; RunFailed if one has a weight that is not finite."""
        from scipy.sparse import csr_matrix

        encode = self._model.encode_query if is_query else self._model.encode_document
        rows = encode(
            list(texts),
            prompt=self.config.query_prompt if is_query else self.config.document_prompt,
            batch_size=self.config.batch_size,
            convert_to_tensor=True,
            convert_to_sparse_tensor=True,
            show_progress_bar=False,
        )
        rows = rows.coalesce().cpu().float()
        weights = rows.values().numpy()
        if not np.isfinite(weights).all():
            raise RunFailed(f"retrievers.{self.name}: the model gives weights that are NaN or infinite")
        places: Numbers = rows.indices().numpy()
        return csr_matrix((weights, (places[0], places[1])), shape=tuple(rows.shape))

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - of a library that is optional
        model = self._stored.load("SparseEncoder", self.config.device)
        if self.config.max_length is not None:
            model.max_seq_length = self.config.max_length
        return model


def _keep(documents: "csr_matrix", file: Path) -> None:
    """Write sparse vectors to a hidden file and rename it."""
    from scipy.sparse import save_npz

    file.parent.mkdir(parents=True, exist_ok=True)
    hidden = file.with_name(f".{os.getpid()}-{file.name}")
    try:
        save_npz(hidden, documents)
        hidden.replace(file)
    finally:
        hidden.unlink(missing_ok=True)
