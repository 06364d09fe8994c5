"""Whether several judges are several: how far they err together, and how many independent ones they are worth.

Kappa counts agreement, and judges that err alike agree: it is no measure of quality. Errors are those against
assessors, on the cut: +1 for a pair that the judge alone finds relevant, -1 for one that the assessor alone does.
Assessors err too, and what they get wrong counts as an error that all judges share, so the correlation is rather too
high, and the effective number rather too low.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
import numpy.typing as npt

from curate import intervals
from curate.agreement import scalar
from curate.tally import Floats, Ints

ERRORS = 0.8
"""Correlation of two judges' errors from which they count as near-identical."""
GRADES = 0.95
"""The same for their grades, where no assessor tells errors from what two good judges rightly say alike."""
_NOTHING = 1e-12
"""A variance that is no more than what rounding leaves of 0."""
_NAME = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Together:
    """How two judges go together; correlations are Pearson's, None where a judge never varies or nothing is known."""

    first: str
    second: str
    grades: float | None
    errors: float | None
    reasons: tuple[str, ...]
    """Why they count as near-identical; empty if they do not."""


@dataclass(frozen=True)
class Effective:
    """How many independent judges a panel is worth: m / (1 + (m - 1) rho)."""

    judges: int
    rho: float
    """Mean correlation of two judges' errors."""
    rho_low: float | None
    rho_high: float | None
    value: float | None
    """None if rho is so far below 0 that there is no such number."""
    low: float | None
    high: float | None


def family(model: str) -> str | None:
    """Return what a model's name begins with, as a guess at its family: `gpt` of openai/gpt-4o-mini."""
    found = _NAME.match(model.rpartition("/")[2].lower())
    return found[0] if found else None


def effective_number(judges: int, rho: float) -> float | None:
    """Return how many independent judges have the same variance of their mean; None where that is not defined."""
    divisor = 1 + (judges - 1) * rho
    return judges / divisor if divisor > 0 else None


def effective(
    errors: npt.ArrayLike, queries: npt.ArrayLike, seed: int, weights: npt.ArrayLike | None = None
) -> Effective | None:
    """Return the effective number of a panel from errors, pairs x judges, NaN for none; queries are resampled.

    Only pairs that the whole panel rated count, each for as many as it stands for (`weights`; one if None): assessors'
    samples hold more of what judges disagree about than the pool does. None for fewer than two judges, or if a judge's
    errors never vary.
    """
    matrix = np.asarray(errors, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        return None
    whole = ~np.isnan(matrix).any(axis=1)
    sums = _moments(matrix[whole], np.asarray(queries)[whole], _weights(weights, matrix)[whole])
    rho = scalar(_rho(sums.weighted(np.ones(len(sums)))))
    if rho is None:
        return None
    found, judges = intervals.interval(sums, _rho, seed=seed), matrix.shape[1]
    low, high = (found.low, found.high) if found else (None, None)
    worth = (None if each is None else effective_number(judges, each) for each in (rho, high, low))
    return Effective(judges, rho, low, high, *worth)


def together(
    names: Sequence[str],
    grades: npt.ArrayLike,
    errors: npt.ArrayLike | None,
    families: Mapping[str, str | None],
    weights: npt.ArrayLike | None = None,
) -> list[Together]:
    """Return every two judges; `grades` and `errors` are pairs x judges with NaN for none, errors None if unknown.

    `weights` is how many pairs each pair with errors stands for; one if None.
    """
    said = np.asarray(grades, dtype=np.float64)
    wrong = None if errors is None else np.asarray(errors, dtype=np.float64)
    found = []
    for one, two in combinations(range(len(names)), 2):
        alike = _pearson(said[:, [one, two]])
        amiss = None if wrong is None else _pearson(wrong[:, [one, two]], weights)
        kin = families.get(names[one])
        reasons = [f"one family ({kin})"] if kin is not None and kin == families.get(names[two]) else []
        if amiss is not None and amiss >= ERRORS:
            reasons.append(f"errors correlate at {amiss:.2f}")
        if wrong is None and alike is not None and alike >= GRADES:
            reasons.append(f"grades correlate at {alike:.2f}")
        found.append(Together(names[one], names[two], alike, amiss, tuple(reasons)))
    return found


def _pearson(columns: Floats, weights: npt.ArrayLike | None = None) -> float | None:
    known = ~np.isnan(columns).any(axis=1)
    if not known.any():
        return None
    sums = _moments(columns[known], np.zeros(int(known.sum())), _weights(weights, columns)[known])
    return scalar(_rho(sums.weighted(np.ones(1))))


def _weights(given: npt.ArrayLike | None, matrix: Floats) -> Floats:
    return np.ones(len(matrix)) if given is None else np.asarray(given, dtype=np.float64)


@dataclass(frozen=True)
class _Moments:
    """Sums over weighted pairs: how many, of each judge, and of products of two; leading axes hold clusters."""

    pairs: Floats
    sums: Floats
    products: Floats

    def __len__(self) -> int:
        return len(self.pairs)

    def weighted(self, weights: Floats) -> Self:
        return type(self)(
            *(np.asarray(np.tensordot(weights, each, 1)) for each in (self.pairs, self.sums, self.products))
        )


def _moments(matrix: Floats, clusters: npt.ArrayLike, weights: Floats) -> _Moments:
    labels, row = np.unique(np.asarray(clusters), return_inverse=True)
    return _Moments(
        np.bincount(row, weights, len(labels)).astype(np.float64),
        _added(matrix * weights[:, None], row.astype(np.int64), len(labels)),
        _added(matrix[:, :, None] * matrix[:, None, :] * weights[:, None, None], row.astype(np.int64), len(labels)),
    )


def _added(values: Floats, row: Ints, labels: int) -> Floats:
    columns = values.reshape(len(values), int(np.prod(values.shape[1:]))).T
    sums = [np.bincount(row, each, labels) for each in columns]
    return np.stack(sums, axis=1).reshape(labels, *values.shape[1:]).astype(np.float64)


def _rho(sums: _Moments) -> Floats:
    """Return the mean correlation of two judges; NaN where one never varies. Leading axes are kept."""
    count = sums.pairs[..., None, None]
    covariance = sums.products * count - sums.sums[..., :, None] * sums.sums[..., None, :]
    square = np.diagonal(covariance, axis1=-2, axis2=-1)
    spread = np.where(square > _NOTHING * sums.pairs[..., None] ** 2, np.sqrt(np.maximum(square, 0)), 0)
    divisor = spread[..., :, None] * spread[..., None, :]
    found = np.divide(covariance, divisor, out=np.full(covariance.shape, np.nan), where=divisor > 0)
    above = np.triu_indices(found.shape[-1], 1)
    return np.asarray(found[..., above[0], above[1]].mean(axis=-1))
