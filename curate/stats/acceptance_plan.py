"""Plan of an acceptance review: probabilities that it finds a threshold, and that an announced one does not hold.

They come from simulated reviews of a pool with the anticipated wrong share per sum of grades: a hypergeometric draw
per stratum, then `acceptance.accept`, vectorised over all reviews.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from curate.core.config import Json
from curate.stats.acceptance import least_answers
from curate.stats.tally import Floats

REVIEWS = 2000
"""Simulated reviews of a plan: a share of one half has a margin of error of 0.02."""
FOUND = 0.5
"""Minimum share of reviews with a threshold to announce one: rare thresholds are too often wrong."""


@dataclass(frozen=True)
class AcceptanceOdds:
    """Outcome probabilities of a review, by simulation."""

    found: float
    """Reviews that find a threshold."""
    broken: float
    """Reviews that announce one that does not hold, of all."""
    broken_announced: float | None
    """The same as a share of reviews that announce one; None if none does."""

    @property
    def enough(self) -> bool:
        """Return whether a threshold may be announced."""
        return self.found >= FOUND

    def to_json(self) -> dict[str, Json]:
        """Return the shares by name."""
        return {"found": self.found, "broken": self.broken, "broken_announced": self.broken_announced}


def odds(
    sizes: Sequence[int],
    rates: Sequence[float],
    answered: Sequence[int],
    wrong: float,
    confidence: float,
    *,
    seed: int = 0,
    reviews: int = REVIEWS,
) -> AcceptanceOdds:
    """Return the outcome probabilities; strata are strictest first, `rates` are their anticipated wrong shares."""
    size, drawn = (np.array(counts, dtype=np.float64) for counts in (sizes, answered))
    bad: Floats = np.rint(size * np.array(rates))
    good, evil, read = (counts.astype(np.int64) for counts in (size - bad, bad, drawn))
    hits = np.random.default_rng(seed).hypergeometric(evil, good, read, size=(reviews, len(size))).astype(np.float64)
    bounds = upper_bounds(size, drawn, hits, confidence)
    tested = np.cumsum(drawn) >= least_answers(wrong, confidence)
    passed = np.logical_and.accumulate((bounds <= wrong) | ~tested, axis=1) & tested
    has_threshold = passed.any(axis=1)
    last = passed.shape[1] - 1 - np.argmax(passed[:, ::-1], axis=1)
    true = np.cumsum(bad) / np.cumsum(size)
    broken = has_threshold & (true[last] > wrong)
    announced = int(has_threshold.sum())
    return AcceptanceOdds(
        round(announced / reviews, 4),
        round(float(broken.mean()), 4),
        round(int(broken.sum()) / announced, 4) if announced else None,
    )


def upper_bounds(size: Floats, answered: Floats, hits: Floats, confidence: float) -> Floats:
    """Return one-sided upper bounds of the wrong share, cumulative over strata, strictest first; one row per review.

    The interval is that of `sample_estimates.share`, vectorised over reviews: Wilson's with the effective
    number of answers of the smoothed strata.
    """
    pairs = np.cumsum(size)
    raw_share = np.cumsum(size * hits / answered, axis=1) / pairs
    smooth = (hits + 0.5) / (answered + 1)
    share = np.cumsum(size * smooth, axis=1) / pairs
    correction = (size - answered) / np.maximum(size - 1, 1)
    variance = np.cumsum(size**2 * correction * smooth * (1 - smooth) / answered, axis=1) / pairs**2
    square = NormalDist().inv_cdf(confidence) ** 2 * variance / (share * (1 - share))
    half = np.sqrt(square * (raw_share * (1 - raw_share) + square / 4))
    bounds: Floats = np.maximum(np.minimum((raw_share + square / 2 + half) / (1 + square), 1.0), raw_share)
    return bounds
