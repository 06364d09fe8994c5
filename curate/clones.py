"""Whether several judges are several: how far they err together, and how many independent ones they are worth.

Kappa counts agreement, and judges that err alike agree: it is no measure of quality. Errors are those against
assessors, on the cut: +1 for a pair that the judge alone finds relevant, -1 for one that the assessor alone does.
Assessors err too, and what they get wrong counts as an error that all judges share, so the correlation is rather too
high, and the effective number rather too low.

Without assessors agreement alone must do, and it cannot tell one judge under two names from two judges who hardly ever
err, nor show that judges who agree less err apart. Near-identical are two whose kappa reaches `GRADES` and surely
exceeds `BEYOND`: more alike than any two raters of the sets that this was tried on (at most .90, three personas of one
model), up to copies that differ in one grade of 300. Kappa's lower bound is 1 - u / e, with u the upper end of Wilson's
95 % interval of the share of unequal grades and e the share that chance would make unequal; items count as
independent, which those of one query are not, so it is rather too high.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from curate import intervals
from curate.agreement import cohen, scalar
from curate.config import Json
from curate.estimates import wilson
from curate.ratios import correlation, moments
from curate.tally import Codes, Floats, Ints, crosstab

ERRORS = 0.8
"""Correlation of two judges' errors from which they count as near-identical."""
GRADES = 0.95
"""Cohen's kappa of their grades from which they do where no assessor tells what their errors have in common."""
BEYOND = 0.85
"""What the lower end of that kappa's interval must reach."""
MEASURED: Mapping[bool | None, str] = {True: "yes", False: "no", None: "not measured"}
_NAME = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Together:
    """How two judges go together; None where a judge never varies or nothing is known."""

    first: str
    second: str
    items: int
    """Rated by both."""
    equal: float | None
    """Share of them with one rating by both."""
    kappa: float | None
    """Cohen's, of the grades as they are."""
    kappa_low: float | None
    errors: float | None
    """Pearson's correlation of their errors."""
    family: str | None
    """The one that both are of."""
    near: bool | None
    """Whether they count as near-identical; None where that was not measured, or on too few items."""


@dataclass(frozen=True)
class Effective:
    """How many independent judges a panel is worth: m / (1 + (m - 1) rho), at most m."""

    judges: int
    rho: float
    """Mean correlation of two judges' errors."""
    rho_low: float | None
    rho_high: float | None
    value: float
    low: float | None
    high: float | None


def family(model: str) -> str | None:
    """Return what a model's name begins with, as a guess at its family: `gpt` of openai/gpt-4o-mini."""
    found = _NAME.match(model.rpartition("/")[2].lower())
    return found[0] if found else None


def effective_number(judges: int, rho: float) -> float:
    """Return how many independent judges have the same variance of their mean, at most as many as there are.

    Errors that correlate below 0 would cancel and make two judges worth more than two. On the few pairs that people
    read such a rho is chance, or says that judges err in opposite directions; neither is a judge more.
    """
    return judges / (1 + (judges - 1) * max(rho, 0.0))


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
    sums = moments(matrix[whole], np.asarray(queries)[whole], _weights(weights, matrix)[whole])
    rho = scalar(correlation(sums.weighted(np.ones(len(sums)))))
    if rho is None:
        return None
    found, judges = intervals.interval(sums, correlation, seed=seed), matrix.shape[1]
    low, high = (found.low, found.high) if found else (None, None)
    ends = (None if each is None else effective_number(judges, each) for each in (high, low))
    return Effective(judges, rho, low, high, effective_number(judges, rho), *ends)


def together(
    names: Sequence[str],
    codes: Codes,
    errors: npt.ArrayLike | None,
    families: Mapping[str, str | None],
    weights: npt.ArrayLike | None = None,
) -> list[Together]:
    """Return every two judges; `codes` are pairs x judges with -1 for none, `errors` with NaN, None if unknown.

    `weights` is how many pairs each pair with errors stands for; one if None.
    """
    said = np.asarray(codes, dtype=np.int64)
    wrong = None if errors is None else np.asarray(errors, dtype=np.float64)
    found = []
    for one, two in combinations(range(len(names)), 2):
        amiss = None if wrong is None else _pearson(wrong[:, [one, two]], weights)
        kin = families.get(names[one])
        items, equal, kappa, low = _alike(said[:, one], said[:, two])
        found.append(
            Together(
                names[one],
                names[two],
                items,
                equal,
                kappa,
                low,
                amiss,
                family=kin if kin == families.get(names[two]) else None,
                near=_near(amiss, kappa, low),
            )
        )
    return found


def dependence(
    names: Sequence[str],
    codes: Codes,
    *,
    clusters: npt.ArrayLike,
    seed: int,
    errors: npt.ArrayLike | None = None,
    families: Mapping[str, str | None] | None = None,
    weights: npt.ArrayLike | None = None,
) -> dict[str, Json]:
    """Return what the judges of a panel have in common, for all who show it.

    `together` every two of them, `clones` those that are near-identical, `families` those with several judges; where
    `effective` is None, `not_measured` says why: `few` (one judge), `people` (they graded nothing that all judges did)
    or `errors` (a judge's never vary). Arguments are those of `together` and `effective`.
    """
    of = families or {}
    kin = {family: [name for name in names if of.get(name) == family] for family in sorted(filter(None, of.values()))}
    worth = None if errors is None else effective(errors, clusters, seed, weights)
    read = errors is not None and not np.isnan(np.asarray(errors, dtype=np.float64)).any(axis=1).all()
    reason = None if worth else "few" if len(names) < 2 else "errors" if read else "people"
    pairs = together(names, codes, errors, of, weights)
    return {
        "together": [_plain(each) for each in pairs],
        "clones": [[each.first, each.second] for each in pairs if each.near],
        "families": {family: list(members) for family, members in kin.items() if len(members) > 1},
        "effective": _plain(worth) if worth else None,
        "not_measured": reason,
    }


def warnings(found: Mapping[str, Any], words: Mapping[str, Any], who: str = "judges") -> list[str]:
    """Return a sentence for every two that are near-identical and for every family, in the words of a language.

    `found` is what `dependence` returns, `words` the part `dependence` of a language's strings.
    """
    near = [each for each in found["together"] if each["near"]]
    who = words["who"][who]
    said = [words["near"].format(who=who, reasons=words["comma"].join(_reasons(each, words)), **each) for each in near]
    kin = [
        words["kin"].format(who=who, family=family, names=words["comma"].join(names))
        for family, names in found["families"].items()
    ]
    return [*said, *kin, *([words["alike"].format(who=who)] if near or kin else [])]


def worth(found: Mapping[str, Any], words: Mapping[str, Any], who: str = "judges") -> str:
    """Return the effective number of a panel as a sentence, or why it was not measured."""
    number, who = found["effective"], words["who"][who]
    if number is None:
        return str(words["unmeasured"].format(who=who, reason=words["reasons"][found["not_measured"]]))
    return str(words["worth"].format(who=who, **{**number, "value": f"{number['value']:.2f}"}))


def row(pair: Mapping[str, Any]) -> dict[str, object]:
    """Return how two judges go together as a row of a table."""
    few = pair["near"] is None and pair["kappa"] is not None and pair["kappa"] >= GRADES
    near = "too few to tell" if few else MEASURED[pair["near"]]
    shown = ("first", "second", "items", "equal", "kappa", "kappa_low", "errors")
    return {**{name: MEASURED[None] if pair[name] is None else pair[name] for name in shown}, "near-identical": near}


def _plain(found: Together | Effective) -> dict[str, Json]:
    """Return the fields, rounded so that a last bit cannot make two runs differ."""
    return {name: round(each, 6) if isinstance(each, float) else each for name, each in asdict(found).items()}


def _reasons(pair: Mapping[str, Any], words: Mapping[str, Any]) -> list[str]:
    """Return why two judges are near-identical."""
    kin = [words["family"].format(**pair)] if pair["family"] else []
    return [*kin, words["grades" if pair["errors"] is None else "errors"].format(**pair)]


def _alike(first: Ints, second: Ints) -> tuple[int, float | None, float | None, float | None]:
    """Return how many items two judges both rated, the share of equal ratings, and kappa with its lower bound."""
    table = crosstab(first, second, int(max(first.max(initial=0), second.max(initial=0))) + 1)
    items, kappa = int(table.table.sum()), scalar(cohen(table))
    unequal = wilson(items - float(np.trace(table.table)), items)
    if unequal is None or kappa is None:
        return items, None if unequal is None else 1 - unequal.value, kappa, None
    by_chance = 1 - float(table.table.sum(axis=0) @ table.table.sum(axis=1)) / items**2
    return items, 1 - unequal.value, kappa, 1 - unequal.high / by_chance


def _near(errors: float | None, kappa: float | None, low: float | None) -> bool | None:
    """Say whether two judges are near-identical; None if that is not known."""
    if errors is not None:
        return errors >= ERRORS
    if kappa is not None and kappa < GRADES:
        return False
    return True if low is not None and low >= BEYOND else None


def _pearson(columns: Floats, weights: npt.ArrayLike | None = None) -> float | None:
    known = ~np.isnan(columns).any(axis=1)
    if not known.any():
        return None
    sums = moments(columns[known], np.zeros(int(known.sum())), _weights(weights, columns)[known])
    return scalar(correlation(sums.weighted(np.ones(1))))


def _weights(given: npt.ArrayLike | None, matrix: Floats) -> Floats:
    return np.ones(len(matrix)) if given is None else np.asarray(given, dtype=np.float64)
