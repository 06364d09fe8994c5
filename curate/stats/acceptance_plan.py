"""Plan of an acceptance review: how often it finds a threshold, and how often what it announces does not hold.

Simulated reviews of a pool in which the wrong share of every sum is what was anticipated: a hypergeometric draw per
stratum, then `acceptance.accept`, for all reviews at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from curate.core.config import Json
from curate.stats.acceptance import least_answers
from curate.stats.tally import Floats

REVIEWS = 2000
"""Simulated reviews of a plan: a share of one half is known to 0.02."""
FOUND = 0.5
"""Least share of reviews that find a threshold, for one to be announced: what seldom is found is too often wrong."""


@dataclass(frozen=True)
class AcceptanceOdds:
    """What happens in simulated reviews, as shares."""

    found: float
    """Reviews that find a threshold."""
    broken: float
    """Reviews that announce one that does not hold, of all."""
    broken_announced: float | None
    """The same of those that announce one; None if none does."""

    @property
    def enough(self) -> bool:
        """Say whether a threshold may be announced."""
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
    """Return how reviews of a pool end; strata stand strictest first, `rates` are their anticipated wrong shares."""
    size, drawn = (np.array(each, dtype=np.float64) for each in (sizes, answered))
    bad: Floats = np.rint(size * np.array(rates))
    good, evil, read = (each.astype(np.int64) for each in (size - bad, bad, drawn))
    hits = np.random.default_rng(seed).hypergeometric(evil, good, read, size=(reviews, len(size))).astype(np.float64)
    bounds = upper_bounds(size, drawn, hits, confidence)
    tested = np.cumsum(drawn) >= least_answers(wrong, confidence)
    passed = np.logical_and.accumulate((bounds <= wrong) | ~tested, axis=1) & tested
    found = passed.any(axis=1)
    last = passed.shape[1] - 1 - np.argmax(passed[:, ::-1], axis=1)
    true = np.cumsum(bad) / np.cumsum(size)
    broken = found & (true[last] > wrong)
    announced = int(found.sum())
    return AcceptanceOdds(
        round(announced / reviews, 4),
        round(float(broken.mean()), 4),
        round(int(broken.sum()) / announced, 4) if announced else None,
    )


def upper_bounds(size: Floats, answered: Floats, hits: Floats, confidence: float) -> Floats:
    """Return the one-sided upper bounds of the wrong share down to every stratum, a row per review.

    The interval is that of `sample_estimates.share`, worked out for all reviews at once: Wilson's with the effective
    number of answers of the smoothed strata.
    """
    pairs = np.cumsum(size)
    value = np.cumsum(size * hits / answered, axis=1) / pairs
    smooth = (hits + 0.5) / (answered + 1)
    share = np.cumsum(size * smooth, axis=1) / pairs
    left = (size - answered) / np.maximum(size - 1, 1)
    variance = np.cumsum(size**2 * left * smooth * (1 - smooth) / answered, axis=1) / pairs**2
    square = NormalDist().inv_cdf(confidence) ** 2 * variance / (share * (1 - share))
    half = np.sqrt(square * (value * (1 - value) + square / 4))
    found: Floats = np.maximum(np.minimum((value + square / 2 + half) / (1 + square), 1.0), value)
    return found
