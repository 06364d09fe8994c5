"""Capture-recapture estimate of the relevant documents that no retriever found.

Every retriever is a net thrown once. Let a relevant document escape all nets with the chance w, and let o_j be the
odds that net j catches it. Expected numbers of documents are then: uncaught, f0 = sum(w); caught by net j alone,
z_j = sum(w o_j); by j and k and no other, sum(w o_j o_k). If, among the documents, easy for one net means easy for
another rather than hard (the covariance of o_j and o_k, weighted by w, is not negative), then
z_j z_k <= f0 sum(w o_j o_k), and over all pairs of nets

    f0 >= sum(z_j z_k) / f2,    f2: documents caught by exactly two nets.

For nets of equal reach this is Chao's bound (1987), (m - 1) / m f1^2 / (2 f2), but it needs no equal reach, which
retrievers never have. For two nets it is Petersen's estimate, and with f2 + 1 below it is Chapman's (1951), exactly: an
estimate if the nets are independent, a bound if they depend positively. Retrievers do: what is worded like the query is
found by all of them. Nets that find what the others cannot (negative dependence) would make it too high.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from curate.stats.bootstrap import Figure, divided, measured
from curate.stats.tally import Floats

Caught = npt.NDArray[np.bool_]
"""Documents x retrievers: who found what."""


@dataclass(frozen=True)
class Capture:
    """What retrievers' overlap says of the relevant documents that none of them found; figures are of all queries."""

    retrievers: tuple[str, ...]
    found: int
    """Relevant documents that some retriever found."""
    by: tuple[int, ...]
    """How many of them exactly one, two, ... retrievers found."""
    missed: Figure
    """At least so many that none found."""
    share: Figure
    """At most this share of all relevant documents was found."""
    chao: float | None
    """Chao's bound on the missed ones, which takes the retrievers for equals; None for fewer than two."""
    pairs: tuple[tuple[str, str, Figure], ...]
    """For every two retrievers, Chapman's estimate of all relevant documents."""


def missed(alone: Floats, twice: Floats) -> Floats:
    """Return at least how many were caught by no net: sum over pairs of z_j z_k / (f2 + 1).

    `alone` has the documents that each net alone caught, shape (..., nets); `twice` those that exactly two did.
    """
    products = (alone.sum(axis=-1) ** 2 - (alone**2).sum(axis=-1)) / 2
    return np.asarray(products / (twice + 1))


def chapman(first: Floats, second: Floats, both: Floats) -> Floats:
    """Return Chapman's estimate (1951) of a population from two nets: (n1 + 1) (n2 + 1) / (n12 + 1) - 1.

    Unbiased if the nets are independent and catch at least as many as there are in all; else a little too low.
    """
    return np.asarray((first + 1) * (second + 1) / (both + 1) - 1)


def chao(once: float, twice: float, nets: int) -> float:
    """Return Chao's lower bound (1987) on what was caught by no net, bias-corrected: (m-1)/m f1 (f1-1) / (2 (f2+1)).

    A bound for nets of equal reach alone: with unequal ones it can lie above the truth.
    """
    return (nets - 1) / nets * once * max(once - 1, 0) / (2 * (twice + 1))


def capture(caught: Caught, queries: Sequence[str], retrievers: Sequence[str], seed: int) -> Capture | None:
    """Return what the overlap of retrievers says; None for fewer than two retrievers, or if nothing was found.

    `caught` has a row per relevant document of a query; rows that none caught count for nothing. Intervals resample
    queries.
    """
    count = len(retrievers)
    times = caught.sum(axis=1)
    if count < 2 or not times.any():
        return None
    pairs = list(combinations(range(count), 2))
    alone = caught & (times == 1)[:, None]
    both = np.stack([caught[:, j] & caught[:, k] for j, k in pairs], axis=1)
    columns = np.column_stack([times > 0, times == 2, alone, caught, both]).astype(np.float64)
    _, row = np.unique(np.asarray(queries), return_inverse=True)
    sums = np.zeros((int(row.max()) + 1, columns.shape[1]))
    np.add.at(sums, row, columns)
    figures = measured(sums, lambda each: _figures(each, pairs, count), seed)
    by = tuple(int((times == n).sum()) for n in range(1, count + 1))
    return Capture(
        retrievers=tuple(retrievers),
        found=int((times > 0).sum()),
        by=by,
        missed=figures[0],
        share=figures[1],
        chao=round(chao(by[0], by[1], count), 2),
        pairs=tuple((retrievers[j], retrievers[k], figure) for (j, k), figure in zip(pairs, figures[2:], strict=True)),
    )


def _figures(sums: Floats, pairs: Sequence[tuple[int, int]], count: int) -> Floats:
    """Return the bound, the share found, and Chapman's estimates, from the columns that `capture` adds up."""
    found, twice, alone = sums[..., 0], sums[..., 1], sums[..., 2 : 2 + count]
    each, both = sums[..., 2 + count : 2 + 2 * count], sums[..., 2 + 2 * count :]
    least = missed(alone, twice)
    estimates = [chapman(each[..., j], each[..., k], both[..., n]) for n, (j, k) in enumerate(pairs)]
    return np.stack([least, divided(found, found + least), *estimates], axis=-1)
