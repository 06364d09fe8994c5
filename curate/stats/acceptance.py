"""Acceptance threshold with a guarantee: which sums of grades are wrong in no more than a given share, by a review.

Fixed-sequence testing (Learn then Test: Angelopoulos et al. 2021). Sums of the panel's grades are strata. From the
strictest sum down, all pairs at or above it are accepted while the upper bound of their wrong share, one-sided at
`confidence`, is at most `wrong`; the first failure ends it, so that no correction for many tests is due. "Wrong" means
that the person who read a pair says otherwise. It holds for the pairs of this pool, read in a random sample of every
stratum: not for other queries, not for whole queries that were read, and not below the sums that were sampled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from curate.core.errors import DataError
from curate.stats.sample_estimates import StratumCounts, share


@dataclass(frozen=True)
class AcceptedSum:
    """All pairs whose grades add up to `least` or more."""

    least: float
    pairs: int
    answered: int
    wrong: float
    """Estimated share that people call wrong."""
    bound: float
    """Upper bound of that share, one-sided."""


@dataclass(frozen=True)
class Acceptance:
    """What a review says of thresholds on the sum of grades."""

    threshold: AcceptedSum | None
    """The loosest one that holds; None if none does."""
    best: AcceptedSum | None
    """The one with the lowest bound of all that were looked at: what could be promised at best."""


def least_answers(wrong: float, confidence: float) -> int:
    """Return the answers, none of them wrong, that promise anything at all: ln(1 - confidence) / ln(1 - wrong)."""
    return math.ceil(math.log(1 - confidence) / math.log(1 - wrong) - 1e-12)


def accept(strata: Sequence[tuple[float, StratumCounts]], wrong: float, confidence: float = 0.9) -> Acceptance:
    """Return the loosest threshold on the sum of grades whose wrong share is at most `wrong`, if there is one.

    `strata` are sums, each with its pairs, how many of them were answered, and how many answers call them wrong, in any
    order: the sampled frame, in which every sum that has pairs needs answers (DataError). Testing starts once there are
    enough answers to promise anything.
    """
    ordered = sorted((each for each in strata if each[1].size), key=lambda each: -each[0])
    if unread := [f"{least:g}" for least, counts in ordered if not counts.answered]:
        raise DataError(
            f"accept: nobody answered a pair whose grades add up to {', '.join(unread)}; expected answers in every "
            "stratum of the frame, for a threshold holds for what was sampled alone; draw the review again"
        )
    looked, held = list[AcceptedSum](), None
    going = True
    for place, (least, _) in enumerate(ordered):
        parts = [counts for _, counts in ordered[: place + 1]]
        answered = sum(part.answered for part in parts)
        if answered < least_answers(wrong, confidence):
            continue
        looked.append(_accepted(least, parts, confidence))
        going = going and looked[-1].bound <= wrong
        if going:
            held = looked[-1]
    return Acceptance(held, min(looked, key=lambda each: each.bound, default=None))


def _accepted(least: float, parts: Sequence[StratumCounts], confidence: float) -> AcceptedSum:
    found = share(parts, 2 * confidence - 1)
    assert found is not None  # every stratum has answers
    pairs, answered = (sum(getattr(part, name) for part in parts) for name in ("size", "answered"))
    return AcceptedSum(least, pairs, answered, found.value, found.high)
