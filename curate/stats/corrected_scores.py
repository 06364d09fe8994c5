"""Scores of systems corrected by people's answers to a stratified sample of their top tens.

Precision at 10 and discounted gain at 10 over its ideal of ten (4.5436) are sums of fixed weights over relevant pairs,
so that a difference estimator (Cochran 1977, chapter 7; Särndal, Swensson & Wretman 1992) has no bias, whatever the
panel said: score = sum(w f) + sum over answers of w (y - f) / p, where w is a pair's weight, f the share that people
call relevant in its stratum, y an answer, and p the share of the stratum that was answered. nDCG and average precision
divide by what nobody has counted, so they are not corrected.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from curate.core.errors import DataError
from curate.stats.tally import Floats, Ints

DEPTH = 10
LEVEL = 0.95
FEW = 5
"""Answers of a stratum below which its interval is known to be too narrow."""
_DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))
WEIGHTS: Mapping[str, Floats] = {
    "precision_at_10": np.full(DEPTH, 1 / DEPTH),
    "scaled_dcg_at_10": _DISCOUNTS / _DISCOUNTS.sum(),
}
"""Measure -> weight of a relevant document at each of the first ten ranks."""


@dataclass(frozen=True)
class Frame:
    """The pairs among some systems' first ten, and what people said of a random sample of every stratum."""

    query: Ints
    """Number of each pair's query, from 0; shape (pairs,)."""
    stratum: Ints
    """Number of each pair's stratum, from 0; shape (pairs,)."""
    answers: Ints
    """1 relevant, 0 not, -1 not read; shape (pairs,)."""
    queries: int
    """Queries over which a score is the mean, those without a pair counted too."""

    def __post_init__(self) -> None:
        unread = sorted({*self.stratum.tolist()} - {*self.stratum[self.answers >= 0].tolist()})
        if unread:
            raise DataError(
                f"corrected scores: nobody answered a pair of the strata {', '.join(map(str, unread))}; expected "
                "answers in every stratum of the top tens; hand out the rest of the review"
            )


@dataclass(frozen=True)
class CorrectedScore:
    """A score, or a difference of two, with the half widths of its intervals."""

    value: float
    half: float
    """Half width for this set of queries: what reading all pairs would make 0."""
    new_queries: float | None
    """Half width for other queries of this kind, by a t interval; None for fewer than two queries."""


def weights(ranks: Ints, measure: str, queries: int) -> Floats:
    """Return what each pair adds to a mean score if it is relevant; `ranks` from 1, 0 outside of the first ten."""
    table = np.concatenate([[0.0], WEIGHTS[measure]])
    return np.asarray(table[np.where(ranks > DEPTH, 0, ranks)] / queries)


def corrected(frame: Frame, weight: Floats, level: float = LEVEL) -> CorrectedScore:
    """Return the corrected sum of weights of relevant pairs, shape of `weight` (pairs,), with its half widths.

    The variance of a stratum of N pairs with n answers, x of them relevant, is N (1 - n/N) / n x N / (N - 1) x
    sum(w^2) p (1 - p) with p = (x + 1/2) / (n + 1) and the sum over all its pairs: the plain variance of the sampled
    terms fell to .90 coverage at 50 answers. For new queries the variance of per-query terms is taken, t with
    queries - 1 degrees of freedom.
    """
    strata = int(frame.stratum.max(initial=-1)) + 1
    read = frame.answers >= 0
    size = np.bincount(frame.stratum, minlength=strata).astype(float)
    answered = np.bincount(frame.stratum[read], minlength=strata).astype(float)
    hits = np.bincount(frame.stratum[read], frame.answers[read], minlength=strata)
    rate = np.divide(hits, answered, out=np.zeros(strata), where=answered > 0)
    expected = rate[frame.stratum]
    error = np.where(read, (frame.answers - expected) * (size / np.maximum(answered, 1))[frame.stratum], 0.0)
    terms = weight * (expected + error)
    smooth = (hits + 0.5) / (answered + 1)
    squares = np.bincount(frame.stratum, weight**2, minlength=strata)
    left = (size - answered) / np.maximum(answered, 1) * size / np.maximum(size - 1, 1)
    variance = float((left * squares * smooth * (1 - smooth)).sum())
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    return CorrectedScore(float(terms.sum()), quantile * math.sqrt(variance), _new(frame, terms, level))


def _new(frame: Frame, terms: Floats, level: float) -> float | None:
    """Return the half width of a t interval of the mean of per-query terms."""
    if frame.queries < 2:
        return None
    from scipy.special import stdtrit

    each = np.bincount(frame.query, terms, minlength=frame.queries) * frame.queries
    quantile = float(stdtrit(frame.queries - 1, (1 + level) / 2))
    return quantile * float(each.std(ddof=1)) / math.sqrt(frame.queries)
