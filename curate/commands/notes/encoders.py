"""What turns notes into vectors: encoders by name or folder, and the floors that know nothing of meaning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

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
"""Length of a random vector, and of one of n-grams: of more texts than `CELLS` allow it is shorter."""
CELLS = 1 << 28
"""Numbers that the n-grams of all texts may be: 1 GB."""


@dataclass(frozen=True)
class NoteEncoder:
    """A contestant or a floor."""

    name: str
    revision: str
    encode: Callable[[Sequence[str]], Vectors]
    """Returns a row of unit length per text."""
    cached: CachedEncoder | None = None
    """The cache of its vectors; None for a floor, which is made anew."""

    @property
    def is_floor(self) -> bool:
        """Return whether it is there to be beaten."""
        return self.cached is None


def named(
    names: Sequence[str], max_length: int | None = None, device: str | None = None, progress: Progress = quiet
) -> list[NoteEncoder]:
    """Return the encoders of these names, each once; ConfigError for an unknown one.

    A name is one of `OFFLINE` or `PACKAGED`, a folder of sentence-transformers, or a model of the hub. `max_length`
    cuts the texts of the latter three, in tokens.
    """
    if max_length is not None and all(name in OFFLINE for name in names):
        raise ConfigError("--max-length: found no model that takes it: those offline have a length of their own")
    return [_cached(name, max_length, device, progress) for name in dict.fromkeys(names)]


def _cached(name: str, max_length: int | None, device: str | None, progress: Progress) -> NoteEncoder:
    if name in OFFLINE:
        make = ENCODERS.load(name)
        encoder = make(name, _config(make)())
    else:
        model = model_folder(name)
        encoder = DenseEncoder(name, DenseConfig(model=model, max_length=max_length, device=device))
    cached = CachedEncoder(encoder, default_folder(home()), progress)
    return NoteEncoder(name, encoder.revision, lambda texts: cached.encode(texts, ROLE), cached)


def _config(make: object) -> Callable[[], object]:
    from importlib import import_module

    found: Callable[[], object] = import_module(str(getattr(make, "__module__", ""))).Config
    return found


def floors() -> list[NoteEncoder]:
    """Return what a model has to beat: the length of a text, the signs that it shares with another, and chance."""
    return [NoteEncoder(name, "1", make) for name, make in zip(FLOORS, (_lengths, _overlap, _random), strict=True)]


def _lengths(texts: Sequence[str]) -> Vectors:
    """Return a point of a quarter circle per text, by the logarithm of its length: the closer, the more similar."""
    length = np.log([len(text) + 1 for text in texts])
    angle = np.pi / 2 * (length - length.min()) / (np.ptp(length) or 1.0)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def _overlap(texts: Sequence[str]) -> Vectors:
    """Return tf-idf of the most frequent 1- to 3-grams of characters within words."""
    with needed("the floor of overlap"):
        from sklearn.feature_extraction.text import TfidfVectorizer
    size = max(min(GRAMS, CELLS // len(texts)), RANDOM)
    counts = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), sublinear_tf=True, max_features=size)
    return unit(counts.fit_transform(texts).toarray().astype(np.float32))


def _random(texts: Sequence[str]) -> Vectors:
    """Return a random direction per text, the same for the same text, whatever stands beside it."""
    found = np.empty((len(texts), RANDOM), dtype=np.float32)
    for row, text in enumerate(texts):
        seed = int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest())
        found[row] = np.random.default_rng(seed).standard_normal(RANDOM, dtype=np.float32)
    return unit(found)
