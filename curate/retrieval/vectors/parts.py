"""Encode a corpus in parts, by an engine: the same rows in the cache as in one piece, however many parts there are."""

from collections.abc import Sequence
from functools import partial

from curate.core.progress import StepLabel, counting
from curate.core.protocols import Corpus, Engine, Progress, quiet
from curate.retrieval.vectors.cache import CachedEncoder
from curate.retrieval.vectors.corpus import WHOLE, encode_part, fill_texts


def encode_in_parts(
    engine: Engine,
    encoder: CachedEncoder,
    corpus: Corpus,
    queries: Sequence[str],
    progress: Progress,
    part: tuple[int, int] = WHOLE,
) -> tuple[int, int]:
    """Encode the missing queries and documents of a part; return the numbers of both.

    The part is divided into `engine.shards` parts.
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
