"""Cost forecast of judging before a pool exists: prompts of sample texts x pool sizes, with control pairs and cascade.

`quote` counts the same exactly once the pool exists.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from curate.ask import build
from curate.ask.engine import price_of
from curate.ask.judges.llm import LlmJudge
from curate.ask.panel_run import LEAST, weight
from curate.ask.seating import load_rubric
from curate.core.messages import Request
from curate.core.scale import Scale
from curate.llm.budget import CostEstimate, plan
from curate.llm.passages import cut
from curate.llm.token_rate import TokenRate
from curate.panel.controls import FAMILIES
from curate.pipeline.configs import JudgeConfig, PoolConfig
from curate.pipeline.stage import Context
from curate.review import drawing

KINDS = 3
"""Kinds of controls that need no people, one of each at a query."""
CONTROLS = "controls"
"""Purpose of the prompts of the gate, shown in plans, bills and progress."""


@dataclass(frozen=True)
class SampleTexts:
    """Texts of the first rows, taken as typical."""

    queries: Sequence[str]
    documents: Sequence[str]


@dataclass(frozen=True)
class PoolSize:
    """Number of queries with a pool, and maximum documents per pool."""

    queries: int
    documents: int

    @classmethod
    def most(cls, config: PoolConfig, queries: int, documents: int) -> "PoolSize":
        """Return the largest pools possible with so many queries and documents."""
        return cls(
            min(config.queries or queries, queries), min(config.size, config.depth * len(config.retrievers), documents)
        )


@dataclass(frozen=True)
class JudgeForecast:
    """Cost forecast of one language model."""

    judge: str
    """Its name, or `NAME, controls` for its controls, as in `quote`."""
    estimate: CostEstimate
    least: float
    """Share of the estimate that is certain to be asked: below 1 for the later judges of a cascade."""

    @property
    def cost_least(self) -> float | None:
        """Return what it costs at least; None without a price."""
        return None if self.estimate.cost is None else self.estimate.cost * self.least


def forecast(config: JudgeConfig, context: Context, texts: SampleTexts, pools: PoolSize) -> list[JudgeForecast]:
    """Return upper bounds for each language model of the panel: first the control pairs of all, then the pool.

    Calls are bounds; prompts are means over the sample, each of a full batch, and none where the sample is empty.
    """
    rubric = load_rubric(config, context)
    members = [(name, *build.judge(context, name, rubric)) for name in config.models]
    first = min(members, key=lambda member: weight(member[2].price) if member[2] else 0.0)[0]
    pairs = pools.queries * pools.documents
    sample = min(max(config.cascade_sample * pairs, LEAST), pairs)  # every judge of a cascade rates it
    later = sample / max(pairs, 1) if config.cascade else 1.0
    calls = pools.queries * math.ceil(pools.documents / config.batch)
    controls = _controls(config, rubric.scale, calls)
    control_forecasts, pool_forecasts = list[JudgeForecast](), list[JudgeForecast]()
    for name, judge, model in members:
        requests = list(_requests(judge, config, texts, pools.documents)) if isinstance(judge, LlmJudge) else []
        if model is None or not requests:
            continue
        sampled = plan(requests, price_of(model, context), TokenRate(model.tokens_a_han))
        if controls:
            control_forecasts.append(
                JudgeForecast(f"{name}, {CONTROLS}", times(sampled, controls / sampled.calls), 1.0)
            )
        share = 1.0 if name == first else later
        pool_forecasts.append(JudgeForecast(name, times(sampled, calls / sampled.calls), share))
    return [*control_forecasts, *pool_forecasts]


def times(estimate: CostEstimate, factor: float) -> CostEstimate:
    """Return an estimate scaled by a factor."""
    calls, prompt, output = (
        round(count * factor) for count in (estimate.calls, estimate.prompt_tokens, estimate.output_tokens)
    )
    return CostEstimate(
        calls, prompt, output, None if estimate.cost is None else estimate.cost * factor, estimate.currency
    )


def _requests(judge: LlmJudge, config: JudgeConfig, texts: SampleTexts, documents: int) -> Iterator[Request]:
    """Yield the prompts that the sample fills."""
    passages, batch = [cut(text, config.passage_tokens) for text in texts.documents], min(config.batch, documents)
    for query, start in zip(texts.queries, range(0, len(passages), max(batch, 1)), strict=False):
        yield judge.build(cut(query, config.query_tokens), passages[start : start + batch])


def _controls(config: JudgeConfig, scale: Scale, prompts: int) -> int:
    """Return the maximum number of prompts with control pairs: they fill half a prompt, which has one query.

    Without a qualification test they are the control pairs that need no assessors, for a pool of `prompts` prompts.
    """
    gate = config.gate
    if gate.positives is None:
        return config.control_queries(prompts) * math.ceil(KINDS / max(config.batch // 2, 1))
    labelled = drawing.known(gate.positives, scale)
    good = min(gate.size, labelled.filter(pl.col("expected").is_in(list(scale.relevant))).height)
    controls = good + gate.size + gate.adversarial * len(FAMILIES)
    return min(controls, labelled["query_id"].n_unique() + controls // max(config.batch // 2, 1))
