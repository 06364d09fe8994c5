"""Corpora as tables on disk, read in batches; no corpus is held in memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from curate.core.config import digest
from curate.core.protocols import Corpus, Progress
from curate.core.records import Document
from curate.system.files import batches, column, height, sha256


class TableCorpus:
    """The `corpus` table of a stage's folder."""

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
    """A corpus without some of its documents; every id in `removed` is one of its own."""

    def __init__(self, corpus: Corpus, removed: frozenset[str]) -> None:
        self.corpus, self.removed = corpus, removed

    @property
    def digest(self) -> str:
        """Return what identifies the texts that are left."""
        return digest(["kept", self.corpus.digest, sorted(self.removed)])

    def __len__(self) -> int:
        """Return the number of documents that are left."""
        return len(self.corpus) - len(self.removed)

    def batches(self) -> Iterator[list[Document]]:
        """Yield the documents that are left, in order."""
        for batch in self.corpus.batches():
            yield [document for document in batch if document.doc_id not in self.removed]


class CountedCorpus:
    """A corpus that says how far it is read, each time that it is."""

    def __init__(self, corpus: Corpus, progress: Progress, label: str) -> None:
        self.corpus, self._progress, self._label = corpus, progress, label

    @property
    def digest(self) -> str:
        """Return what identifies ids and texts."""
        return self.corpus.digest

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.corpus)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        done, total = 0, len(self)
        self._progress(self._label, total, done)
        for batch in self.corpus.batches():
            yield batch
            done += len(batch)
            self._progress(self._label, total, done)


class RenamedCorpus:
    """A corpus whose ids carry a prefix, or are those of a map."""

    def __init__(self, corpus: Corpus, prefix: str = "", names: Mapping[str, str] | None = None) -> None:
        self.corpus, self.prefix, self.names = corpus, prefix, names or {}

    @property
    def digest(self) -> str:
        """Return what identifies texts and ids."""
        return digest(["prefixed", self.corpus.digest, self.prefix, *sorted(self.names.items())])

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.corpus)

    def batches(self) -> Iterator[list[Document]]:
        """Yield the documents in order, with their new ids."""
        for batch in self.corpus.batches():
            yield [replace(each, doc_id=self.names.get(each.doc_id, self.prefix + each.doc_id)) for each in batch]
