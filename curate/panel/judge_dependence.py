"""Error correlation of judges, and the effective number of independent judges.

Kappa measures agreement, not quality: judges that share errors agree. Errors are binary, against assessors: +1 for a
pair that only the judge finds relevant, -1 for one that only the assessor finds relevant. An assessor's error counts as
an error that all judges share, so the correlation is biased upwards, and the effective number downwards.

Without assessors, only agreement is known. It cannot distinguish one judge under two names from two judges who hardly
ever err, nor show that judges who agree less have independent errors. Two judges are near-identical if their kappa is
at least `GRADES` and its lower bound at least `BEYOND`: in tests, the kappa of different raters was at most 0.90 (three
personas of one model), and copies that differ in one grade of 300 are still detected. Kappa's lower bound is 1 - u / e,
where u is the upper end of Wilson's 95 % interval for the share of unequal grades, and e is the share expected by
chance. Items are assumed to be independent, which items of one query are not, so the bound is biased upwards.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from curate.core.figures import Record, figure
from curate.stats import bootstrap
from curate.stats.agreement import cohen, scalar
from curate.stats.ratios import correlation, moments
from curate.stats.sample_estimates import wilson
from curate.stats.tally import Codes, Floats, Ints, crosstab

ERRORS = 0.8
"""Lowest correlation of errors at which two judges count as near-identical."""
GRADES = 0.95
"""Lowest Cohen's kappa of grades at which they do, where errors are unknown."""
BEYOND = 0.85
"""Lowest lower bound of that kappa at which they do."""
MEASURED: Mapping[bool | None, str] = {True: "yes", False: "no", None: "not measured"}


class JudgePair(Record, schema_name="together"):
    """Dependence of two judges; None where a judge gives a constant grade or data are missing."""

    first: str = figure("name of the first judge")
    second: str = figure("name of the second judge")
    items: int = figure("items rated by both")
    equal: float | None = figure("share of equal ratings")
    kappa: float | None = figure("Cohen's kappa of the grades, unweighted")
    kappa_low: float | None = figure("lower bound of the 95 % interval of kappa")
    errors: float | None = figure("correlation of their errors against assessors' grades")
    family: str | None = figure("family that both belong to")
    near: bool | None = figure("whether they are near-identical; null with too few items")


class Effective(Record):
    """Effective number of independent judges of a panel: m / (1 + (m - 1) rho), at most m."""

    judges: int = figure("judges of the panel")
    rho: float | None = figure("mean correlation of errors")
    rho_low: float | None = figure("lower bound of the 95 % interval of rho")
    rho_high: float | None = figure("upper bound of the 95 % interval of rho")
    value: float = figure("effective number of independent judges", digits=2)
    low: float | None = figure("lower bound of its 95 % interval")
    high: float | None = figure("upper bound")


class Dependence(Record):
    """What the judges of a panel have in common."""

    unanimous_as_people: Any = figure("share of the unanimous grades that assessors confirm", optional=True)
    together: tuple[JudgePair, ...] = figure("dependence of every two judges")
    clones: tuple[tuple[str, ...], ...] = figure("groups of near-identical judges")
    families: Mapping[str, tuple[str, ...]] = figure("model family -> its judges, for families with several")
    effective: Effective | None = figure("effective number of judges; null if not measured")
    not_measured: str | None = figure("reason why `effective` is null")
    warnings: tuple[str, ...] | None = figure("warnings on dependent judges, one sentence each", optional=True)
    kappa: float | None = figure("Fleiss' kappa of the grades", optional=True, nullable=True)
    kappa_cut: float | None = figure("Fleiss' kappa of binary labels", optional=True, nullable=True)


def effective_number(judges: int, rho: float) -> float:
    """Return the number of independent judges with the same variance of their mean, at most `judges`.

    A negative rho would give more than `judges`. On the few pairs that assessors read, it is due to chance, or judges
    err in opposite directions; it counts as 0.
    """
    return judges / (1 + (judges - 1) * max(rho, 0.0))


def effective(
    errors: npt.ArrayLike, queries: npt.ArrayLike, seed: int, weights: npt.ArrayLike | None = None
) -> Effective | None:
    """Return the effective number of a panel from errors, pairs x judges, NaN for none; queries are resampled.

    Only pairs rated by the whole panel count. `weights` is the number of pairs of the pool that each pair represents, 1
    if None; it corrects for assessors' samples, which have more disagreement than the pool. None for fewer than two
    judges, or if a judge's errors never vary.
    """
    matrix = np.asarray(errors, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        return None
    complete = ~np.isnan(matrix).any(axis=1)
    sums = moments(matrix[complete], np.asarray(queries)[complete], _weights(weights, matrix)[complete])
    rho = scalar(correlation(sums.weighted(np.ones(len(sums)))))
    if rho is None:
        return None
    bounds, judges = bootstrap.interval(sums, correlation, seed=seed), matrix.shape[1]
    low, high = (bounds.low, bounds.high) if bounds else (None, None)
    # the higher rho gives the lower number
    number_bounds = (None if rho_bound is None else effective_number(judges, rho_bound) for rho_bound in (high, low))
    return Effective(judges, rho, low, high, effective_number(judges, rho), *number_bounds)


def together(
    names: Sequence[str],
    codes: Codes,
    errors: npt.ArrayLike | None,
    families: Mapping[str, str | None],
    weights: npt.ArrayLike | None = None,
) -> list[JudgePair]:
    """Return the dependence of every two judges; `codes` are pairs x judges, -1 for no grade.

    `errors` are pairs x judges too, NaN for none; None if all are unknown. `weights` is the number of pairs that each
    pair represents, 1 if None.
    """
    grade_codes = np.asarray(codes, dtype=np.int64)
    error_matrix = None if errors is None else np.asarray(errors, dtype=np.float64)
    pairs = []
    for first, second in combinations(range(len(names)), 2):
        error_correlation = None if error_matrix is None else _pearson(error_matrix[:, [first, second]], weights)
        family = families.get(names[first])
        items, equal, kappa, low = _alike(grade_codes[:, first], grade_codes[:, second])
        pairs.append(
            JudgePair(
                names[first],
                names[second],
                items,
                equal,
                kappa,
                low,
                error_correlation,
                family=family if family == families.get(names[second]) else None,
                near=_near_identical(error_correlation, kappa, low),
            )
        )
    return pairs


def dependence(
    names: Sequence[str],
    codes: Codes,
    *,
    clusters: npt.ArrayLike,
    seed: int,
    errors: npt.ArrayLike | None = None,
    families: Mapping[str, str | None] | None = None,
    weights: npt.ArrayLike | None = None,
) -> Dependence:
    """Return the dependence of a panel's judges; arguments are those of `together` and `effective`.

    `not_measured` is `few` (one judge), `people` (assessors graded no pair that all judges graded) or `errors` (a
    judge's errors are constant).
    """
    family_of = families or {}
    members_by_family = {
        family: [name for name in names if family_of.get(name) == family]
        for family in sorted(filter(None, family_of.values()))
    }
    number = None if errors is None else effective(errors, clusters, seed, weights)
    has_errors = errors is not None and not np.isnan(np.asarray(errors, dtype=np.float64)).any(axis=1).all()
    reason = None if number else "few" if len(names) < 2 else "errors" if has_errors else "people"
    pairs = together(names, codes, errors, family_of, weights)
    return Dependence(
        together=tuple(pairs),
        clones=tuple((pair.first, pair.second) for pair in pairs if pair.near),
        families={family: tuple(members) for family, members in members_by_family.items() if len(members) > 1},
        effective=number,
        not_measured=reason,
        unanimous_as_people=None,
        warnings=None,
        kappa=None,
        kappa_cut=None,
    ).rounded()


def warnings(figures: Dependence, words: Mapping[str, Any], who: str = "judges") -> list[str]:
    """Return a sentence for every two near-identical judges and every family, in the words of a language.

    `words` is the part `dependence` of a language's strings.
    """
    near = [pair for pair in figures.together if pair.near]
    who = words["who"][who]
    near_sentences = [
        words["near"].format(who=who, reasons=words["comma"].join(_reasons(pair, words)), **vars(pair)) for pair in near
    ]
    family_sentences = [
        words["kin"].format(who=who, family=family, names=words["comma"].join(names))
        for family, names in figures.families.items()
    ]
    return [*near_sentences, *family_sentences, *([words["alike"].format(who=who)] if near or family_sentences else [])]


def worth(figures: Dependence, words: Mapping[str, Any], who: str = "judges") -> str:
    """Return a sentence with the effective number of a panel, or with the reason why it was not measured."""
    number, who = figures.effective, words["who"][who]
    if number is None:
        return str(words["unmeasured"].format(who=who, reason=words["reasons"][figures.not_measured]))
    return str(words["worth"].format(who=who, **vars(number) | {"value": f"{number.value:.2f}"}))


def row(pair: JudgePair) -> dict[str, object]:
    """Return the dependence of two judges as a row of a table."""
    too_few = pair.near is None and pair.kappa is not None and pair.kappa >= GRADES
    unlike = pair.near is False and pair.errors is None  # judges who agree less may still err alike
    near = "too few to tell" if too_few else MEASURED[None if unlike else pair.near]
    figures = {name: MEASURED[None] if figure is None else figure for name, figure in vars(pair).items()}
    return {name: figures[name] for name in figures if name not in ("family", "near")} | {"near-identical": near}


def _reasons(pair: JudgePair, words: Mapping[str, Any]) -> list[str]:
    """Return the reasons why two judges are near-identical, in words."""
    reasons = [words["family"].format(**vars(pair))] if pair.family else []
    return [*reasons, words["grades" if pair.errors is None else "errors"].format(**vars(pair))]


def _alike(first: Ints, second: Ints) -> tuple[int, float | None, float | None, float | None]:
    """Return the number of items that both judges rated, the share of equal ratings, kappa and its lower bound."""
    table = crosstab(first, second, int(max(first.max(initial=0), second.max(initial=0))) + 1)
    items, kappa = int(table.table.sum()), scalar(cohen(table))
    unequal = wilson(items - float(np.trace(table.table)), items)
    if unequal is None or kappa is None:
        return items, None if unequal is None else 1 - unequal.value, kappa, None
    by_chance = 1 - float(table.table.sum(axis=0) @ table.table.sum(axis=1)) / items**2
    return items, 1 - unequal.value, kappa, 1 - unequal.high / by_chance


def _near_identical(errors: float | None, kappa: float | None, low: float | None) -> bool | None:
    """Return whether two judges are near-identical; None if unknown."""
    if errors is not None:
        return errors >= ERRORS
    if kappa is not None and kappa < GRADES:
        return False
    # unknown, not False, where there are too few items for the lower bound
    return True if low is not None and low >= BEYOND else None


def _pearson(columns: Floats, weights: npt.ArrayLike | None = None) -> float | None:
    complete = ~np.isnan(columns).any(axis=1)
    if not complete.any():
        return None
    sums = moments(columns[complete], np.zeros(int(complete.sum())), _weights(weights, columns)[complete])
    return scalar(correlation(sums.weighted(np.ones(1))))


def _weights(weights: npt.ArrayLike | None, matrix: Floats) -> Floats:
    return np.ones(len(matrix)) if weights is None else np.asarray(weights, dtype=np.float64)
