"""Check of vectors in half precision against float32: a model that loses its meaning is refused."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from curate.core.config import Json
from curate.core.errors import RunFailed
from curate.core.protocols import Vectors

TEXTS, LEAST = 64, 0.999
"""Number of compared texts, and minimum cosine of each with its float32 vector."""


@dataclass(frozen=True)
class PrecisionCheck:
    """Similarity of the vectors of a precision to those of float32."""

    texts: int
    lowest: float
    """Lowest cosine of a text."""
    mean: float

    def shown(self) -> dict[str, Json]:
        """Return the check for JSON."""
        return asdict(self)


def nearness(subject: str, remedy: str, vectors: Sequence[Vectors], exact: Sequence[Vectors]) -> PrecisionCheck:
    """Return the similarity of vectors to those of float32; RunFailed below LEAST, or for NaN and infinity.

    `subject` begins the error message with the model and its precision.
    """
    ours, theirs = ([rows.astype(np.float64) for rows in matrices] for matrices in (vectors, exact))
    count = sum(map(len, ours))
    if bad := sum(int((~np.isfinite(rows)).any(axis=1).sum()) for rows in ours):
        raise RunFailed(f"{subject} {bad} of {count} vectors hold NaN or infinity, expected none; {remedy}")
    cosines = np.concatenate([_cosines(*both) for both in zip(ours, theirs, strict=True)])
    lowest, mean = float(cosines.min()), float(cosines.mean())
    if not lowest >= LEAST:
        raise RunFailed(
            f"{subject} the vectors of {count} texts are not those of float32: lowest cosine {lowest:.5f}, "
            f"expected {LEAST} or more; {remedy}"
        )
    return PrecisionCheck(count, round(lowest, 6), round(mean, 6))


def spread(texts: Sequence[str], most: int) -> list[str]:
    """Return at most `most` texts, evenly spaced."""
    step = max(len(texts) / most, 1)
    return [texts[int(index * step)] for index in range(min(len(texts), most))]


def some(texts: Sequence[str], count: int = TEXTS) -> list[str]:
    """Return `count` texts, evenly spaced, including the longest, whose numbers grow largest."""
    if len(texts) <= count:
        return list(texts)
    return [*spread(texts, count - 1), max(texts, key=len)]


def _cosines(one: npt.NDArray[np.float64], two: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    same = (one == two).all(axis=1)  # also of two vectors of length 0, which have no cosine
    return np.where(same, 1.0, (one * two).sum(axis=1) / np.where(lengths > 0, lengths, 1))
