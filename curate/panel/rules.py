"""Consensus rules by thresholds: minimum votes for relevant and for not relevant; other pairs are contested.

`unanimous` and `majority` are such rules; a pipeline can declare others, such as 4 of 5, or weighted votes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Annotated, Literal

import polars as pl
from pydantic import Field

from curate.core.config import Section
from curate.core.errors import ConfigError
from curate.core.scale import Scale

Weight = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
PLACE = "consensus.policy"
SLACK = 1e-9
"""Tolerance of comparing sums of weights with thresholds, for float rounding: 0.3 is reached by 0.1 + 0.2."""


class Positive(Section):
    """When a pair is relevant."""

    at_least: Weight = Field(description="votes, or weight of votes, for a relevant grade")
    of: int | None = Field(default=None, ge=1, description="judges of the panel; checked")


class Negative(Section):
    """When a pair is not relevant."""

    at_least: Weight = Field(description="votes, or weight of votes, for a grade that is not relevant")


class ConsensusRule(Section):
    """A declared consensus rule."""

    positive: Positive
    negative: Negative
    weights: Mapping[str, Weight] = Field(default={}, description="judge -> weight of its vote; 1 where none is given")
    abstentions: Literal["open", "contested"] = Field(
        default="open",
        description="a judge that refused or could not be read: the pair is incomplete while that vote could decide it "
        "(open), or it is decided by the votes there are (contested); never a vote",
    )

    @property
    def name(self) -> str:
        """Return the name of the rule in tables and reports."""
        of = f" of {self.positive.of}" if self.positive.of else ""
        weighed = ", weighted" if self.weights else ""
        return f"{self.positive.at_least:g}{of}, negative {self.negative.at_least:g}{weighed}"

    def bound(self, panel: Sequence[str]) -> "VoteThresholds":
        """Return the rule for a panel; ConfigError if it does not fit, or if a pair could be both relevant and not."""
        if unknown := sorted({*self.weights} - {*panel}):
            raise ConfigError(f"{PLACE}.weights: {', '.join(unknown)} is no judge of the panel ({', '.join(panel)})")
        if self.positive.of not in (None, len(panel)):
            raise ConfigError(f"{PLACE}.positive.of: found {self.positive.of}, but the panel has {len(panel)} judges")
        for side, least in (("positive", self.positive.at_least), ("negative", self.negative.at_least)):
            if not self.weights and least != int(least):
                raise ConfigError(
                    f"{PLACE}.{side}.at_least: found {least:g}; votes without weights are whole numbers, so give one"
                )
        weights = {judge: self.weights.get(judge, 1.0) for judge in panel}
        total, for_, against = sum(weights.values()), self.positive.at_least, self.negative.at_least
        for side, least in (("positive", for_), ("negative", against)):
            if least > total + SLACK:
                raise ConfigError(f"{PLACE}.{side}.at_least: found {least:g}, but all votes together weigh {total:g}")
        if for_ + against <= total + SLACK:
            raise ConfigError(
                f"{PLACE}: {for_:g} votes for and {against:g} against can stand side by side ({total:g} in all); "
                f"raise one of the two, so that they sum to more than {total:g}"
            )
        return VoteThresholds(weights, for_, against, self.abstentions == "contested")


@dataclass(frozen=True)
class VoteThresholds:
    """A rule for one panel: weight of each vote, and minimum weight for and against."""

    weights: Mapping[str, float]
    for_: float
    against: float
    abstentions_close: bool = False
    """Refused and unparsed votes are final: they leave no pair incomplete."""
    splits_close: bool = False
    """A pair with votes on both sides is contested even if missing votes could decide it."""

    def sides(self, scale: Scale, silent: Sequence[pl.Expr]) -> "Sides":
        """Return the outcome of a `votes` table; `silent` holds, per judge of `weights`, where it abstained."""
        relevant = list(scale.relevant)
        votes = [(pl.col(judge), weight) for judge, weight in self.weights.items()]
        open_marks = [
            vote.is_null() & ~mark if self.abstentions_close else vote.is_null()
            for (vote, _), mark in zip(votes, silent, strict=True)
        ]
        yes = _sum(pl.when(vote.is_in(relevant)).then(weight).otherwise(0.0) for vote, weight in votes)
        no = _sum(
            pl.when(vote.is_not_null() & ~vote.is_in(relevant)).then(weight).otherwise(0.0) for vote, weight in votes
        )
        open_ = _sum(
            pl.when(mark).then(weight).otherwise(0.0) for mark, (_, weight) in zip(open_marks, votes, strict=True)
        )
        relevant_, against = yes >= self.for_ - SLACK, no >= self.against - SLACK
        may_be_relevant, may_be_against = yes + open_ >= self.for_ - SLACK, no + open_ >= self.against - SLACK
        # neither side can be reached any more, whatever the missing votes are
        closed = ~may_be_relevant & ~may_be_against
        split = (yes > 0) & (no > 0) if self.splits_close else pl.lit(False)
        return Sides(
            relevant_, against, ~relevant_ & ~against & (closed | split), relevant_ | against | closed, may_be_relevant
        )


@dataclass(frozen=True)
class Sides:
    """Outcome of a rule for each pair of a `votes` table, as boolean expressions."""

    relevant: pl.Expr
    against: pl.Expr
    contested: pl.Expr
    settled: pl.Expr
    """Missing votes cannot change the outcome; an `exact` cascade stops here."""
    may_be_relevant: pl.Expr
    """Relevant, or missing votes could still make it so."""


def unanimous(panel: Sequence[str]) -> VoteThresholds:
    """Return the rule that all judges must be on one side."""
    return VoteThresholds(dict.fromkeys(panel, 1.0), len(panel), len(panel))


def majority(panel: Sequence[str]) -> VoteThresholds:
    """Return the rule that more than half of the judges decide; other pairs with votes on both sides are contested."""
    needed = len(panel) // 2 + 1
    return VoteThresholds(dict.fromkeys(panel, 1.0), needed, needed, splits_close=True)


def _sum(terms: Iterable[pl.Expr]) -> pl.Expr:
    return reduce(add, terms)
