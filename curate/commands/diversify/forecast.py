"""Cost forecast of `diversify`: numbers of texts to encode and compare, and numbers that thresholds would retain."""

import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np

from curate.ask import build
from curate.ask.privacy_guard import Guarded
from curate.commands.diversify import Config
from curate.commands.diversify.vectors import MaskedTexts
from curate.core.figures import Record, figure
from curate.core.records import Role
from curate.pipeline.stage import Context
from curate.retrieval.similarity.devices import screen_for_pairs
from curate.retrieval.similarity.diversity import BLOCK, CALIBRATION, sweep
from curate.retrieval.similarity.near_duplicates import CHUNK
from curate.retrieval.similarity.screening import Screen
from curate.retrieval.vectors import CachedEncoder, keys_of

SAMPLE = 32
"""Number of texts encoded for the estimate; their vectors are not stored."""
ROLES: dict[Literal["queries", "corpus"], Role] = {"queries": "query", "corpus": "document"}


class ForecastRow(Record, schema_name="forecast"):
    """Texts of a table, and how long it takes to compare them."""

    table: Literal["queries", "corpus"] = figure("queries or documents")
    texts: int = figure("texts of the table")
    to_encode: int = figure("texts that are not in the cache")
    encode_minutes: float | None = figure(
        "estimated minutes of encoding; null for an encoder on a server, which is not asked", digits=1
    )
    compare_minutes: float = figure("minutes of comparing, at most", digits=1)


class ThresholdRow(Record, schema_name="threshold"):
    """What a threshold keeps of a sample of the texts."""

    t: float = figure("similarity above which two texts are near-duplicates")
    queries_sampled: int = figure("queries of the sample")
    queries_kept: int = figure("queries of the sample that are retained")
    queries_dropped: float | None = figure("share of the queries that is dropped")
    corpus_sampled: int = figure("documents of the sample")
    corpus_kept: int = figure("documents of the sample that are retained")
    corpus_dropped: float | None = figure("share of the documents that is dropped")


def forecast(config: Config, context: Context) -> list[ForecastRow]:
    """Return one row each for queries and documents that are compared by a cosine.

    The minutes to encode are from timing some of the texts; those to compare are an upper bound from timing one block
    of products, as if no text were dropped. `t: auto` compares up to 20,000 texts about ten times more.
    """
    rows = []
    for name, role in ROLES.items() if config.enabled else ():
        if not getattr(config, name).by_cosine:
            continue  # sentences are compared in seconds
        texts, encoder = MaskedTexts(context, name, config.encoder), build.encoder(context, config.encoder)
        missing = encoder.missing(keys_of((text for _, text in texts.items()), role), role)
        per_text = None if isinstance(encoder.encoder, Guarded) else _encoding(texts, encoder, role) if missing else 0.0
        pairs = len(texts) ** 2 / 2 * _comparing(screen_for_pairs(build.device(context), len(texts)), encoder.dim)
        encode_minutes = None if per_text is None else _minutes(missing * per_text)
        rows.append(ForecastRow(name, len(texts), missing, encode_minutes, _minutes(pairs)))
    return rows


def swept(config: Config, context: Context, ts: Sequence[float]) -> list[ThresholdRow]:
    """Return one row per threshold: how many of the first 20,000 texts of each table the rule would retain and drop.

    Texts that are not in the cache are encoded.
    """
    counts: list[dict[str, Any]] = [{"t": t} for t in ts]
    for name, role in ROLES.items():
        texts, side = MaskedTexts(context, name, config.encoder), getattr(config, name)
        sample = [text for _, text in islice(texts.items(), CALIBRATION)]
        vectors = build.encoder(context, config.encoder).encode(sample, role)
        for row, kept in zip(counts, sweep(vectors, ts, side.n), strict=True):
            row |= {
                f"{name}_sampled": len(sample),
                f"{name}_kept": kept,
                f"{name}_dropped": (len(sample) - kept) / len(sample) if sample else None,
            }
    return [ThresholdRow(**row) for row in counts]


def _encoding(texts: MaskedTexts, encoder: CachedEncoder, role: Role) -> float:
    """Return the seconds per encoded text, timed on texts spread over the table after the model is loaded."""
    step = max(1, len(texts) // SAMPLE)
    sample = [text for _, text in islice(texts.items(), 0, None, step)][:SAMPLE]
    encoder.encoder.encode(sample[:1], role)
    return _seconds(lambda: encoder.encoder.encode(sample, role)) / len(sample)


def _comparing(screen: Screen, dim: int) -> float:
    """Return the seconds per compared pair of vectors."""
    left, right = (screen.load(np.full((rows, dim), dim**-0.5, dtype=np.float32), 1.0) for rows in (BLOCK, CHUNK))

    def block() -> None:
        screen.above(screen.product(left, right), 2.0)

    block()
    return _seconds(block) / (BLOCK * CHUNK)


def _seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def _minutes(seconds: float) -> float:
    return round(seconds / 60, 1)
