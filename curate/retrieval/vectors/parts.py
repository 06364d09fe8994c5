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
    """Encode what the cache lacks of a part of queries and documents; return how many of each that were.

    The part is cut again, into `engine.shards` parts.
    """
    number, parts = part[0] * engine.shards, part[1] * engine.shards
    cut = [(number + each, parts) for each in range(engine.shards)]
    encoding = engine.map(partial(_encoded, encoder, corpus, queries), cut)
    asked = held = 0
    for found in counting(encoding, progress, StepLabel(f"encoding in parts, {encoder.name}", "parts"), len(cut)):
        asked, held = asked + found[0], held + found[1]
    return asked, held


def _encoded(encoder: CachedEncoder, corpus: Corpus, queries: Sequence[str], part: tuple[int, int]) -> tuple[int, int]:
    return fill_texts(encoder, queries, "query", part), encode_part(encoder, corpus, quiet, part)
