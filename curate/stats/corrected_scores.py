"""Scores of systems, corrected by assessors' answers on a stratified sample of the systems' top ten documents.

Precision at 10, and discounted gain at 10 over the ideal gain of ten relevant documents (4.5436), are sums of fixed
weights over relevant pairs. A difference estimator (Cochran 1977, chapter 7; Särndal, Swensson & Wretman 1992) is
therefore unbiased for any quality of the panel: score = sum(w f) + sum over answers of w (y - f) / p. Here w is a
pair's weight, f the share of relevant answers in its stratum, y an answer (1 or 0), and p the answered share of the
stratum. nDCG and average precision divide by the number of all relevant pairs, which is unknown, so they are not
corrected.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from curate.core.errors import DataError
from curate.stats.tally import Floats, Ints

DEPTH = 10
LEVEL = 0.95
FEW = 5
"""Minimum number of answers per stratum; with fewer its interval is known to be too narrow."""
SMALL = 72
"""Number of answers in total below which t intervals are used: normal ones had 0.92 coverage at 50 or 60 answers."""
PLACED = 1.02
"""Minimum ratio of the `placed` interval to the `plain` one (see `_Spread`) for using it; a smaller excess is noise."""
_DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))
WEIGHTS: Mapping[str, Floats] = {
    "precision_at_10": np.full(DEPTH, 1 / DEPTH),
    "scaled_dcg_at_10": _DISCOUNTS / _DISCOUNTS.sum(),
}
"""Measure -> weight of a relevant document at each of the first ten ranks."""


@dataclass(frozen=True)
class Frame:
    """The pairs in the top tens of some systems, and assessors' answers to a random sample of every stratum."""

    query: Ints
    """Number of each pair's query, from 0; shape (pairs,)."""
    stratum: Ints
    """Number of each pair's stratum, from 0; shape (pairs,)."""
    answers: Ints
    """1 relevant, 0 not relevant, -1 no answer; shape (pairs,)."""
    queries: int
    """Number of queries over which a score averages, including queries without a pair."""

    def __post_init__(self) -> None:
        unread = sorted({*self.stratum.tolist()} - {*self.stratum[self.answers >= 0].tolist()})
        if unread:
            raise DataError(
                f"corrected scores: nobody answered a pair of the strata {', '.join(map(str, unread))}; expected "
                "answers in every stratum of the top tens; hand out the rest of the review"
            )


@dataclass(frozen=True)
class CorrectedScore:
    """A score, or a difference of two scores, with the half widths of its intervals."""

    value: float
    half: float
    """Half width for these queries; 0 if all pairs were answered."""
    new_queries: float | None
    """Half width for other queries from the same population, never below `half`; None for fewer than two queries."""


def weights(ranks: Ints, measure: str, queries: int) -> Floats:
    """Return each pair's contribution to a mean score if it is relevant; `ranks` from 1, 0 outside the top ten."""
    table = np.concatenate([[0.0], WEIGHTS[measure]])
    return np.asarray(table[np.where(ranks > DEPTH, 0, ranks)] / queries)


def corrected(frame: Frame, weight: Floats, level: float = LEVEL) -> CorrectedScore:
    """Return the corrected score, sum of `weight` (shape (pairs,)) over relevant pairs, with its half widths.

    The half width for these queries is that of `_Spread`. The half width for new queries is a t interval of the
    per-query terms with queries - 1 degrees of freedom. It is never below the former: it includes the sampling
    variance, although few queries, or answers that are nearly all equal, can make its estimate smaller.
    """
    spread = _Spread(frame, weight)
    expected = spread.rate[frame.stratum]
    weight_of_answer = (spread.size / np.maximum(spread.answered, 1))[frame.stratum]
    error = np.where(frame.answers >= 0, (frame.answers - expected) * weight_of_answer, 0.0)
    terms = weight * (expected + error)
    half, new_queries = spread.half(level), _new_queries_half(frame, terms, level)
    return CorrectedScore(float(terms.sum()), half, None if new_queries is None else max(half, new_queries))


class _Spread:
    """Variance of a corrected score around the score with all pairs answered.

    The variance of a stratum of N pairs with n answers, x of them relevant, is N (1 - n/N) / n x N / (N - 1) x sum(w^2)
    p (1 - p) with p = (x + 1/2) / (n + 1) and the sum over all its pairs (`plain`). The sample variance of the terms is
    not used: its intervals had 0.90 coverage at 50 answers. `plain` assumes that relevant pairs have the same weights
    as others of their stratum. If models rank them higher, p (1 - p) is too small for p < 1/2, and the correct factor
    is (1 - p)^2 q + p^2 (1 - q) (`placed`). Here q is the relevant pairs' share of sum(w^2), smoothed by one pair of
    mean weight at p.
    """

    def __init__(self, frame: Frame, weight: Floats) -> None:
        strata = int(frame.stratum.max(initial=-1)) + 1
        answered = frame.answers >= 0
        stratum, answers, squares = frame.stratum[answered], frame.answers[answered], (weight**2)[answered]
        self.size = np.bincount(frame.stratum, minlength=strata).astype(float)
        self.answered = np.bincount(stratum, minlength=strata).astype(float)
        hits = np.bincount(stratum, answers, minlength=strata)
        self.rate = hits / np.maximum(self.answered, 1)
        stratum_squares = np.bincount(frame.stratum, weight**2, minlength=strata)
        factor, p = _variance_factor(self.size, self.answered) * stratum_squares, (hits + 0.5) / (self.answered + 1)
        mean_square = stratum_squares / np.maximum(self.size, 1)
        relevant_squares = np.bincount(stratum, squares * answers, minlength=strata) + mean_square * p
        answered_squares = np.bincount(stratum, squares, minlength=strata) + mean_square
        q = np.divide(relevant_squares, answered_squares, out=p.copy(), where=answered_squares > 0)
        self.plain: Floats = factor * p * (1 - p)
        self.placed: Floats = factor * ((1 - p) ** 2 * q + p**2 * (1 - q))

    def half(self, level: float) -> float:
        """Return the half width of the interval.

        Below `SMALL` answers a t interval with the larger variance per stratum.
        """
        tail = (1 + level) / 2
        if self.answered.sum() >= SMALL:
            plain, placed = (math.sqrt(variances.sum()) for variances in (self.plain, self.placed))
            return NormalDist().inv_cdf(tail) * (placed if placed > PLACED * plain else plain)
        from scipy.special import stdtrit

        variances = np.maximum(self.plain, self.placed)
        if not (variance := float(variances.sum())):
            return 0.0
        # Satterthwaite: strata have variances and numbers of answers of their own
        degrees = variance**2 / float((variances**2 / np.maximum(self.answered - 1, 1)).sum())
        return float(stdtrit(max(degrees, 1.0), tail)) * math.sqrt(variance)


def nonresponse(frame: Frame, weight: Floats, drawn: Floats) -> tuple[float, float] | None:
    """Return the changes of a corrected score if none, and if all, of the drawn but unanswered pairs were relevant.

    `drawn` is the number of pairs drawn per stratum. None if all are answered. The two changes bound the nonresponse
    bias, which the interval does not cover.
    """
    is_answered = frame.answers >= 0
    answered = np.bincount(frame.stratum[is_answered], minlength=len(drawn)).astype(float)
    if (answered >= drawn).all():
        return None
    hits = np.bincount(frame.stratum[is_answered], frame.answers[is_answered], minlength=len(drawn))
    total, rate = np.bincount(frame.stratum, weight, minlength=len(drawn)), hits / np.maximum(answered, 1)
    low, high = ((hits + added_hits) / np.maximum(drawn, 1) - rate for added_hits in (0.0, drawn - answered))
    return float((total * low).sum()), float((total * high).sum())


@dataclass(frozen=True)
class AnticipatedScore:
    """Expected half widths of a score for a planned sample of a frame, given anticipated shares of relevant pairs."""

    frame: Frame
    weight: Floats
    guess: Floats
    """Anticipated share of relevant pairs per stratum."""

    def half(self, drawn: Floats, level: float = LEVEL) -> float:
        """Return the half width for these queries, with `drawn` answers per stratum."""
        return NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(self._sampled(drawn))

    def new_queries(self, drawn: Floats, level: float = LEVEL) -> float | None:
        """Return the half width for other queries; None for fewer than two queries.

        Its variance is that between queries plus the sampling variance.
        """
        if (quantile := _student(self.frame.queries, level)) is None:
            return None
        return quantile * math.sqrt(self._between + self._sampled(drawn))

    @cached_property
    def _squared_weights(self) -> Floats:
        return np.bincount(self.frame.stratum, self.weight**2, minlength=len(self.guess)).astype(float)

    @cached_property
    def _size(self) -> Floats:
        return np.bincount(self.frame.stratum, minlength=len(self.guess)).astype(float)

    @cached_property
    def _between(self) -> float:
        """Return the variance of the mean over queries if every pair is answered."""
        terms, queries = self.weight * self.guess[self.frame.stratum], self.frame.queries
        query_terms = np.bincount(self.frame.query, terms, minlength=queries) * queries
        answer_variance = float((self._squared_weights * self.guess * (1 - self.guess)).sum())
        return float(query_terms.var(ddof=1)) / queries + answer_variance

    def _sampled(self, drawn: Floats) -> float:
        factor = _variance_factor(self._size, drawn)
        return float((factor * self._squared_weights * self.guess * (1 - self.guess)).sum())


def _variance_factor(size: Floats, answered: Floats) -> Floats:
    # (1 - n/N) / n x N^2 / (N - 1): the factor of sum(w^2) p (1 - p) in a stratum's variance
    return (size - answered) / np.maximum(answered, 1) * size / np.maximum(size - 1, 1)


def _new_queries_half(frame: Frame, terms: Floats, level: float) -> float | None:
    """Return the half width of a t interval of the mean of per-query terms."""
    if (quantile := _student(frame.queries, level)) is None:
        return None
    query_terms = np.bincount(frame.query, terms, minlength=frame.queries) * frame.queries
    return quantile * float(query_terms.std(ddof=1)) / math.sqrt(frame.queries)


def _student(queries: int, level: float) -> float | None:
    """Return the quantile of t with queries - 1 degrees of freedom; None for fewer than two queries."""
    if queries < 2:
        return None
    from scipy.special import stdtrit

    return float(stdtrit(queries - 1, (1 + level) / 2))
