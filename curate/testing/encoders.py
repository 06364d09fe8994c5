"""What an encoder promises: one vector of length 1 per text, which depends on text and role alone."""

from collections.abc import Callable
from typing import get_args

import numpy as np

from curate.core.protocols import Encoder, Vectors
from curate.core.records import Role
from curate.system.egress import understood

TEXTS = ("小儿发热可以先物理降温，多喝水。", "Gout patients should avoid seafood and beer.", "⁂⁂")
NEAR = 0.05
"""Distance of two vectors that count as one: half precision and the padding of a batch change the last digits."""


def check_encoder(make: Callable[[], Encoder]) -> None:
    """Check an encoder on `TEXTS`, in both roles: form and length of the rows, and the same again in other company."""
    encoder = make()
    assert understood(encoder), 'egress is "local" for what sends nothing, "remote" for all else'
    assert encoder.name, "an encoder has a name"
    assert encoder.revision, "a revision says what can change a vector: it is part of the cache's key"
    assert make().revision == encoder.revision, "made again, it has the same revision"
    for role in get_args(Role):
        rows = encoder.encode(TEXTS, role)
        assert rows.dtype == np.float32, "rows are float32"
        assert rows.shape == (len(TEXTS), encoder.dim), "a row per text, as long as dim says"
        assert np.isfinite(rows).all(), "vectors are finite"
        lengths = np.linalg.norm(rows, axis=1)
        assert np.all((np.abs(lengths - 1) < 1e-3) | (lengths == 0)), "a vector has length 1, or is nothing but zeros"
        assert not _same(rows[:1], rows[1:2]), "different texts have different vectors"
        assert _same(encoder.encode(TEXTS[::-1], role)[::-1], rows), "the order of the texts changes nothing"
        alone = np.concatenate([encoder.encode([text], role) for text in TEXTS])
        assert _same(alone, rows), "the other texts change nothing"
        assert _same(make().encode(TEXTS, role), rows), "made again, it gives the same vectors"
        assert encoder.encode([], role).shape == (0, encoder.dim), "no text, no row"


def _same(one: Vectors, other: Vectors) -> bool:
    return bool((np.linalg.norm(one - other, axis=1) < NEAR).all())
