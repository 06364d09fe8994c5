"""The index of BM25 on disk: built once for a corpus and its settings, checked, and mapped into memory."""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.config import Json, digest
from curate.core.errors import DataError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Corpus, Progress
from curate.retrieval.retrievers.tokens import Kind, Numbers, cut_all
from curate.system.files import digests, read_json, write_json
from curate.system.processes import cores

if TYPE_CHECKING:
    import bm25s

SPREAD = 5_000
"""Minimum documents to tokenise in several processes, which take two seconds to start."""
MARK = ".digests.json"
IDS = "ids.parquet"


@dataclass(frozen=True)
class Index:
    """Document ids, and the scores of every token in them; `bm25` is None if there is no token."""

    ids: list[str]
    bm25: "bm25s.BM25 | None"

    def scores(self, tokens: list[str]) -> npt.NDArray[np.float32]:
        """Return every document's score for a query's tokens."""
        if self.bm25 is None:
            return np.zeros(len(self.ids), dtype=np.float32)
        scores: npt.NDArray[np.float32] = self.bm25.get_scores_from_ids(self.bm25.get_tokens_ids(tokens))
        return scores


def index(
    folder: Path,
    identity: Json,
    corpus: Corpus,
    kind: Kind,
    weights: Mapping[str, float],
    progress: Progress,
    name: str,
) -> Index:
    """Return the index of a corpus: from `folder` if it exists undamaged, else built and stored there.

    Its subfolder is named by the digests of `identity` (settings and versions) and of the corpus. `name` is that of the
    retriever, for the progress.
    """
    index_folder = folder / "bm25" / digest([identity, corpus.digest])
    if not _is_complete(index_folder):
        shutil.rmtree(index_folder, ignore_errors=True)
        tokens = _cut(corpus, kind, folder, progress, StepLabel(f"indexing documents, {name}", "documents"))
        if not tokens.vocab:  # bm25s cannot index nothing
            return Index(tokens.doc_ids, None)
        with waiting(progress, StepLabel(f"writing the index, {name}")):
            import bm25s

            scorer = bm25s.BM25(**weights, csc_backend="scipy")  # the same index in two thirds of the memory
            scorer.index(tokens, create_empty_token=False, show_progress=False)
            _keep(Index(tokens.doc_ids, scorer), index_folder)
    return _load(index_folder)


def _is_complete(folder: Path) -> bool:
    try:
        return read_json(folder / MARK) == digests(folder)
    except (OSError, DataError):
        return False


def _load(folder: Path) -> Index:
    import bm25s

    loaded = bm25s.BM25.load(folder, mmap=True)
    for name in ("data", "indices", "indptr"):  # plain arrays over the mapped files: slices of them cost less
        loaded.scores[name] = np.asarray(loaded.scores[name])
    return Index(pl.read_parquet(folder / IDS)["doc_id"].to_list(), loaded)


def _keep(built: Index, folder: Path) -> None:
    """Write an index to a hidden folder and rename it, unless another process has written the same meanwhile."""
    import pyarrow.parquet as pq

    hidden_folder = folder.with_name(f".{folder.name}.{os.getpid()}")
    assert built.bm25 is not None
    try:
        built.bm25.save(hidden_folder, show_progress=False)
        pq.write_table(
            pl.DataFrame({"doc_id": built.ids}).to_arrow(), hidden_folder / IDS
        )  # says "disk full" as OSError
        write_json(hidden_folder / MARK, digests(hidden_folder))
        try:
            hidden_folder.rename(folder)
        except OSError:
            if not _is_complete(folder):
                raise
    finally:
        shutil.rmtree(hidden_folder, ignore_errors=True)


def _cut(corpus: Corpus, kind: Kind, cache: Path, progress: Progress, label: str) -> "_Tokens":
    """Return the tokens of all documents, on all cores if there are many."""
    ids: list[str] = []
    vocabulary: dict[str, int] = {}
    tokens, counts = [np.empty(0, np.int32)], [np.empty(0, np.int32)]

    def texts() -> Iterator[list[str]]:
        for batch in corpus.batches():
            ids.extend(doc.doc_id for doc in batch)
            yield [doc.shown() for doc in batch]

    total, completed = len(corpus), 0
    progress(label, total, 0)
    for words, numbers, lengths in cut_all(kind, cache, texts(), cores() if total >= SPREAD else 1):
        # in the order in which tokens come, not in that of processes
        token_numbers = np.array([vocabulary.setdefault(word, len(vocabulary)) for word in words], dtype=np.int32)
        tokens.append(token_numbers[numbers])
        counts.append(lengths)
        completed += len(lengths)
        progress(label, total, completed)
    return _Tokens(np.concatenate(tokens), np.cumsum(np.concatenate(counts)), vocabulary, ids)


class _Tokens:
    """The tokens of all documents in the form that bm25s expects, stored as int32."""

    def __init__(
        self, tokens: Numbers, ends: npt.NDArray[np.int64], vocab: Mapping[str, int], doc_ids: list[str]
    ) -> None:
        self.vocab, self.ids, self._tokens, self._ends, self.doc_ids = vocab, self, tokens, ends, doc_ids

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[list[int]]:
        start = 0
        for end in self._ends.tolist():
            yield self._tokens[start:end].tolist()
            start = end
