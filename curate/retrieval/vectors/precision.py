"""Vectors in half precision compared with those in float32: a model that loses its meaning there is stopped."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from curate.core.config import Json
from curate.core.errors import RunFailed
from curate.core.protocols import Vectors

TEXTS, LEAST = 64, 0.999
"""Texts that are compared, and the cosine that each of them must have with its own vector in float32."""


@dataclass(frozen=True)
class PrecisionCheck:
    """How near the vectors of a precision are to those of float32."""

    texts: int
    lowest: float
    """Cosine of the text that differs most."""
    mean: float

    def shown(self) -> dict[str, Json]:
        """Return it as plain values."""
        return asdict(self)


def nearness(told: str, remedy: str, found: Sequence[Vectors], exact: Sequence[Vectors]) -> PrecisionCheck:
    """Return how near vectors are to those of float32; RunFailed below .999, or for a vector with a NaN.

    `told` begins the sentence with the model and its precision.
    """
    ours, theirs = ([rows.astype(np.float64) for rows in some] for some in (found, exact))
    count = sum(map(len, ours))
    if bad := sum(int((~np.isfinite(rows)).any(axis=1).sum()) for rows in ours):
        raise RunFailed(f"{told} {bad} of {count} vectors hold NaN or infinity, expected none; {remedy}")
    cosines = np.concatenate([_cosines(*both) for both in zip(ours, theirs, strict=True)])
    lowest, mean = float(cosines.min()), float(cosines.mean())
    if not lowest >= LEAST:
        raise RunFailed(
            f"{told} the vectors of {count} texts are not those of float32: lowest cosine {lowest:.5f}, "
            f"expected {LEAST} or more; {remedy}"
        )
    return PrecisionCheck(count, round(lowest, 6), round(mean, 6))


def spread(texts: Sequence[str], most: int) -> list[str]:
    """Return at most so many texts, evenly over all."""
    step = max(len(texts) / most, 1)
    return [texts[int(place * step)] for place in range(min(len(texts), most))]


def some(texts: Sequence[str], count: int = TEXTS) -> list[str]:
    """Return so many texts, evenly over all, and the longest, where numbers grow largest."""
    if len(texts) <= count:
        return list(texts)
    return [*spread(texts, count - 1), max(texts, key=len)]


def _cosines(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    same = (one == other).all(axis=1)  # also of two vectors of length 0, which have no cosine
    return np.where(same, 1.0, (one * other).sum(axis=1) / np.where(lengths > 0, lengths, 1))
