"""Exact search of a corpus in parts, by an engine: the same hits as in one piece, however many parts there are."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from curate.core.progress import StepLabel, counting
from curate.core.protocols import Corpus, Encoder, Engine, Progress, Vectors, quiet
from curate.retrieval.similarity.devices import screen_for_search
from curate.retrieval.similarity.exact_search import places, top_k
from curate.retrieval.similarity.screening import Rows, Scores
from curate.retrieval.vectors import CachedEncoder, encode_in_parts, of_corpus, span

BestOfAll = tuple[Rows, Scores]
"""For each query, rows of its best documents and their products, best first; shape (queries, documents)."""
Part = tuple[int, int]
"""Number of the part, from 0, and number of parts."""


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
    shards = [(number, engine.shards) for number in range(engine.shards)]
    encode_in_parts(engine, encoder, corpus, queries, progress)
    query_vectors = encoder.encode(queries, "query")
    ids = [doc.doc_id for batch in corpus.batches() for doc in batch]
    order = places(ids)
    best: BestOfAll = np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0))
    filled = [shard for shard in shards if ids[span(len(ids), *shard)]]
    search_part = partial(_searched, encoder, corpus, query_vectors, depth, device)
    searching = engine.map(search_part, filled)
    for hits in counting(searching, progress, StepLabel(f"searching parts, {encoder.name}", "parts"), len(filled)):
        best = merged(best, hits, order, depth)
    for rows, scores in zip(*best, strict=True):
        yield [(ids[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]


def _searched(encoder: Encoder, corpus: Corpus, queries: Vectors, depth: int, device: str, shard: Part) -> BestOfAll:
    """Return the best documents of a part of the corpus, as rows of the whole corpus."""
    ids, documents = of_corpus(encoder, corpus, quiet, shard)
    screen = screen_for_search(device, len(queries) * len(documents))
    rows, scores = (np.stack(arrays) for arrays in zip(*top_k(queries, documents, ids, depth, screen), strict=True))
    return rows + span(len(corpus), *shard).start, scores


def merged(left: BestOfAll, right: BestOfAll, order: Rows, depth: int) -> BestOfAll:
    """Return the best of two results, by product and then by `order`, a document's position among sorted ids."""
    rows, scores = (np.concatenate(arrays, axis=1) for arrays in zip(left, right, strict=True))
    first = np.lexsort((order[rows], -scores), axis=-1)[:, :depth]
    return np.take_along_axis(rows, first, 1), np.take_along_axis(scores, first, 1)
