"""Scores of systems corrected by people's answers to a stratified sample of their top tens.

Precision at 10 and discounted gain at 10 over its ideal of ten (4.5436) are sums of fixed weights over relevant pairs,
so that a difference estimator (Cochran 1977, chapter 7; Särndal, Swensson & Wretman 1992) has no bias, however good the
panel is: score = sum(w f) + sum over answers of w (y - f) / p, where w is a pair's weight, f the share that people
call relevant in its stratum, y an answer, and p the share of the stratum that was answered. nDCG and average precision
divide by what nobody has counted, so they are not corrected.
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
"""Answers of a stratum below which its interval is known to be too narrow."""
SMALL = 72
"""Answers in all below which an interval is Student's: with 50 or 60 a normal one fell to .92 coverage, with 72 not."""
PLACED = 1.02
"""How many times as wide an interval must get for the places of the relevant pairs to count; less is noise."""
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
    """Half width for other queries of this kind, never below `half`; None for fewer than two queries."""


def weights(ranks: Ints, measure: str, queries: int) -> Floats:
    """Return what each pair adds to a mean score if it is relevant; `ranks` from 1, 0 outside of the first ten."""
    table = np.concatenate([[0.0], WEIGHTS[measure]])
    return np.asarray(table[np.where(ranks > DEPTH, 0, ranks)] / queries)


def corrected(frame: Frame, weight: Floats, level: float = LEVEL) -> CorrectedScore:
    """Return the corrected sum of weights of relevant pairs, shape of `weight` (pairs,), with its half widths.

    The half width for this set of queries is that of `_Spread`. For new queries the variance of per-query terms is
    taken, t with queries - 1 degrees of freedom. Over few queries, or where nearly all that was read has one answer,
    that variance comes out below the one of the sample alone, which is a part of it, so the larger half width counts.
    """
    spread = _Spread(frame, weight)
    expected = spread.rate[frame.stratum]
    raised = (spread.size / np.maximum(spread.answered, 1))[frame.stratum]
    error = np.where(frame.answers >= 0, (frame.answers - expected) * raised, 0.0)
    terms = weight * (expected + error)
    half, new = spread.half(level), _new(frame, terms, level)
    return CorrectedScore(float(terms.sum()), half, None if new is None else max(half, new))


class _Spread:
    """How far a corrected score may lie from that of all pairs read.

    The variance of a stratum of N pairs with n answers, x of them relevant, is N (1 - n/N) / n x N / (N - 1) x
    sum(w^2) p (1 - p) with p = (x + 1/2) / (n + 1) and the sum over all its pairs: the plain variance of the sampled
    terms fell to .90 coverage at 50 answers. That supposes that relevant pairs weigh as much as others of their
    stratum. Where models rank them higher, p (1 - p) is too little for p < 1/2, and (1 - p)^2 q + p^2 (1 - q) is right,
    q the share of sum(w^2) that relevant pairs hold, smoothed by one pair of mean weight at p.
    """

    def __init__(self, frame: Frame, weight: Floats) -> None:
        strata = int(frame.stratum.max(initial=-1)) + 1
        read = frame.answers >= 0
        stratum, said, squares = frame.stratum[read], frame.answers[read], (weight**2)[read]
        self.size = np.bincount(frame.stratum, minlength=strata).astype(float)
        self.answered = np.bincount(stratum, minlength=strata).astype(float)
        hits = np.bincount(stratum, said, minlength=strata)
        self.rate = hits / np.maximum(self.answered, 1)
        whole = np.bincount(frame.stratum, weight**2, minlength=strata)
        unread, p = _unread(self.size, self.answered) * whole, (hits + 0.5) / (self.answered + 1)
        one = whole / np.maximum(self.size, 1)
        held = np.bincount(stratum, squares * said, minlength=strata) + one * p
        weighed = np.bincount(stratum, squares, minlength=strata) + one
        q = np.divide(held, weighed, out=p.copy(), where=weighed > 0)
        self.plain: Floats = unread * p * (1 - p)
        self.placed: Floats = unread * ((1 - p) ** 2 * q + p**2 * (1 - q))

    def half(self, level: float) -> float:
        """Return the half width of the interval; of few answers by t, of each stratum the larger variance."""
        tail = (1 + level) / 2
        if self.answered.sum() >= SMALL:
            plain, placed = (math.sqrt(each.sum()) for each in (self.plain, self.placed))
            return NormalDist().inv_cdf(tail) * (placed if placed > PLACED * plain else plain)
        from scipy.special import stdtrit

        each = np.maximum(self.plain, self.placed)
        if not (variance := float(each.sum())):
            return 0.0
        freedom = variance**2 / float((each**2 / np.maximum(self.answered - 1, 1)).sum())
        return float(stdtrit(max(freedom, 1.0), tail)) * math.sqrt(variance)


def nonresponse(frame: Frame, weight: Floats, drawn: Floats) -> tuple[float, float] | None:
    """Return by how much a corrected score would move if every drawn pair without an answer were not relevant, or were.

    `drawn` are the pairs drawn per stratum. None where all are answered. What lies between is how wrong a score can be
    because of who did not answer what, beside its interval.
    """
    read = frame.answers >= 0
    answered = np.bincount(frame.stratum[read], minlength=len(drawn)).astype(float)
    if (answered >= drawn).all():
        return None
    hits = np.bincount(frame.stratum[read], frame.answers[read], minlength=len(drawn))
    total, rate = np.bincount(frame.stratum, weight, minlength=len(drawn)), hits / np.maximum(answered, 1)
    low, high = ((hits + more) / np.maximum(drawn, 1) - rate for more in (0.0, drawn - answered))
    return float((total * low).sum()), float((total * high).sum())


@dataclass(frozen=True)
class AnticipatedScore:
    """The half widths that a sample of a frame is going to give, if the share of relevant pairs is the guessed one."""

    frame: Frame
    weight: Floats
    guess: Floats
    """Share of relevant pairs by stratum."""

    def half(self, drawn: Floats, level: float = LEVEL) -> float:
        """Return the half width for this set of queries with so many answers per stratum."""
        return NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(self._sampled(drawn))

    def new_queries(self, drawn: Floats, level: float = LEVEL) -> float | None:
        """Return the half width for other queries: their expected terms, the pairs' own answers, and the sample."""
        if (quantile := _student(self.frame.queries, level)) is None:
            return None
        return quantile * math.sqrt(self._between + self._sampled(drawn))

    @cached_property
    def _squares(self) -> Floats:
        """Return the sum of squared weights of every stratum."""
        return np.bincount(self.frame.stratum, self.weight**2, minlength=len(self.guess)).astype(float)

    @cached_property
    def _size(self) -> Floats:
        return np.bincount(self.frame.stratum, minlength=len(self.guess)).astype(float)

    @cached_property
    def _between(self) -> float:
        """Return the variance of the mean over queries of which every pair is read."""
        terms, queries = self.weight * self.guess[self.frame.stratum], self.frame.queries
        each = np.bincount(self.frame.query, terms, minlength=queries) * queries
        return float(each.var(ddof=1)) / queries + float((self._squares * self.guess * (1 - self.guess)).sum())

    def _sampled(self, drawn: Floats) -> float:
        return float((_unread(self._size, drawn) * self._squares * self.guess * (1 - self.guess)).sum())


def _unread(size: Floats, answered: Floats) -> Floats:
    """Return (1 - n/N) / n x N^2 / (N - 1) of every stratum: what its variance has beside sum(w^2) p (1 - p)."""
    return (size - answered) / np.maximum(answered, 1) * size / np.maximum(size - 1, 1)


def _new(frame: Frame, terms: Floats, level: float) -> float | None:
    """Return the half width of a t interval of the mean of per-query terms."""
    if (quantile := _student(frame.queries, level)) is None:
        return None
    each = np.bincount(frame.query, terms, minlength=frame.queries) * frame.queries
    return quantile * float(each.std(ddof=1)) / math.sqrt(frame.queries)


def _student(queries: int, level: float) -> float | None:
    """Return the quantile of t with queries - 1 degrees of freedom; None for fewer than two queries."""
    if queries < 2:
        return None
    from scipy.special import stdtrit

    return float(stdtrit(queries - 1, (1 + level) / 2))
