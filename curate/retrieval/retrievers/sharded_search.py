"""Exact search of a corpus in parts, by an engine: the same hits as in one piece, however many parts there are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from curate.core.protocols import Corpus, Encoder, Engine, Progress, Vectors, quiet
from curate.retrieval.similarity.approximate import Rows, Scores
from curate.retrieval.similarity.devices import screen_on
from curate.retrieval.similarity.exact_search import top_k
from curate.retrieval.vectors import CachedEncoder, encode_part, fill_texts, of_corpus, span

Best = tuple[Rows, Scores]
"""For each query, places of its best documents and their products, best first; shape (queries, documents)."""


@dataclass(frozen=True)
class Encoding:
    """A part of queries and documents that are to be in the cache."""

    encoder: CachedEncoder
    corpus: Corpus
    queries: Sequence[str]
    part: tuple[int, int]

    def do(self) -> int:
        """Encode what the cache lacks; return how many texts that were."""
        queries = fill_texts(self.encoder, self.queries, "query", self.part)
        return queries + encode_part(self.encoder, self.corpus, quiet, self.part)


@dataclass(frozen=True)
class Searching:
    """A part of a corpus in which all queries are searched."""

    encoder: Encoder
    corpus: Corpus
    queries: Vectors
    depth: int
    device: str
    part: tuple[int, int]

    def do(self) -> Best:
        """Return the best documents of this part, as places in the whole corpus."""
        ids, documents = of_corpus(self.encoder, self.corpus, quiet, self.part)
        found = list(top_k(self.queries, documents, ids, self.depth, screen_on(self.device)))
        shape = len(self.queries), min(self.depth, len(ids))
        rows = np.array([[row for row, _ in best] for best in found], np.int64).reshape(shape)
        scores = np.array([[score for _, score in best] for best in found], np.float64).reshape(shape)
        return rows + span(len(self.corpus), *self.part).start, scores


def search(
    engine: Engine,
    encoder: CachedEncoder,
    corpus: Corpus,
    queries: Sequence[str],
    depth: int,
    device: str,
    progress: Progress,
) -> Iterator[list[tuple[str, float]]]:
    """Yield each query's `depth` best documents and their products, best first, ties by document id."""
    parts = [(number, engine.shards) for number in range(engine.shards)]
    encodings = [Encoding(encoder, corpus, queries, part) for part in parts]
    for done, _ in enumerate(engine.map(Encoding.do, encodings), start=1):
        progress(f"encode parts, {encoder.name}", len(parts), done)
    asked = encoder.encode(queries, "query")
    ids = [doc.doc_id for batch in corpus.batches() for doc in batch]
    order = np.empty(len(ids), np.int64)
    order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    best: Best = np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0))
    searches = [Searching(encoder, corpus, asked, depth, device, part) for part in parts if ids[span(len(ids), *part)]]
    for done, found in enumerate(engine.map(Searching.do, searches), start=1):
        best = merged(best, found, order, depth)
        progress(f"search parts, {encoder.name}", len(searches), done)
    for rows, scores in zip(*best, strict=True):
        yield [(ids[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]


def merged(left: Best, right: Best, order: Rows, depth: int) -> Best:
    """Return the best of two parts' best, by product and then by `order`, a document's place among all ids."""
    rows, scores = (np.concatenate(each, axis=1) for each in zip(left, right, strict=True))
    first = np.lexsort((order[rows], -scores), axis=-1)[:, :depth]
    return np.take_along_axis(rows, first, 1), np.take_along_axis(scores, first, 1)
