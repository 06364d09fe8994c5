"""Forecast of judging before a pool exists: prompts of typical texts x the size of pools, with controls and cascade.

It is what `quote` counts exactly once the pool is there.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from curate.ask import build
from curate.ask.judges.llm import LlmJudge
from curate.ask.panel_run import LEAST, weight
from curate.ask.seating import load_rubric
from curate.core.messages import Request
from curate.core.scale import Scale
from curate.llm.budget import CostEstimate, plan
from curate.llm.passages import cut
from curate.llm.token_rate import TokenRate
from curate.panel.adversarial import FAMILIES
from curate.pipeline.configs import PoolConfig
from curate.pipeline.judge_config import Config
from curate.pipeline.stage import Context
from curate.review import drawing

KINDS = 3
"""Kinds of controls that need no people, one of each at a query."""
CONTROLS = "controls"
"""Purpose of the prompts of the gate, as plans, bills and progress show it."""


@dataclass(frozen=True)
class SampleTexts:
    """Texts of the first rows, which stand for all."""

    queries: Sequence[str]
    documents: Sequence[str]


@dataclass(frozen=True)
class PoolSize:
    """How many queries have a pool, and how many documents one holds, at most."""

    queries: int
    documents: int

    @classmethod
    def most(cls, config: PoolConfig, queries: int, documents: int) -> "PoolSize":
        """Return the largest pools that so many queries and documents can have."""
        return cls(
            min(config.queries or queries, queries), min(config.size, config.depth * len(config.retrievers), documents)
        )


@dataclass(frozen=True)
class JudgeForecast:
    """What a language model would be asked."""

    judge: str
    """Its name; that of its controls is another, as in `quote`."""
    estimate: CostEstimate
    least: float
    """Share of the estimate that is asked in any case: below 1 for the later judges of a cascade."""

    @property
    def cost_least(self) -> float | None:
        """Return what it costs at least; None without a price."""
        return None if self.estimate.cost is None else self.estimate.cost * self.least


def forecast(config: Config, context: Context, texts: SampleTexts, pools: PoolSize) -> list[JudgeForecast]:
    """Return what each language model of the panel would be asked at most: first the controls of all, then the pool.

    Calls are bounds; prompts are means over the sample, each of a full batch, and none where the sample is empty.
    """
    rubric = load_rubric(config, context)
    seats = [(name, *build.judge(context, name, rubric)) for name in config.models]
    first = min(seats, key=lambda seat: weight(seat[2].price) if seat[2] else 0.0)[0]
    later = _always(config, pools.queries * pools.documents) if config.cascade else 1.0
    calls = pools.queries * math.ceil(pools.documents / config.batch)
    controls = _controls(config, rubric.scale, calls)
    before, after = list[JudgeForecast](), list[JudgeForecast]()
    for name, judge, model in seats:
        requests = list(_requests(judge, config, texts, pools.documents)) if isinstance(judge, LlmJudge) else []
        if model is None or not requests:
            continue
        found = plan(requests, model.price, TokenRate(model.tokens_a_han))
        if controls:
            before.append(JudgeForecast(f"{name}, {CONTROLS}", times(found, controls / found.calls), 1.0))
        share = 1.0 if name == first else later
        after.append(JudgeForecast(name, times(found, calls / found.calls), share))
    return [*before, *after]


def times(found: CostEstimate, factor: float) -> CostEstimate:
    """Return an estimate of so many times as many calls."""
    calls, prompt, output = (round(each * factor) for each in (found.calls, found.prompt_tokens, found.output_tokens))
    return CostEstimate(calls, prompt, output, None if found.cost is None else found.cost * factor, found.currency)


def _requests(judge: LlmJudge, config: Config, texts: SampleTexts, documents: int) -> Iterator[Request]:
    """Yield the prompts that the sample fills."""
    passages, batch = [cut(text, config.passage_tokens) for text in texts.documents], min(config.batch, documents)
    for query, start in zip(texts.queries, range(0, len(passages), max(batch, 1)), strict=False):
        yield judge.build(cut(query, config.query_tokens), passages[start : start + batch])


def _always(config: Config, pairs: int) -> float:
    """Return the share of the pairs that every judge of a cascade rates."""
    return min(max(config.cascade_sample * pairs, LEAST), pairs) / max(pairs, 1)


def _controls(config: Config, scale: Scale, prompts: int) -> int:
    """Return how many prompts the controls fill at most: half of each, those of one query together.

    Without a gate they are those that need no people, beside so many prompts of the pool.
    """
    gate = config.gate
    if gate.positives is None:
        return config.control_queries(prompts) * math.ceil(KINDS / max(config.batch // 2, 1))
    known = drawing.known(gate.positives, scale)
    good = min(gate.size, known.filter(pl.col("expected").is_in(list(scale.relevant))).height)
    controls = good + gate.size + gate.adversarial * len(FAMILIES)
    return min(controls, known["query_id"].n_unique() + controls // max(config.batch // 2, 1))
