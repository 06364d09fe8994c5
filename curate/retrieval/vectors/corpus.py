"""Ids and vectors of a corpus or of a part of it, as a matrix that may be larger than memory."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from curate.core.config import Json
from curate.core.progress import StepLabel, counting
from curate.core.protocols import Corpus, Encoder, Engine, Progress, Vectors, quiet
from curate.core.records import Role
from curate.retrieval.vectors.cache import BLOCK, CachedEncoder, key_of, keys_of
from curate.retrieval.vectors.store import KEY, Keys

WHOLE = (0, 1)
"""The part that is the whole corpus: (number of the part from 0, number of parts)."""


def of_corpus(
    encoder: Encoder, corpus: Corpus, progress: Progress = quiet, part: tuple[int, int] = WHOLE
) -> tuple[list[str], Vectors]:
    """Return document ids and their vectors, shape (documents, dim), of a corpus or a part of it; see `span`.

    With a cached encoder, all missing texts of the corpus are encoded, and the matrix is read-only and mapped from
    disk. An encoder without a cache gets all texts in one call.
    """
    return identified(encoder, corpus, progress, part)[:2]


def identified(
    encoder: Encoder, corpus: Corpus, progress: Progress = quiet, part: tuple[int, int] = WHOLE
) -> tuple[list[str], Vectors, Json]:
    """Return ids and vectors like `of_corpus`, and a key of the vectors: encoder, texts and their order."""
    ids, keys = _listed(encoder, corpus, progress)
    rows = span(len(ids), *part)
    texts = hashlib.sha256(keys[rows].tobytes()).hexdigest()
    if isinstance(encoder, CachedEncoder):
        vectors = encoder.matrix(keys, lambda: _texts(corpus), "document", rows)
        return ids[rows], vectors, [encoder.folder.name, texts]
    vectors = encoder.encode(list(_texts(corpus))[rows], "document")
    return ids[rows], vectors, [encoder.name, encoder.revision, texts]


def encode_part(encoder: CachedEncoder, corpus: Corpus, progress: Progress, part: tuple[int, int] = WHOLE) -> int:
    """Encode the texts of a part of a corpus that are not cached, and return their number; no vectors are read."""
    ids, keys = _listed(encoder, corpus, progress)
    return encoder.fill(keys, lambda: _texts(corpus), "document", span(len(ids), *part))


def fill_texts(encoder: CachedEncoder, texts: Sequence[str], role: Role, part: tuple[int, int] = WHOLE) -> int:
    """Encode those of a part of `texts` that are not cached, and return their number."""
    return encoder.fill(keys_of(texts, role), lambda: texts, role, span(len(texts), *part))


def span(total: int, number: int, parts: int) -> slice:
    """Return the slice of part `number` (from 0) of `parts` parts of `total` texts; parts are aligned to blocks."""
    blocks = -(-total // BLOCK)
    return slice(blocks * number // parts * BLOCK, min(blocks * (number + 1) // parts * BLOCK, total))


def _listed(encoder: Encoder, corpus: Corpus, progress: Progress) -> tuple[list[str], Keys]:
    """Return the ids and cache keys of all documents, in the order of the corpus."""
    ids: list[str] = []
    keys = bytearray()
    label = StepLabel(f"reading documents, {encoder.name}", "documents")
    total = len(corpus)
    progress(label, total, 0)
    for batch in corpus.batches():
        ids.extend(doc.doc_id for doc in batch)
        keys += b"".join(key_of(doc.shown(), "document") for doc in batch)
        progress(label, total, len(ids))
    return ids, np.frombuffer(keys, f"S{KEY}")


def _texts(corpus: Corpus) -> Iterator[str]:
    return (doc.shown() for batch in corpus.batches() for doc in batch)


# Encode a corpus in parts, by an engine: the same rows in the cache as in one piece, however many parts there are.


def encode_in_parts(
    engine: Engine,
    encoder: CachedEncoder,
    corpus: Corpus,
    queries: Sequence[str],
    progress: Progress,
    part: tuple[int, int] = WHOLE,
) -> tuple[int, int]:
    """Encode the queries and documents of a part that are not cached; return (number of queries, number of documents).

    The part is divided into `engine.shards` parts, over which the engine maps the work.
    """
    number, all_parts = part[0] * engine.shards, part[1] * engine.shards
    shards = [(number + index, all_parts) for index in range(engine.shards)]
    encoding = engine.map(partial(_encoded, encoder, corpus, queries), shards)
    queries_encoded = documents_encoded = 0
    for counts in counting(encoding, progress, StepLabel(f"encoding in parts, {encoder.name}", "parts"), len(shards)):
        queries_encoded, documents_encoded = queries_encoded + counts[0], documents_encoded + counts[1]
    return queries_encoded, documents_encoded


def _encoded(encoder: CachedEncoder, corpus: Corpus, queries: Sequence[str], part: tuple[int, int]) -> tuple[int, int]:
    return fill_texts(encoder, queries, "query", part), encode_part(encoder, corpus, quiet, part)
