"""Price of a panel before anything is retrieved: from the size of pools and the texts of the first rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from curate.core.config import Settings
from curate.llm.budget import CostEstimate, plan, together
from curate.llm.exchange_rates import Rates
from curate.llm.passages import cut
from curate.llm.providers.presets import rates
from curate.panel.judges.llm import LlmJudge
from curate.runs.pipeline import Pipeline
from curate.stages.asking import build, seating
from curate.stages.configs import PoolConfig
from curate.stages.context import Context
from curate.stages.judge.config import Config as JudgeConfig


@dataclass(frozen=True)
class SampleTexts:
    """Texts of the first rows, which stand for all."""

    queries: Sequence[str]
    documents: Sequence[str]


@dataclass(frozen=True)
class PlanPrice:
    """What a panel would be asked for so many queries, and what that costs, by estimate."""

    queries: int
    judges: Sequence[tuple[str, CostEstimate]]
    total: CostEstimate | None
    """Of all judges; its cost is None where a price or a rate is unknown. None without a language model."""


def price(pipeline: Pipeline, texts: SampleTexts, queries: int, documents: int) -> PlanPrice:
    """Return what the language models of a pipeline would be asked for the pools of so many queries."""
    pool, judging = pipeline.sections["pool"], pipeline.sections["judge"]
    assert isinstance(pool, PoolConfig)
    assert isinstance(judging, JudgeConfig)
    head = pipeline.head
    definitions = {"encoders": head.encoders, "retrievers": head.retrievers, "judges": head.judges}
    context = Context(
        Path(), Path(), Path(), language=head.language, definitions=cast("dict[str, dict[str, Settings]]", definitions)
    )
    size = min(pool.size, documents)
    calls = queries * math.ceil(size / judging.batch)
    quotes = [(name, _quote(name, judging, context, texts, min(judging.batch, size), calls)) for name in judging.models]
    known = [(name, each) for name, each in quotes if each is not None]
    if not known:
        return PlanPrice(queries, [], None)
    amounts = [(each.cost, each.currency) for _, each in known]
    total = Rates(head.rates).over(rates()).total(amounts, head.currency)
    return PlanPrice(queries, known, together([each for _, each in known], total))


def _quote(
    name: str, config: JudgeConfig, context: Context, texts: SampleTexts, batch: int, calls: int
) -> CostEstimate | None:
    """Return what so many calls to a judge would use, by prompts of typical texts; None for a heuristic."""
    made, model = build.judge(context, name, seating.load_rubric(config, context))
    if model is None:
        return None
    assert isinstance(made, LlmJudge)
    passages = [cut(text, config.passage_tokens) for text in texts.documents]
    requests = [
        made.build(cut(query, config.query_tokens), passages[start : start + batch])
        for query, start in zip(texts.queries, range(0, len(passages), batch), strict=False)
    ]
    found = plan(requests, model.price)
    return _times(found, calls / len(requests)) if requests else None


def _times(found: CostEstimate, factor: float) -> CostEstimate:
    calls, prompt, output = (round(each * factor) for each in (found.calls, found.prompt_tokens, found.output_tokens))
    return CostEstimate(calls, prompt, output, None if found.cost is None else found.cost * factor, found.currency)
