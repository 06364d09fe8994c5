"""One run of a panel over a pool: judges, settings, the order of a cascade, and what each judge is asked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from curate.ask import rating
from curate.ask.engine import Order
from curate.ask.panel_state import JudgeState, LlmState, PanelState, ReplayState
from curate.ask.rating import TEXTS, Work, shown_digest
from curate.core.errors import ProviderError
from curate.core.messages import Reply
from curate.core.records import STOPPED
from curate.llm import client
from curate.llm.client.accounting import SentRequest
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

    def orders(self) -> "list[JudgeOrder]":
        """Return what each language model is asked."""
        return [JudgeOrder.of_judge(self, state) for state in self.paid()]

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


@dataclass(frozen=True, kw_only=True)
class JudgeOrder(Order[Work]):
    """The missing ratings of one judge.

    What is left is found by texts, without building a request. A prompt is cut out of the whole pool of its query, so a
    rated passage leaves its prompt and changes no other.
    """

    table: PanelState
    state: LlmState
    watched: bool

    @classmethod
    def of_judge(cls, run: PanelRun, state: LlmState) -> Self:
        """Return the order of a judge of a panel run."""
        return cls(
            name=f"judges.{state.name}",
            label=f"judges.{state.label}",
            command="`curate judge --batch`",
            settings=state.settings,
            account=client.Account(**vars(state.key), run=run.context.run_id),
            work=state.work,
            unit="pairs",
            mixed_models=run.config.mixed_models,
            canary=run.watched,
            table=run.table,
            state=state,
            watched=run.watched,
        )

    def place(self, prompt: Work) -> str:
        """Return the digest of the whole prompt, rated passages included."""
        return prompt.place

    def weight(self, prompt: Work) -> int:
        """Return the number of passages."""
        return len(prompt.passages)

    def left(self, prompts: Sequence[Work]) -> list[Work]:
        """Return the prompts without rated passages; those without any left are absent."""
        pairs = pl.DataFrame(
            [
                (shown_digest(prompt.query.text), shown_digest(passage.shown()), position, slot)
                for position, prompt in enumerate(prompts)
                for slot, passage in enumerate(prompt.passages)
            ],
            {**dict.fromkeys(TEXTS, pl.String), "prompt": pl.Int64, "slot": pl.Int64},
            orient="row",
        )
        standing = self.table.standing(self.state, pairs["query_digest"].unique())
        missing = rating.missing(pairs, standing, self.table.since)
        unrated = missing.group_by("prompt", maintain_order=True).agg("slot")
        return [
            replace(prompts[position], passages=tuple(prompts[position].passages[slot] for slot in slots))
            for position, slots in unrated.iter_rows()
        ]

    def tasks(self, prompts: Iterable[Work]) -> Iterator[client.Task]:
        """Yield the requests; a prompt whose reply had no grade is split in halves."""
        return self.table.tasks(self.state, prompts)

    def read(self, sent: SentRequest, reply: Reply) -> client.ReplyResult:
        """Return the ratings of a reply, by the digests of its texts."""
        return rating.reading(self.state.judge, self.state.key, sent.query_digest, sent.slots, reply)

    def failed(self, sent: SentRequest, error: ProviderError) -> client.ReplyResult:
        """Return the ratings that follow from a refusal."""
        return rating.failure(self.state.key, sent.query_digest, sent.slots, error)

    def watch(self) -> ReadingTest | None:
        """Return the test that detects whether the judge reads its prompts; None if it is not tested."""
        return self.table.reading_test(self.state) if self.watched else None
