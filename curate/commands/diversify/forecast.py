"""Cost forecast of `diversify`: numbers of texts to encode and compare, and numbers that thresholds would retain."""

import time
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from curate.ask import build
from curate.ask.privacy_guard import Guarded
from curate.commands.diversify import Config
from curate.commands.diversify.vectors import TABLES, MaskedTexts
from curate.core.config import Json
from curate.core.records import Role
from curate.pipeline.stage import Context
from curate.retrieval.similarity.devices import screen_for_pairs
from curate.retrieval.similarity.diversity import BLOCK, CALIBRATION, sweep
from curate.retrieval.similarity.near_duplicates import CHUNK
from curate.retrieval.similarity.screening import Screen
from curate.retrieval.vectors import CachedEncoder, keys_of

SAMPLE = 32
"""Number of texts encoded for the estimate; their vectors are not stored."""
ROLES: dict[str, Role] = {"queries": "query", "corpus": "document"}


def forecast(config: Config, context: Context) -> list[dict[str, Json]]:
    """Return one row each for queries and documents: the number of texts, and the estimated minutes.

    Keys: `texts`. `to_encode`: texts not in the cache. `encode_minutes`: estimated from timing some of them; None for a
    remote encoder, to which no text is sent. `compare_minutes`: an upper bound from timing one block of products, as if
    no text were dropped. `t: auto` compares up to 20,000 texts about ten times more.
    """
    sides = {name: getattr(config, name) for name in TABLES}
    rows: list[dict[str, Json]] = []
    for name in TABLES if config.enabled else ():
        if not sides[name].by_cosine:
            continue  # sentences are compared in seconds
        texts, encoder = MaskedTexts(context, name, config.encoder), build.encoder(context, config.encoder)
        role = ROLES[name]
        missing = encoder.missing(keys_of((text for _, text in texts.items()), role), role)
        each = None if isinstance(encoder.encoder, Guarded) else _encoding(texts, encoder) if missing else 0.0
        pairs = len(texts) ** 2 / 2 * _comparing(screen_for_pairs(build.device(context), len(texts)), encoder.dim)
        rows.append(
            {
                "table": name,
                "texts": len(texts),
                "to_encode": missing,
                "encode_minutes": None if each is None else _minutes(missing * each),
                "compare_minutes": _minutes(pairs),
            }
        )
    return rows


def swept(config: Config, context: Context, ts: Sequence[float]) -> list[dict[str, Json]]:
    """Return one row per threshold: how many of the first 20,000 texts of each table the rule would retain and drop.

    Keys: `t`; for queries and corpus `sampled` and `kept` (numbers of texts), `dropped` (share, None without texts).
    Texts that are not in the cache are encoded.
    """
    found: list[dict[str, Json]] = [{"t": t} for t in ts]
    for name in TABLES:
        texts, side = MaskedTexts(context, name, config.encoder), getattr(config, name)
        sample = [text for _, text in islice(texts.items(), CALIBRATION)]
        vectors = build.encoder(context, config.encoder).encode(sample, ROLES[name])
        for row, kept in zip(found, sweep(vectors, ts, side.n), strict=True):
            row |= {
                f"{name}_sampled": len(sample),
                f"{name}_kept": kept,
                f"{name}_dropped": (len(sample) - kept) / len(sample) if sample else None,
            }
    return found


def _encoding(texts: MaskedTexts, encoder: CachedEncoder) -> float:
    """Return the seconds per encoded text, timed on texts spread over the table after the model is loaded."""
    step = max(1, len(texts) // SAMPLE)
    sample = [text for _, text in islice(texts.items(), 0, None, step)][:SAMPLE]
    role = ROLES[texts.table]
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
