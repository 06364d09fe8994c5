"""One asking of a panel: its seats at a pool, the settings that it is asked by, and the order of a cascade."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from curate.ask.panel_state import JudgeState, LlmState, PanelState, ReplayState
from curate.core.records import STOPPED
from curate.llm.cost import Price
from curate.panel import cascade
from curate.panel.reading import ReadingTest
from curate.pipeline.judge_config import Config
from curate.pipeline.stage import Context

LEAST = 1000
"""Pairs that every judge of a cascade rates, at least: agreement is measured on them."""
ANSWER_SHARE = 0.05
"""Share of answers in the tokens of a call, by which prices are weighed: prompts hold passages, answers letters."""


@dataclass(frozen=True)
class PanelRun:
    """All that asking a panel needs, from the plan to the ledger."""

    table: PanelState
    seats: Sequence[JudgeState]
    """Each with what it still has to rate."""
    config: Config
    context: Context
    watched: bool = True
    """Whether a judge that does not read its prompts is stopped; False where that is what is measured, or allowed."""

    def paid(self) -> list[LlmState]:
        """Return the seats of the language models."""
        return [seat for seat in self.seats if isinstance(seat, LlmState)]

    def asked(self) -> list[LlmState]:
        """Return the seats of the language models that still have to rate something."""
        return [seat for seat in self.paid() if seat.work]

    def at(self, *seats: JudgeState) -> "PanelRun":
        """Return the run with these seats alone."""
        return replace(self, seats=seats)

    def of(self, wanted: pl.DataFrame) -> "PanelRun":
        """Return the run with what its seats have not rated of the wanted pairs."""
        return self.at(*(self.table.left(seat, wanted) for seat in self.seats))

    def watch(self, seat: LlmState) -> ReadingTest | None:
        """Return the test of whether a judge reads its prompts; None where it is not to be tested."""
        return self.table.reading_test(seat) if self.watched else None

    def ratings(self) -> pl.DataFrame:
        """Return the `ratings` of all seats, by what the ledger holds now."""
        return pl.concat([self.table.snapshot(seat) for seat in self.seats])

    def sample(self) -> pl.DataFrame:
        """Return the pairs that every judge rates in a cascade."""
        return cascade.sample(self.table.pool.pairs, self.config.cascade_sample, LEAST, self.context.seed)

    def in_order(self) -> "PanelRun":
        """Return the run with its seats as a cascade asks them: free ones, then by price, unknown prices last.

        The price alone decides, not what is left to ask, so a cascade that goes on has the order that it began with. Of
        judges that replay a cascade the one that was stopped least goes first, as when it was recorded.
        """
        return self.at(*sorted(self.seats, key=_turn))

    def turns(self) -> Iterator[tuple[JudgeState, pl.DataFrame]]:
        """Yield the seats in the order of a cascade, each with the pairs that it is wanted for.

        What the ledger holds of a seat by the time that the next one is taken decides what that one is wanted for.
        """
        assert self.config.cascade is not None
        pairs, ratings, always = self.table.pool.pairs, list[pl.DataFrame](), self.sample()
        policy, scale = self.context.policy, self.table.rubric.scale
        for seat in self.in_order().seats:
            wanted = cascade.wanted(pairs, ratings, self.config.cascade, always, self.config.models, policy, scale)
            yield self.table.left(seat, wanted), wanted
            ratings.append(self.table.snapshot(seat))

    def narrowed(self) -> "PanelRun":
        """Return the run with what a cascade may still ask its seats, as far as the ledger knows; as it is without."""
        if self.config.cascade is None:
            return self
        left = {seat.name: seat for seat, _ in self.turns()}
        return self.at(*(left[seat.name] for seat in self.seats))


def _turn(seat: JudgeState) -> tuple[float, int]:
    if isinstance(seat, ReplayState):
        return 0.0, len(seat.rows.filter(pl.col("status") == STOPPED))
    return weight(seat.settings.price) if isinstance(seat, LlmState) else 0.0, 0


def weight(price: Price | None) -> float:
    """Return a judge's turn in a cascade: its price per token, answers weighed; unknown prices come last."""
    return ANSWER_SHARE * price.output + (1 - ANSWER_SHARE) * price.input if price else float("inf")
