"""The Dawid-Skene model (1979): items' true categories and raters' confusion matrices, estimated from ratings."""

from dataclasses import dataclass

import numpy as np

from curate.core.errors import DataError
from curate.stats.bootstrap import divided
from curate.stats.tally import Codes, Floats, distinct

LEAST = 3
"""Minimum number of raters: with fewer the model is not identified."""


@dataclass(frozen=True)
class Fit:
    """Result of EM. Rows of `confusion` for a category that no item has are NaN."""

    prevalence: Floats
    """Share of the items in each category; shape (categories,)."""
    confusion: Floats
    """Probability of each rating (column) given the true category (row); shape (raters, categories, categories)."""
    posterior: Floats
    """Probability that an item is in each category; NaN for an item without ratings; shape (items, categories)."""
    likelihood: float
    """Log likelihood of all ratings; it never decreases between iterations."""
    iterations: int
    converged: bool
    """Whether the likelihood stopped growing within the allowed iterations."""


def fit(codes: Codes, categories: int, *, iterations: int = 5000, tolerance: float = 1e-12) -> Fit:
    """Return the model fitted to a matrix of codes, items x raters, with -1 or None for a missing rating.

    Equal items are counted once, so the time grows with the number of distinct rating patterns. EM ends when the
    relative increase of the log likelihood is below `tolerance`. DataError for fewer than three raters.
    """
    patterns, which = distinct(codes, categories)
    if patterns.shape[1] < LEAST:
        raise DataError(f"dawid-skene: found {patterns.shape[1]} raters, expected at least {LEAST}; use another policy")
    rated = np.asarray((patterns >= 0).any(axis=1))
    # shape (patterns, raters, categories), all 0 for a missing rating
    one_hot = np.stack([patterns[rated] == code for code in range(categories)], axis=2).astype(np.float64)
    times = np.bincount(which, minlength=len(patterns))[rated].astype(np.float64)
    posterior = one_hot.sum(axis=1) / one_hot.sum(axis=(1, 2))[:, None]
    likelihood, used, converged = -np.inf, 0, not times.size
    prevalence, confusion = _parameters(one_hot, times, posterior)
    while used < iterations and not converged:
        previous = likelihood
        posterior, likelihood = _expected(one_hot, times, prevalence, confusion)
        prevalence, confusion = _parameters(one_hot, times, posterior)
        used += 1
        converged = likelihood - previous <= tolerance * abs(likelihood)
    item_posterior = np.full((len(rated), categories), np.nan)
    item_posterior[rated] = posterior
    return Fit(prevalence, confusion, item_posterior[which], likelihood, used, converged)


def _parameters(one_hot: Floats, times: Floats, posterior: Floats) -> tuple[Floats, Floats]:
    """Return the maximum-likelihood prevalence and confusion matrices, given the posterior (M step)."""
    mass = posterior * times[:, None]
    counts = np.einsum("pt,prc->rtc", mass, one_hot)
    return divided(mass.sum(axis=0), mass.sum()), divided(counts, counts.sum(axis=2, keepdims=True))


def _expected(one_hot: Floats, times: Floats, prevalence: Floats, confusion: Floats) -> tuple[Floats, float]:
    """Return the posterior given the parameters (E step), and the log likelihood of all items."""
    with np.errstate(divide="ignore"):
        log_confusion = np.log(np.nan_to_num(confusion, nan=1.0))
        joint = np.log(prevalence)[None, :] + _log_chances(one_hot, log_confusion)
    # subtracting the largest logarithm keeps exp from underflowing to 0 in every category
    top = joint.max(axis=1, keepdims=True)
    weights = np.exp(joint - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, float(times @ (np.log(total) + top)[:, 0])


def _log_chances(one_hot: Floats, log_confusion: Floats) -> Floats:
    """Return the log probability of each pattern given each category, shape (patterns, categories).

    Missing ratings are ignored.
    """
    log_chances = np.zeros((len(one_hot), log_confusion.shape[1]))
    for rater, log_matrix in enumerate(log_confusion):
        rows = one_hot[:, rater].any(axis=1)
        log_chances[rows] += log_matrix.T[one_hot[rows, rater].argmax(axis=1)]
    return log_chances
