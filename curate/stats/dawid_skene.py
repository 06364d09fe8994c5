"""The Dawid-Skene model (1979): the class of each item and the confusion matrix of each rater, from ratings alone.

Every item has one true category; given it, raters err independently, each by a confusion matrix of its own. EM finds
the parameters of the greatest likelihood, beginning with the share of an item's ratings in every category.

Independence is the weak point: raters who copy one another, or models that err alike, count as so many witnesses, and
outvote a better rater who is alone; the model then calls them accurate. It needs three raters or more: with two it has
more parameters than two raters' table has cells.
"""

from dataclasses import dataclass

import numpy as np

from curate.core.errors import DataError
from curate.stats.bootstrap import divided
from curate.stats.tally import Codes, Floats, distinct

LEAST = 3
"""Raters without whom the model is not identified."""


@dataclass(frozen=True)
class Fit:
    """What EM found; rows of categories that no item has are NaN."""

    prevalence: Floats
    """Share of the items that are of each category; shape (categories,)."""
    confusion: Floats
    """Chance that a rater says a column's category of an item of a row's; shape (raters, categories, categories)."""
    posterior: Floats
    """Chance that an item is of each category; NaN for an item without ratings; shape (items, categories)."""
    likelihood: float
    """Logarithm of the likelihood of all ratings; it grows with every iteration."""
    iterations: int
    converged: bool
    """Whether the likelihood had stopped growing before the last iteration that was allowed."""


def fit(codes: Codes, categories: int, *, iterations: int = 5000, tolerance: float = 1e-12) -> Fit:
    """Return the model of a matrix of codes, items x raters, -1 or None for a missing rating.

    Equal items are counted once, so that the time grows with the number of patterns of ratings. It ends when an
    iteration adds less than `tolerance` of the likelihood's logarithm. DataError for fewer than three raters.
    """
    patterns, which = distinct(codes, categories)
    if patterns.shape[1] < LEAST:
        raise DataError(f"dawid-skene: found {patterns.shape[1]} raters, expected at least {LEAST}; use another policy")
    rated = np.asarray((patterns >= 0).any(axis=1))
    said = np.stack([patterns[rated] == code for code in range(categories)], axis=2).astype(np.float64)
    times = np.bincount(which, minlength=len(patterns))[rated].astype(np.float64)
    posterior = said.sum(axis=1) / said.sum(axis=(1, 2))[:, None]
    likelihood, used, converged = -np.inf, 0, not times.size
    prevalence, confusion = _parameters(said, times, posterior)
    while used < iterations and not converged:
        before = likelihood
        posterior, likelihood = _expected(said, times, prevalence, confusion)
        prevalence, confusion = _parameters(said, times, posterior)
        used += 1
        converged = likelihood - before <= tolerance * abs(likelihood)
    each = np.full((len(rated), categories), np.nan)
    each[rated] = posterior
    return Fit(prevalence, confusion, each[which], likelihood, used, converged)


def _parameters(said: Floats, times: Floats, posterior: Floats) -> tuple[Floats, Floats]:
    """Return prevalence and confusion matrices of the greatest likelihood, given what the items are."""
    mass = posterior * times[:, None]
    counts = np.einsum("pt,prc->rtc", mass, said)
    return divided(mass.sum(axis=0), mass.sum()), divided(counts, counts.sum(axis=2, keepdims=True))


def _expected(said: Floats, times: Floats, prevalence: Floats, confusion: Floats) -> tuple[Floats, float]:
    """Return what the items are, given the parameters, and the logarithm of the likelihood."""
    with np.errstate(divide="ignore"):
        chances = np.log(np.nan_to_num(confusion, nan=1.0))
        joint = np.log(prevalence)[None, :] + _picked(said, chances)
    top = joint.max(axis=1, keepdims=True)
    weights = np.exp(joint - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, float(times @ (np.log(total) + top)[:, 0])


def _picked(said: Floats, chances: Floats) -> Floats:
    """Return the sum over raters of the logarithms of what they said; a missing rating adds nothing."""
    picked = np.zeros((len(said), chances.shape[1]))
    for rater, table in enumerate(chances):
        rows = said[:, rater].any(axis=1)
        picked[rows] += table.T[said[rows, rater].argmax(axis=1)]
    return picked
