"""Acceptance threshold with a guarantee: sums of grades whose error rate, by a review, is at most a given share.

Fixed-sequence testing (Learn then Test: Angelopoulos et al. 2021). Sums of the panel's grades are strata. From the
strictest sum down, all pairs at or above it are accepted while the upper bound of their wrong share, one-sided at
`confidence`, is at most `wrong`; the first failure ends the sequence, so multiple tests need no correction. A pair is
wrong if its assessor disagrees. The guarantee holds for the pairs of this pool, read in a random sample of every
stratum: not for other queries, not for samples of whole queries, and not below the sampled sums.
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
    """Estimated share of wrong pairs."""
    bound: float
    """Upper bound of that share, one-sided."""


@dataclass(frozen=True)
class Acceptance:
    """Result of a review on thresholds on the sum of grades."""

    threshold: AcceptedSum | None
    """The lowest accepted threshold; None if none is."""
    best: AcceptedSum | None
    """The tested threshold with the lowest bound."""


def least_answers(wrong: float, confidence: float) -> int:
    """Return the minimum answers for any guarantee, none of them wrong: ln(1 - confidence) / ln(1 - wrong)."""
    return math.ceil(math.log(1 - confidence) / math.log(1 - wrong) - 1e-12)


def accept(strata: Sequence[tuple[float, StratumCounts]], wrong: float, confidence: float = 0.9) -> Acceptance:
    """Return the lowest threshold on the sum of grades whose wrong share is at most `wrong`, if there is one.

    `strata` are the sums of the sampled frame, in any order, with pairs, answers and wrong answers (`hits`); DataError
    for a sum with pairs but no answer. Testing starts once there are `least_answers`.
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
