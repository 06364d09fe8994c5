"""Rank correlation of two benchmarks over the same models.

With few models a correlation is uncertain: rho = 0.354 of 14 models, for example, is compatible with -0.22 and 0.74. So
it has a p-value and an interval from resampling models and queries together, and is omitted below eight models.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from curate.commands.evaluate.board import Board
from curate.core.figures import Record, figure
from curate.stats.bootstrap import DIGITS
from curate.stats.rank_correlation import kendall, spearman_of_scores
from curate.stats.significance import Replicated, replicas
from curate.stats.tally import Floats

FEWEST = 8
"""Minimum number of models for a correlation."""
SHUFFLES = 9_999
EXACT = 40_320
"""Maximum number of permutations that are all evaluated: 8!, those of eight models."""


class Correlation(Record):
    """A rank correlation, -1 to 1, with its 95 % interval and two-sided p-value."""

    value: float = figure("the correlation")
    low: float | None = figure("lower bound of the 95 % interval")
    high: float | None = figure("upper bound")
    p: float = figure("p-value of the test in `p_by`")
    p_by: str = figure("exact (all orders of the models) or permutation (a sample of the orders)")
    p_t: float | None = figure(
        "p-value of Spearman's rho by the t distribution; null for Kendall's tau-b", default=None
    )


@dataclass(frozen=True)
class BenchmarkScores:
    """Scores of models on one benchmark as functions of resampled queries, and the number of its queries."""

    scores: Sequence[Replicated]
    """One score function per model, in the same order on both benchmarks."""
    queries: int


def compare(
    new: BenchmarkScores, old: BenchmarkScores, seed: int, *, same_queries: bool = False, replicates: int = 1000
) -> tuple[Correlation | None, Correlation | None]:
    """Return Spearman's rho and Kendall's tau-b of two benchmarks over the same models, as `correlated`.

    Each replicate of the interval draws models with replacement, and queries of both benchmarks: the same ones with
    `same_queries` (both have the same queries in the same order), else independently. p is two-sided, from all
    permutations of the models or 9,999 random ones.
    """
    if len(new.scores) < FEWEST:
        return None, None
    drawn = _draw(new, old, seed, replicates, same_queries=same_queries)
    points = [np.array([float(score(np.ones((1, side.queries)))[0]) for score in side.scores]) for side in (new, old)]
    return correlated(points, drawn, seed)


def correlated(
    points: Sequence[Floats], drawn: tuple[Floats, Floats], seed: int
) -> tuple[Correlation | None, Correlation | None]:
    """Return Spearman's rho and Kendall's tau-b of two scorings of the same models.

    Both are None below eight models, or if all scores are equal. `drawn` are the scores of resampled models, two arrays
    of shape (replicates, models).
    """
    if len(points[0]) < FEWEST:
        return None, None
    rho, tau = (_order(measure, points, drawn, seed) for measure in (spearman_of_scores, kendall))
    return rho and replace(rho, p_t=by_t(rho.value, len(points[0]))), tau


def by_t(rho: float, models: int) -> float:
    """Return the two-sided p-value of rho under no correlation, by Student's t with n - 2 degrees of freedom."""
    from scipy.special import stdtr

    unexplained = 1 - rho * rho
    return (
        round(float(2 * stdtr(models - 2, -abs(rho) * math.sqrt((models - 2) / unexplained))), DIGITS)
        if unexplained > 0
        else 0.0
    )


def _order(
    measure: Callable[[Floats, Floats], Floats],
    points: Sequence[Floats],
    replicate_scores: tuple[Floats, Floats],
    seed: int,
) -> Correlation | None:
    correlation = float(measure(points[0], points[1]))
    if np.isnan(correlation):
        return None
    number = math.factorial(len(points[1]))
    if number <= EXACT:
        shuffled, test = np.array(list(permutations(points[1]))), f"exact, all {number:,} orders"
    else:
        copies = np.tile(points[1], (SHUFFLES, 1))
        shuffled = np.random.default_rng(seed).permuted(copies, axis=1)
        test = f"permutation, {SHUFFLES:,} random orders"
    # 1e-12: permutations that differ from the observed correlation in the last bits count as equal
    n_extreme = int((np.abs(measure(points[0], shuffled)) >= abs(correlation) - 1e-12).sum())
    p = n_extreme / len(shuffled) if number <= EXACT else (1 + n_extreme) / (1 + SHUFFLES)
    figures = measure(*replicate_scores)
    defined = figures[~np.isnan(figures)]
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (None, None)
    bounds = [None if bound is None else round(float(bound), DIGITS) for bound in (low, high)]
    return Correlation(round(correlation, DIGITS), bounds[0], bounds[1], round(p, DIGITS), test)


def _draw(
    new: BenchmarkScores, old: BenchmarkScores, seed: int, replicates: int, *, same_queries: bool
) -> tuple[Floats, Floats]:
    """Return the scores of resampled models on resampled queries, two arrays of shape (replicates, models)."""
    models = len(new.scores)
    chosen = np.random.default_rng([seed, 1]).integers(0, models, size=(replicates, models))
    salts = (seed, seed if same_queries else seed + 1)
    new_scores, old_scores = (
        np.take_along_axis(replicas(side.scores, side.queries, salt, replicates), chosen, axis=1)
        for side, salt in zip((new, old), salts, strict=True)
    )
    return new_scores, old_scores


# A task and an older one.


class LegacyScore(Record, schema_name="two"):
    """Scores of one model on both tasks."""

    model: str = figure("name of the model")
    new: float = figure("score on the new task", digits=2, percent=True)
    old: float = figure("score on the old task", digits=2, percent=True)


class LegacyComparison(Record, schema_name="legacy"):
    """Rank correlation of a task with an older one."""

    new: str = figure("the new task")
    old: str = figure("the old task")
    source: str = figure("folder or mteb task given as the old task")
    kind: str = figure("mteb's type of both")
    same_queries: bool = figure("whether both have the same queries")
    models: int = figure("models with scores on both")
    spearman: Correlation | None = figure("Spearman's rho; null with fewer models than `fewest`")
    kendall: Correlation | None = figure("Kendall's tau-b; null with fewer models than `fewest`")
    fewest: int = figure("minimum number of models for a correlation")
    leads: tuple[str, ...] = figure("scorings of contested pairs that order the new task and the old one")
    scores: tuple[LegacyScore, ...] = figure("a row per model")


def of_legacy(new: Board, old: Board) -> LegacyComparison:
    """Return the rank correlation of two tasks of the same type, and every model's scores on both."""
    sides = [BenchmarkScores(board.scores(board.scored, board.lead), board.items) for board in (new, old)]
    same = new.scored[0].queries == old.scored[0].queries
    rho, tau = compare(sides[0], sides[1], new.seed, same_queries=same)
    both = zip(new.scored, old.scored, strict=True)
    return LegacyComparison(
        new=new.task.name,
        old=old.task.name,
        source=old.task.source,
        kind=new.task.kind.mteb.type,
        same_queries=same,
        models=len(new.scored),
        spearman=rho,
        kendall=tau,
        fewest=FEWEST,
        leads=(new.lead, old.lead),
        scores=tuple(
            LegacyScore(new_scored.model, round(new.led(new_scored), DIGITS), round(old.led(old_scored), DIGITS))
            for new_scored, old_scored in both
        ),
    )
