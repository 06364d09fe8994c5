"""Detection of judges that do not read their prompts: grades that depend on the slot or the length, or are constant.

Passages are in a seeded order, so slot and grade of an honest judge are independent. The bounds are far above those of
real judges and assessors on the same windows (docs/evidence.md, "Weak-judge stops").
"""

from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curate.core.scale import Scale
from curate.ledger import Rating
from curate.panel import position_bias
from curate.stats.tally import Floats, Ints

FEWEST = 15
"""Minimum prompts for a finding on the slot."""
WINDOW = 30
"""Maximum prompts for it, the last ones."""
LONG_LOOK = 20
"""Minimum prompts for a finding on the length, or on constant grades."""
PASSAGES = 100
"""Minimum passages in these prompts."""
SLOT_SHARE = 0.30
LIKELY = 8
"""Minimum probably relevant passages among all that get the worst grade: the poorest real judge gives it to half."""
LENGTH_CORRELATION = 0.75
ALPHA = 1e-7
"""Maximum p of the share of the slot: a run of 30,000 prompts tests as often."""


@dataclass(frozen=True)
class GradedPrompt:
    """Two passages or more that one reply graded, in the order of the prompt."""

    slots: Ints
    """Their places in the prompt, from 0."""
    steps: Floats
    """Steps of each grade above the worst."""
    lengths: Floats
    """Characters of each passage."""


class ReadingTest:
    """The last prompts of one judge, tested for what their grades depend on."""

    def __init__(
        self, scale: Scale, lengths: Mapping[str, int], likely: Container[tuple[str, str]] = frozenset()
    ) -> None:
        """Take the scale of the grades, and passage digest -> characters of the passage as shown.

        `likely` are digests of query and passage of pairs that are probably relevant.
        """
        self._steps, self._lengths = position_bias.steps(scale), lengths
        self._prompts = deque[GradedPrompt]()
        self._passages = 0
        self._likely, self._of_likely = likely, 0
        self._only_worst = True

    @property
    def undecided(self) -> bool:
        """Return whether there are too few prompts for any finding."""
        return len(self._prompts) < FEWEST

    def add(self, ratings: Sequence[Rating]) -> None:
        """Add the ratings of one reply; one with a single passage is skipped."""
        rated = sorted((row for row in ratings if row.grade is not None), key=lambda row: row.slot)
        steps = [self._steps[str(row.grade)] for row in rated]
        pairs = [(row.query_digest, row.passage_digest) for row in rated]
        self._of_likely += sum(pair in self._likely for pair in pairs)
        self._only_worst = self._only_worst and not any(steps)
        if len(rated) < 2:
            return
        slots, lengths = [row.slot for row in rated], [self._lengths.get(passage, 0) for _, passage in pairs]
        self._prompts.append(GradedPrompt(np.array(slots), np.array(steps, float), np.array(lengths, float)))
        self._passages += len(rated)
        while len(self._prompts) > WINDOW and self._passages - len(self._prompts[0].steps) >= PASSAGES:
            self._passages -= len(self._prompts.popleft().steps)

    def finding(self) -> str:
        """Return as a clause what the grades depend on instead of the texts; empty without a finding."""
        return self._of_the_likely() or self._of_the_slot() or self._of_the_last()

    def _of_the_likely(self) -> str:
        if self._of_likely < LIKELY or not self._only_worst:
            return ""
        return (
            f"it gave {self._label(0)} to every passage, {self._of_likely} of them probably relevant (by labels that "
            "were brought, or among the first three of every retriever)"
        )

    def _of_the_slot(self) -> str:
        recent = list(self._prompts)[-WINDOW:]
        share, chance = (None, 1.0) if self.undecided else slot_share(recent)
        if share is None or share < SLOT_SHARE or chance >= ALPHA:
            return ""
        return f"its grades follow the place in the prompt ({share:.0%} of their variance in {len(recent)} prompts)"

    def _of_the_last(self) -> str:
        """Return a finding on constant grades or on the length; empty without one."""
        prompts = list(self._prompts)
        if len(prompts) < LONG_LOOK or self._passages < PASSAGES:
            return ""
        if step := only_step(prompts):
            return f"it gave {self._label(step)} to all {self._passages} passages of its last {len(prompts)} prompts"
        correlation = length_correlation(prompts)
        if correlation is None or abs(correlation) < LENGTH_CORRELATION:
            return ""
        return f"its grades follow the length of the passages (rank correlation {correlation:.2f})"

    def _label(self, step: float) -> str:
        return next(label for label, steps in self._steps.items() if steps == step)


def slot_share(prompts: Sequence[GradedPrompt]) -> tuple[float | None, float]:
    """Return eta squared of the slot, and its p (F test).

    Eta squared is the share, 0 to 1, of the variance of all grades that is between slots; None where it is 0.
    """
    grades = np.concatenate([prompt.steps for prompt in prompts])
    slots = np.unique(np.concatenate([prompt.slots for prompt in prompts]), return_inverse=True)[1]
    centred = grades - grades.mean()
    total = float(centred @ centred)
    between, within = int(slots.max()), len(grades) - int(slots.max()) - 1
    if not (total and between and within > 0):
        return None, 1.0
    share = min(float((np.bincount(slots, weights=centred) ** 2 / np.bincount(slots)).sum()) / total, 1.0)
    if share < SLOT_SHARE:
        return share, 1.0
    from scipy.special import betainc

    # The upper tail of F at (share / between) / ((1 - share) / within), as a beta distribution of 1 - share.
    return share, float(betainc(within / 2, between / 2, 1 - share))


def only_step(prompts: Sequence[GradedPrompt]) -> float | None:
    """Return the steps above the worst of the one grade that all passages got; None if there are two grades."""
    steps = {float(step) for prompt in prompts for step in prompt.steps}
    return steps.pop() if len(steps) == 1 else None


def length_correlation(prompts: Sequence[GradedPrompt]) -> float | None:
    """Return Spearman's correlation of grade and length within prompts, pooled; None where it is not defined."""
    lengths = np.concatenate([_centred_ranks(prompt.lengths) for prompt in prompts])
    grades = np.concatenate([_centred_ranks(prompt.steps) for prompt in prompts])
    norm = float(np.sqrt((lengths @ lengths) * (grades @ grades)))
    return float(lengths @ grades) / norm if norm else None


def _centred_ranks(values: Floats) -> Floats:
    """Return the ranks of values, ties at their mean, less the mean rank."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[index]
    centred: Floats = ranks - ranks.mean()
    return centred
