"""One run of a panel over a pool: judges, settings, and the order of a cascade."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from curate.ask.panel_state import JudgeState, LlmState, PanelState, ReplayState
from curate.core.records import STOPPED
from curate.llm.cost import Price
from curate.panel import cascade
from curate.panel.reading import ReadingTest
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context

LEAST = 1000
"""Pairs that every judge of a cascade rates, at least: agreement is measured on them."""
ANSWER_SHARE = 0.05
"""Share of answers in the tokens of a call, to weigh prices: prompts hold passages, answers letters."""


@dataclass(frozen=True)
class PanelRun:
    """All inputs of a panel run, from the plan to the ledger."""

    table: PanelState
    seats: Sequence[JudgeState]
    """The judges, each with its missing ratings."""
    config: JudgeConfig
    context: Context
    watched: bool = True
    """Whether a judge that does not read its prompts is stopped; False where that is what is measured, or allowed."""

    def paid(self) -> list[LlmState]:
        """Return the language models."""
        return [state for state in self.seats if isinstance(state, LlmState)]

    def asked(self) -> list[LlmState]:
        """Return the language models with missing ratings."""
        return [state for state in self.paid() if state.work]

    def at(self, *seats: JudgeState) -> "PanelRun":
        """Return the run with these judges only."""
        return replace(self, seats=seats)

    def of(self, pairs: pl.DataFrame) -> "PanelRun":
        """Return the run, restricted to missing ratings of the given pairs."""
        return self.at(*(self.table.left(state, pairs) for state in self.seats))

    def watch(self, state: LlmState) -> ReadingTest | None:
        """Return the test that detects whether a judge reads its prompts; None if it is not tested."""
        return self.table.reading_test(state) if self.watched else None

    def ratings(self) -> pl.DataFrame:
        """Return the `ratings` of all judges, from the current ledger."""
        return pl.concat([self.table.snapshot(state) for state in self.seats])

    def sample(self) -> pl.DataFrame:
        """Return the pairs that every judge rates in a cascade."""
        return cascade.sample(self.table.pool.pairs, self.config.cascade_sample, LEAST, self.context.seed)

    def in_order(self) -> "PanelRun":
        """Return the run with its judges in the order of a cascade: free ones, then by price, unknown prices last.

        Missing ratings do not matter, so that a resumed cascade keeps its order. Judges that replay a cascade are
        sorted by their `stopped` pairs, fewest first, which is the order of the recording.
        """
        return self.at(*sorted(self.seats, key=_turn))

    def turns(self) -> Iterator[tuple[JudgeState, pl.DataFrame]]:
        """Yield the judges in the order of a cascade, each with the pairs that it must rate.

        Lazy: the pairs of a judge follow from the ratings of those before it in the ledger when it is requested.
        """
        assert self.config.cascade is not None
        pairs, ratings, always = self.table.pool.pairs, list[pl.DataFrame](), self.sample()
        policy, scale = self.context.policy, self.table.rubric.scale
        for state in self.in_order().seats:
            requested = cascade.wanted(pairs, ratings, self.config.cascade, always, self.config.models, policy, scale)
            yield self.table.left(state, requested), requested
            ratings.append(self.table.snapshot(state))

    def narrowed(self) -> "PanelRun":
        """Return the run with the ratings that a cascade may still ask for, by the current ledger."""
        if self.config.cascade is None:
            return self
        by_name = {state.name: state for state, _ in self.turns()}
        return self.at(*(by_name[state.name] for state in self.seats))


def _turn(state: JudgeState) -> tuple[float, int]:
    if isinstance(state, ReplayState):
        return 0.0, len(state.rows.filter(pl.col("status") == STOPPED))
    return weight(state.settings.price) if isinstance(state, LlmState) else 0.0, 0


def weight(price: Price | None) -> float:
    """Return a judge's sort key in a cascade: price per token, weighted by `ANSWER_SHARE`; infinity if unknown."""
    return ANSWER_SHARE * price.output + (1 - ANSWER_SHARE) * price.input if price else float("inf")
