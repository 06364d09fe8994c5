"""Corpora as tables on disk, read in batches of documents, and wrappers that remove, rename or count documents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from curate.core.config import digest
from curate.core.protocols import Corpus, Progress
from curate.core.records import Document
from curate.system.files import batches, column, height, sha256


class TableCorpus:
    """The corpus in the table `corpus` of a stage's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "corpus.parquet"

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the table."""
        return sha256(self.path)

    def __len__(self) -> int:
        """Return the number of documents."""
        return height(self.folder, "corpus")

    def ids(self) -> pl.Series:
        """Return the ids in the table's order."""
        return column(self.folder, "corpus", "doc_id")

    def batches(self) -> Iterator[list[Document]]:
        """Yield the documents in the table's order."""
        for frame in batches(self.folder, "corpus"):
            yield [Document(*row) for row in frame.select("doc_id", "title", "text").iter_rows()]


class KeptCorpus:
    """A corpus without the documents of `removed`; each of these ids must be in the corpus."""

    def __init__(self, corpus: Corpus, removed: frozenset[str]) -> None:
        self.corpus, self.removed = corpus, removed

    @property
    def digest(self) -> str:
        """Return a digest of the corpus and the removed ids."""
        return digest(["kept", self.corpus.digest, sorted(self.removed)])

    def __len__(self) -> int:
        """Return the number of remaining documents."""
        return len(self.corpus) - len(self.removed)

    def batches(self) -> Iterator[list[Document]]:
        """Yield the remaining documents, in order; a batch may be empty."""
        for batch in self.corpus.batches():
            yield [document for document in batch if document.doc_id not in self.removed]


class CountedCorpus:
    """A corpus that reports progress, the number of documents read, on every pass over it."""

    def __init__(self, corpus: Corpus, progress: Progress, label: str) -> None:
        self.corpus, self._progress, self._label = corpus, progress, label

    @property
    def digest(self) -> str:
        """Return the digest of the corpus."""
        return self.corpus.digest

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.corpus)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        completed, total = 0, len(self)
        self._progress(self._label, total, completed)
        try:
            for batch in self.corpus.batches():
                yield batch
                completed += len(batch)
                self._progress(self._label, total, completed)
        finally:
            if completed < total:  # the reader had enough, and its step has ended
                self._progress(self._label, total, total)


class RenamedCorpus:
    """A corpus with new document ids: `names` maps old to new ids; other ids get the prefix."""

    def __init__(self, corpus: Corpus, prefix: str = "", names: Mapping[str, str] | None = None) -> None:
        self.corpus, self.prefix, self.names = corpus, prefix, names or {}

    @property
    def digest(self) -> str:
        """Return a digest of the corpus, the prefix and the new ids."""
        return digest(["prefixed", self.corpus.digest, self.prefix, *sorted(self.names.items())])

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.corpus)

    def batches(self) -> Iterator[list[Document]]:
        """Yield the documents in order, with their new ids."""
        for batch in self.corpus.batches():
            yield [
                replace(document, doc_id=self.names.get(document.doc_id, self.prefix + document.doc_id))
                for document in batch
            ]
