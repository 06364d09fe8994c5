"""Rules that make one label of several judges' grades, compared by Cohen's kappa with people's on a pilot.

A rule is one judge at a cut of the scale, or k of two, three or five judges at the cut of relevance. Choosing the best
of many on the same pairs makes its kappa too high: what is chosen is reported with that said, and beside the rule that
nobody chose, 2 of 5.
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
"""Sizes of the panels that are compared beside single judges."""
TOLERANCE = 0.05
"""What a cheaper rule may lack of the best kappa: the best one's lead is by chance as often as not."""
LEAST = 100
"""Pairs that people must have graded: choosing by fewer costs more than it gives."""
COMPARED = 90
"""Pairs on which a rule must have been compared to be proposed: a judge may refuse a few."""


@dataclass(frozen=True)
class VoteRule:
    """At least `votes` of the judges give a grade at or above the cut."""

    judges: tuple[str, ...]
    votes: int
    cut: int
    """Place of the least grade that counts as a vote: 0 is the lowest grade of the scale."""
    grade: str
    """Its name."""

    @property
    def name(self) -> str:
        """Return the rule as a person reads it: `a ≥ A`, or `2 of a + b`."""
        if len(self.judges) == 1:
            return f"{self.judges[0]} ≥ {self.grade}"
        return f"{self.votes} of {' + '.join(self.judges)}"

    @property
    def calls(self) -> int:
        """Return how many judges are asked about a pair."""
        return len(self.judges)

    def labels(self, grades: Mapping[str, Ints]) -> Ints:
        """Return 1 or 0 for each pair, -1 where missing grades (below 0) leave it open; shape (pairs,)."""
        said = np.stack([grades[judge] for judge in self.judges])
        votes, silent = (said >= self.cut).sum(axis=0), (said < 0).sum(axis=0)
        found = np.where(votes >= self.votes, 1, np.where(votes + silent >= self.votes, -1, 0))
        return found.astype(np.int64)


def candidates(judges: Sequence[str], scale: Sequence[str], cut: int) -> Iterator[VoteRule]:
    """Yield the rules that are compared, none twice: 70 for five judges on a scale of four grades.

    `scale` are the names of the grades, the lowest first; `cut` is the place of the least relevant one.
    """
    for judge in judges:
        for place in range(1, len(scale)):
            yield VoteRule((judge,), 1, place, scale[place])
    for size in PANELS:
        for panel in combinations(judges, size):
            for votes in range(1, size + 1):
                yield VoteRule(panel, votes, cut, scale[cut])


def unchosen(judges: Sequence[str], scale: Sequence[str], cut: int) -> VoteRule:
    """Return the rule that is taken where nobody chooses: 2 of the first five judges, of fewer the majority."""
    panel = tuple(judges[: max(PANELS)])
    return VoteRule(panel, 2 if len(panel) == max(PANELS) else len(panel) // 2 + 1, cut, scale[cut])


@dataclass(frozen=True)
class RuleAgreement:
    """How far a rule agrees with people on the pairs of a pilot."""

    rule: VoteRule
    kappa: float | None
    """Cohen's, -1 to 1; None where it is not defined."""
    interval: Interval | None
    """Of kappa, pairs resampled by query."""
    pairs: int
    """That people and the rule both labelled."""


def compared(
    rules: Sequence[VoteRule], grades: Mapping[str, Ints], people: Ints, queries: Ints, seed: int
) -> list[RuleAgreement]:
    """Return the rules, the best kappa first; of equal ones fewer calls first, then by name.

    `people` holds 1 or 0 per pair, -1 without an answer; `queries` is the number of each pair's query.
    """
    found = [_agreement(rule, rule.labels(grades), people, queries, seed) for rule in rules]
    return sorted(found, key=_order)


def proposed(found: Sequence[RuleAgreement], price: Callable[[VoteRule], float | None]) -> RuleAgreement | None:
    """Return the cheapest rule whose kappa is within `TOLERANCE` of the best one's; None if none has a kappa.

    By price, where all of them have one, else by calls; of equal ones the better. Rules that were compared on fewer
    than `COMPARED` pairs are left out.
    """
    known = [(each.kappa, each) for each in found if each.kappa is not None and each.pairs >= COMPARED]
    if not known:
        return None
    best = max(kappa for kappa, _ in known)
    near = [each for kappa, each in known if kappa >= best - TOLERANCE]
    prices = {each.rule: price(each.rule) for each in near}
    priced = None not in prices.values()
    return min(near, key=lambda each: (prices[each.rule] if priced else 0, each.rule.calls, *_order(each)))


def _agreement(rule: VoteRule, labels: Ints, people: Ints, queries: Ints, seed: int) -> RuleAgreement:
    both = (labels >= 0) & (people >= 0)
    if not both.any():
        return RuleAgreement(rule, None, None, 0)
    tables = crosstab(people[both], labels[both], 2, queries[both])
    kappa = scalar(cohen(Crosstab(tables.table.sum(axis=0))))
    return RuleAgreement(rule, kappa, interval(tables, cohen, seed=seed), int(both.sum()))


def _order(found: RuleAgreement) -> tuple[float, int, str]:
    return math.inf if found.kappa is None else -found.kappa, found.rule.calls, found.rule.name
