"""Encoders of notes by name or folder, and trivial baselines ("floors"): length, n-grams, random vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module

import numpy as np

from curate.core.errors import ConfigError
from curate.core.protocols import Progress, Vectors, quiet
from curate.core.records import Role
from curate.pipeline.stage import home
from curate.retrieval.encoders import ENCODERS
from curate.retrieval.encoders.dense import Config as DenseConfig
from curate.retrieval.encoders.dense import DenseEncoder
from curate.retrieval.encoders.packaged import OFFLINE, model_folder
from curate.retrieval.similarity.exact_search import unit
from curate.retrieval.vectors import CachedEncoder, default_folder
from curate.system.extras import needed

FLOORS = ("length", "overlap", "random")
ROLE: Role = "document"
RANDOM, GRAMS = 256, 4096
"""Dimensions of a random vector, and at most of an n-gram vector; fewer if the matrix would exceed `CELLS`."""
CELLS = 1 << 28
"""Largest n-gram matrix, in float32 values: 1 GB."""


@dataclass(frozen=True)
class NoteEncoder:
    """An encoder under evaluation, or a trivial baseline (floor)."""

    name: str
    revision: str
    encode: Callable[[Sequence[str]], Vectors]
    """Texts -> float32 of shape (texts, dimensions), rows of unit length."""
    cached: CachedEncoder | None = None
    """Encoder with a cache of vectors; None for a floor, which is recomputed."""

    @property
    def is_floor(self) -> bool:
        """Return whether this is a trivial baseline."""
        return self.cached is None


def named(
    names: Sequence[str], max_length: int | None = None, device: str | None = None, progress: Progress = quiet
) -> list[NoteEncoder]:
    """Return one encoder per distinct name; ConfigError for an unknown one.

    A name is one of `OFFLINE` or `PACKAGED`, a folder of sentence-transformers, or a model of the hub. `max_length`, in
    tokens, truncates the input of all encoders except `OFFLINE`; ConfigError if there are no others.
    """
    if max_length is not None and all(name in OFFLINE for name in names):
        raise ConfigError("max_length: found no model that takes it: those offline have a length of their own")
    return [_cached(name, max_length, device, progress) for name in dict.fromkeys(names)]


def _cached(name: str, max_length: int | None, device: str | None, progress: Progress) -> NoteEncoder:
    if name in OFFLINE:
        make = ENCODERS.load(name)
        module = import_module(str(getattr(make, "__module__", "")))
        encoder = make(name, module.Config())
    else:
        model = model_folder(name)
        encoder = DenseEncoder(name, DenseConfig(model=model, max_length=max_length, device=device))
    cached = CachedEncoder(encoder, default_folder(home()), progress)
    return NoteEncoder(name, encoder.revision, lambda texts: cached.encode(texts, ROLE), cached)


def floors() -> list[NoteEncoder]:
    """Return the baselines: text length, shared character n-grams, and random vectors."""
    return [NoteEncoder(name, "1", make) for name, make in zip(FLOORS, (_lengths, _overlap, _random), strict=True)]


def _lengths(texts: Sequence[str]) -> Vectors:
    """Return unit vectors in the plane by text length, so that cosine similarity falls with the ratio of lengths.

    The angle is the log length, scaled to [0, pi/2].
    """
    length = np.log([len(text) + 1 for text in texts])
    angle = np.pi / 2 * (length - length.min()) / (np.ptp(length) or 1.0)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def _overlap(texts: Sequence[str]) -> Vectors:
    """Return tf-idf vectors of the most frequent character 1- to 3-grams within words."""
    with needed("the floor of overlap"):
        from sklearn.feature_extraction.text import TfidfVectorizer
    size = max(min(GRAMS, CELLS // len(texts)), RANDOM)
    counts = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), sublinear_tf=True, max_features=size)
    return unit(counts.fit_transform(texts).toarray().astype(np.float32))


def _random(texts: Sequence[str]) -> Vectors:
    """Return random unit vectors, seeded by a hash of the text, so that equal texts have equal vectors."""
    vectors = np.empty((len(texts), RANDOM), dtype=np.float32)
    for row, text in enumerate(texts):
        seed = int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest())
        vectors[row] = np.random.default_rng(seed).standard_normal(RANDOM, dtype=np.float32)
    return unit(vectors)
