"""The texts that `mask` wrote, read in batches, and their vectors."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from curate.ask import build
from curate.core.protocols import Vectors
from curate.core.records import shown
from curate.pipeline.stage import Context
from curate.retrieval.similarity.diversity import Kept
from curate.retrieval.vectors import of_corpus
from curate.system.corpus import TableCorpus
from curate.system.files import TableWriter, batches, column, height

TABLES = {"queries": ("query_id", "text"), "corpus": ("doc_id", "title", "text")}


@dataclass(frozen=True)
class MaskedTexts:
    """The queries or the documents that `mask` wrote, read in batches, and their vectors by an encoder."""

    context: Context
    table: str
    encoder: str

    def __len__(self) -> int:
        return height(self.context.folder("mask"), self.table)

    def ids(self) -> pl.Series:
        """Return the ids, in order."""
        return column(self.context.folder("mask"), self.table, TABLES[self.table][0])

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield (id, text) in order; the text of a document is what an encoder sees."""
        for batch in self._batches():
            for name, *texts in batch.select(TABLES[self.table]).iter_rows():
                yield name, shown(*texts) if self.table == "corpus" else texts[0]

    def vectors(self) -> Vectors:
        """Return the vectors of all texts, in order."""
        encoder = build.encoder(self.context, self.encoder)
        if self.table == "corpus":
            return of_corpus(encoder, TableCorpus(self.context.folder("mask")), self.context.progress)[1]
        return encoder.encode([text for _, text in self.items()], "query")

    def copy(self, kept: Kept) -> None:
        """Write the kept rows, in order."""
        at = 0
        with TableWriter(self.context.out, self.table) as writer:
            for batch in self._batches():
                writer.extend(batch.filter(pl.Series(kept[at : at + len(batch)], dtype=pl.Boolean)))
                at += len(batch)

    def _batches(self) -> Iterator[pl.DataFrame]:
        return batches(self.context.folder("mask"), self.table)
