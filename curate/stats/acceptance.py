"""Acceptance threshold on the sum of grades, with a guaranteed error rate, and simulation of the review that finds it.

Fixed-sequence testing (Learn then Test: Angelopoulos et al. 2021). The strata are the sums of the panel's grades. From
the highest sum down, all pairs at or above it are accepted while the one-sided upper bound (at `confidence`) of their
share of wrong pairs is at most `wrong`. The first failure ends the sequence, so multiple tests need no correction. A
pair is wrong if its assessor disagrees. The guarantee holds for the pairs of this pool, if a random sample of every
stratum was reviewed. It does not hold for other queries, for samples of whole queries, or below the sampled sums.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from curate.core.errors import DataError
from curate.core.figures import Record, figure
from curate.stats.sample_estimates import StratumCounts, share
from curate.stats.tally import Floats


@dataclass(frozen=True)
class AcceptedSum:
    """Result for all pairs whose grades add up to `least` or more."""

    least: float
    pairs: int
    answered: int
    wrong: float
    """Estimated share of wrong pairs, 0 to 1."""
    bound: float
    """One-sided upper bound of that share."""


@dataclass(frozen=True)
class Acceptance:
    """Result of a review: thresholds on the sum of grades."""

    threshold: AcceptedSum | None
    """The lowest accepted threshold; None if no threshold is accepted."""
    best: AcceptedSum | None
    """The tested threshold with the lowest bound."""


def least_answers(wrong: float, confidence: float) -> int:
    """Return the minimum number of answers, all correct, for any guarantee: ln(1 - confidence) / ln(1 - wrong)."""
    return math.ceil(math.log(1 - confidence) / math.log(1 - wrong) - 1e-12)


def accept(strata: Sequence[tuple[float, StratumCounts]], wrong: float, confidence: float = 0.9) -> Acceptance:
    """Return the lowest threshold on the sum of grades at which the wrong share is at most `wrong`, if there is one.

    `strata` are (sum of grades, counts) in any order, with pairs, answers and wrong answers (`hits`). DataError for a
    sum with pairs but no answer. A threshold needs at least `least_answers` answers at or above it.
    """
    ordered = sorted((stratum for stratum in strata if stratum[1].size), key=lambda stratum: -stratum[0])
    if unread := [f"{least:g}" for least, counts in ordered if not counts.answered]:
        raise DataError(
            f"accept: nobody answered a pair whose grades add up to {', '.join(unread)}; expected answers in every "
            "stratum of the frame, for a threshold holds for what was sampled alone; draw the review again"
        )
    tested, threshold = list[AcceptedSum](), None
    going = True
    for index, (least, _) in enumerate(ordered):
        above = [counts for _, counts in ordered[: index + 1]]
        answered = sum(counts.answered for counts in above)
        if answered < least_answers(wrong, confidence):
            continue
        tested.append(_accepted(least, above, confidence))
        going = going and tested[-1].bound <= wrong
        if going:
            threshold = tested[-1]
    return Acceptance(threshold, min(tested, key=lambda accepted: accepted.bound, default=None))


def _accepted(least: float, strata: Sequence[StratumCounts], confidence: float) -> AcceptedSum:
    wrong_share = share(strata, 2 * confidence - 1)
    assert wrong_share is not None  # every stratum has answers
    pairs, answered = (sum(getattr(stratum, name) for stratum in strata) for name in ("size", "answered"))
    return AcceptedSum(least, pairs, answered, wrong_share.value, wrong_share.high)


# Plan of an acceptance review: probabilities that it finds a threshold, and that an announced one does not hold.

REVIEWS = 2000
"""Number of simulated reviews per plan: a simulated share of one half has a margin of error of 0.02."""
FOUND = 0.5
"""Minimum share of reviews that find a threshold for announcing one: rarely found thresholds are too often wrong."""


class AcceptanceOdds(Record, schema_name="odds"):
    """Probabilities of a review's outcomes, by simulation."""

    found: float = figure("share of reviews that find a threshold")
    broken: float = figure("share of all reviews that announce a threshold that does not hold")
    broken_announced: float | None = figure("share of the announced thresholds that do not hold")

    @property
    def enough(self) -> bool:
        """Return whether reviews find a threshold often enough to announce one."""
        return self.found >= FOUND


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
    """Return the outcome probabilities of a planned review.

    The strata are listed from the highest sum of grades down: `sizes` are their pairs, `rates` their anticipated wrong
    shares, and `answered` their planned answers.
    """
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
    """Return one-sided upper bounds of the wrong share at or above each stratum (highest sum first); a row per review.

    The interval is that of `sample_estimates.share`, vectorised over reviews: Wilson's with the effective number of
    answers of the smoothed strata.
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
