"""Vote rules: binary labels from the grades of several judges, compared with assessors on a pilot by Cohen's kappa.

A rule is one judge at any threshold of the scale, or k votes of two, three or five judges at the relevance threshold.
The kappa of the best of many rules on the same pairs is biased upwards. Reports state this and show it next to a rule
fixed in advance, 2 of 5.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from curate.stats.agreement import cohen, scalar
from curate.stats.bootstrap import Interval, interval
from curate.stats.tally import Crosstab, Ints, crosstab

PANELS = (2, 3, 5)
"""Numbers of judges of the compared panels; single judges are compared as well."""
TOLERANCE = 0.05
"""Maximum deficit in kappa of a cheaper rule against the best; half of such differences are due to chance."""
LEAST = 100
"""Minimum number of pairs graded by assessors: a choice from fewer loses more than it gains."""
COMPARED = 90
"""Minimum number of compared pairs of a proposed rule; below `LEAST`, because a judge may fail on a few pairs."""


@dataclass(frozen=True)
class VoteRule:
    """Rule that labels a pair relevant if at least `votes` of the judges give a grade at or above the threshold."""

    judges: tuple[str, ...]
    votes: int
    cut: int
    """Threshold: position of the lowest grade that counts as a vote; 0 is the lowest of the scale."""
    grade: str
    """Name of that grade."""

    @property
    def name(self) -> str:
        """Return the rule for display: `a ≥ A`, or `2 of a + b`."""
        if len(self.judges) == 1:
            return f"{self.judges[0]} ≥ {self.grade}"
        return f"{self.votes} of {' + '.join(self.judges)}"

    @property
    def calls(self) -> int:
        """Return the number of judge calls per pair."""
        return len(self.judges)

    def labels(self, grades: Mapping[str, Ints]) -> Ints:
        """Return 1 or 0 per pair, or -1 if missing grades (coded below 0) could change the label; shape (pairs,)."""
        codes = np.stack([grades[judge] for judge in self.judges])
        votes, missing = (codes >= self.cut).sum(axis=0), (codes < 0).sum(axis=0)
        labels = np.where(votes >= self.votes, 1, np.where(votes + missing >= self.votes, -1, 0))
        return labels.astype(np.int64)


def candidates(judges: Sequence[str], scale: Sequence[str], cut: int) -> Iterator[VoteRule]:
    """Yield the rules to compare, each once: 70 for five judges on a scale of four grades.

    `scale` lists the grades, lowest first; `cut` is the position of the lowest relevant one.
    """
    for judge in judges:
        for threshold in range(1, len(scale)):
            yield VoteRule((judge,), 1, threshold, scale[threshold])
    for size in PANELS:
        for panel in combinations(judges, size):
            for votes in range(1, size + 1):
                yield VoteRule(panel, votes, cut, scale[cut])


def unchosen(judges: Sequence[str], scale: Sequence[str], cut: int) -> VoteRule:
    """Return the rule fixed in advance: 2 of the first five judges; with fewer judges, their majority."""
    panel = tuple(judges[: max(PANELS)])
    return VoteRule(panel, 2 if len(panel) == max(PANELS) else len(panel) // 2 + 1, cut, scale[cut])


@dataclass(frozen=True)
class RuleAgreement:
    """Agreement of a rule with assessors on the pairs of a pilot."""

    rule: VoteRule
    kappa: float | None
    """Cohen's, -1 to 1; None where it is not defined."""
    interval: Interval | None
    """Interval of kappa from resampled queries."""
    pairs: int
    """Number of pairs with a label both by assessors and by the rule."""


def compared(
    rules: Sequence[VoteRule], grades: Mapping[str, Ints], people: Ints, queries: Ints, seed: int
) -> list[RuleAgreement]:
    """Return the agreement of each rule with assessors, best kappa first; ties by fewer calls, then by name.

    `people` holds the assessors' labels: 1 or 0 per pair, -1 without an answer. `queries` is the number of each pair's
    query.
    """
    agreements = [_agreement(rule, rule.labels(grades), people, queries, seed) for rule in rules]
    return sorted(agreements, key=_order)


def proposed(agreements: Sequence[RuleAgreement], price: Callable[[VoteRule], float | None]) -> RuleAgreement | None:
    """Return the cheapest rule with a kappa within `TOLERANCE` of that of the best rule of several judges, or above.

    By price if all of these rules have one, then by calls, then by kappa. Out are rules with under `COMPARED` pairs,
    and a judge alone where another one alone has a higher kappa. None if no rule has a kappa.
    """
    eligible = [
        (agreement.kappa, agreement)
        for agreement in agreements
        if agreement.kappa is not None and agreement.pairs >= COMPARED
    ]
    if not eligible:
        return None
    of_several = [kappa for kappa, agreement in eligible if agreement.rule.calls > 1]
    of_one = [kappa for kappa, agreement in eligible if agreement.rule.calls == 1]
    best, best_alone = max(of_several or of_one), max(of_one, default=-math.inf)
    near = [
        agreement
        for kappa, agreement in eligible
        if kappa >= best - TOLERANCE and (agreement.rule.calls > 1 or kappa >= best_alone)
    ]
    prices = {agreement.rule: price(agreement.rule) for agreement in near}
    priced = None not in prices.values()
    return min(
        near, key=lambda agreement: (prices[agreement.rule] if priced else 0, agreement.rule.calls, *_order(agreement))
    )


def _agreement(rule: VoteRule, labels: Ints, people: Ints, queries: Ints, seed: int) -> RuleAgreement:
    both = (labels >= 0) & (people >= 0)
    if not both.any():
        return RuleAgreement(rule, None, None, 0)
    tables = crosstab(people[both], labels[both], 2, queries[both])
    kappa = scalar(cohen(Crosstab(tables.table.sum(axis=0))))
    return RuleAgreement(rule, kappa, interval(tables, cohen, seed=seed), int(both.sum()))


def _order(agreement: RuleAgreement) -> tuple[float, int, str]:
    return math.inf if agreement.kappa is None else -agreement.kappa, agreement.rule.calls, agreement.rule.name
