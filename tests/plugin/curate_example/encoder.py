"""`bigrams`: vectors that count pairs of neighbouring characters, so that texts of like spelling are near."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from curate import Role, Section, Vectors


class Config(Section):
    """What a pipeline file may set, as in `encoders: {mine: {kind: bigrams, dim: 256}}`."""

    dim: int = 1024
    """Length of a vector; two pairs that fall into one place are counted together."""


class Bigrams:
    """Encode a text as how often each pair of characters stands in it."""

    egress = "local"  # it sends nothing

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.dim = name, config.dim
        self.revision = f"bigrams 1, {config.dim}"  # all that changes a vector: it is part of the cache's key

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one row per text, of length 1, or of zeros for a text without a pair; queries as documents."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for at in range(len(text) - 1):
                row[crc32(text[at : at + 2].encode()) % self.dim] += 1
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)
        return rows
