"""Price of a panel before anything is retrieved: from the size of pools and the texts of the first rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from curate.ask.forecast import JudgeForecast, PoolSize, SampleTexts, forecast
from curate.core.config import Settings
from curate.llm.budget import CostEstimate, together
from curate.llm.exchange_rates import Rates
from curate.llm.providers.presets import rates
from curate.pipeline.configs import PoolConfig
from curate.pipeline.judge_config import Config as JudgeConfig
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context


@dataclass(frozen=True)
class PlanPrice:
    """What a panel would be asked for so many queries, and what that costs, by estimate."""

    queries: int
    judges: Sequence[JudgeForecast]
    total: CostEstimate | None
    """Of all judges; its cost is None where a price or a rate is unknown. None without a language model."""
    least: float | None = None
    """What the total comes to if a cascade spares all that it may; None where the total is unknown."""


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
    found = forecast(judging, context, texts, PoolSize.most(pool, queries, documents))
    if not found:
        return PlanPrice(queries, [], None)
    known = Rates(head.rates).over(rates())
    total = known.total([(each.estimate.cost, each.estimate.currency) for each in found], head.currency)
    least = known.total([(each.cost_least, each.estimate.currency) for each in found], head.currency)
    return PlanPrice(queries, found, together([each.estimate for each in found], total), least.amount)
