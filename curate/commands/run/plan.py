"""Cost estimate of a pipeline's model calls: from a stage's input if it exists, else forecast from the source."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from curate.ask import build, settling
from curate.ask.billing import PlanRow
from curate.ask.forecast import PoolSize, forecast, times
from curate.ask.quote import quote
from curate.commands.export import Config as ExportConfig
from curate.commands.mask import Config as MaskConfig
from curate.commands.run.unfiltered import BEFORE, Unfiltered, of_run, of_source
from curate.core.config import Settings
from curate.core.errors import DataError, UserError
from curate.core.figures import ABSENT, Record, figure
from curate.core.records import FIELDS, FILTERED
from curate.llm.budget import CostEstimate
from curate.llm.cost import Price, tokens
from curate.llm.exchange_rates import Rate, line, rounded_up
from curate.pipeline import stages
from curate.pipeline.configs import Gate, JudgeConfig, PoolConfig
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Consent, Context
from curate.retrieval.encoders.presets import with_presets
from curate.runs.runner import Run

API = "api"
BATCH = 64


def planned_embedding(pipeline: Pipeline, stage: str, texts: Unfiltered) -> dict[str, CostEstimate]:
    """Return remote encoder of a stage -> estimated calls and tokens, without a price; every text is encoded once.

    Encoders of an earlier stage are left out, since their vectors are cached.
    """
    encoders = with_presets(cast("dict[str, Settings]", pipeline.head.encoders))
    remote = {name for name, settings in encoders.items() if settings.get("kind") == API and not settings.get("local")}
    used = _encoders_of(pipeline, stage) & remote
    earlier = _encoders_of(pipeline, FILTERED) if stage != FILTERED else set()
    sample = texts.sample()
    counts = {"queries": (texts.queries, sample.queries), "documents": (texts.documents, sample.documents)}
    sent = sum(
        round(number * sum(map(tokens, examples)) / max(len(examples), 1)) for number, examples in counts.values()
    )
    estimates = {}
    for name in sorted(used - earlier):
        size = int(str(encoders[name].get("batch_size", BATCH)))
        calls = sum(math.ceil(number / size) for number, _ in counts.values())
        estimates[name] = CostEstimate(calls, sent, 0, None)
    return estimates


def _encoders_of(pipeline: Pipeline, stage: str) -> set[str]:
    """Return the names of the encoders that the stage `diversify` or `pool` uses."""
    section = pipeline.sections[stage].model_dump()
    if stage == FILTERED:
        return {section["encoder"]} if section["enabled"] else set()
    defined = pipeline.head.retrievers
    return {str(defined.get(name, {}).get("encoder", name)) for name in section["retrievers"]}


# Model calls of each stage: exact if its input exists, else a forecast.

IN_ALL = "in all"
DONE = ("done", "unchecked")


@dataclass(frozen=True)
class PlannedCost:
    """Estimated calls and cost of one model for one purpose of a stage."""

    stage: str
    asked: str
    """Name of the model and its purpose."""
    estimate: CostEstimate | None
    """Estimated calls, tokens and cost; None if they cannot be estimated."""
    least: float | None
    """Minimum cost, lower than the estimate only with a cascade; None without a price."""
    exact: bool = False
    """Whether the estimate is from the stage's own input, not a forecast from the source."""


Lines = list[PlannedCost]


def stages_that_ask(work: Run) -> list[str]:
    """Return the stages that are not done and may call a model, in the order of the pipeline."""
    states = work.states()
    return [
        name for name in work.pipeline.head.stages if name in (*_EXACT, *_FORECASTS) and states[name][0] not in DONE
    ]


def exact(work: Run, name: str) -> Lines | None:
    """Return a stage's estimate from its own input; None if that is missing or the stage has no estimate."""
    plan = _EXACT.get(name) or (_stage_plan(name) if name in stages.BUILDING else None)
    try:
        work.need_ancestors(name)
    except UserError:
        return None
    cascade = name == "judge" and cast("JudgeConfig", work.pipeline.sections[name]).cascade is not None
    batch = work.consent.batch
    return _cost_lines(name, work.look(name, plan), exact=True, cascade=cascade, batch=batch) if plan else None


def _stage_plan(name: str) -> Callable[[Any, Context], list[PlanRow]]:
    planned: Callable[[Any, Context], list[PlanRow]] = stages.module(name).planned
    return planned


def forecasted(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    """Return the forecast of a stage's model calls from texts of the source, an upper bound, and its assumptions."""
    return _FORECASTS.get(name, _stage_lines)(work, name, texts)


def _mask_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    section = cast("MaskConfig", work.pipeline.sections[name])
    factors = {"queries": 1.0, "corpus": texts.documents / max(texts.written, 1)}
    estimates: dict[str, CostEstimate] = {}
    for table in FIELDS if section.enabled else ():
        for label, estimate in stages.module("mask").planned(section, texts.context, table).items():
            scaled = times(estimate, factors[table])
            estimates[label] = estimates[label].plus(scaled) if label in estimates else scaled
    return [PlannedCost(name, label, estimate, estimate.cost) for label, estimate in estimates.items()], []


def _pool_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    estimates = planned_embedding(work.pipeline, name, texts)
    note = "embedding models have no price setting: look it up at the vendor" if estimates else ""
    return [PlannedCost(name, label, estimate, None) for label, estimate in estimates.items()], [note] if note else []


def _judge_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    section, pools = cast("JudgeConfig", work.pipeline.sections[name]), _pools(work, texts)
    forecasts = forecast(section, texts.context, texts.sample(), pools)
    export = work.pipeline.sections.get("export")
    reranked = cast("ExportConfig", export).rerank.queries if export else None
    judged = cast("PoolConfig", work.pipeline.sections["pool"]).queries
    uses = f" ({judged - reranked:,} for retrieval, {reranked:,} for reranking)" if reranked and judged else ""
    notes = [
        f"{pools.queries:,} queries{uses} have pools of {pools.documents:,} documents, asked {section.batch} at a time",
        *(["the controls of the gate fill a prompt each at most"] if section.gate.positives else []),
        *(["a cascade asks every judge for all pairs at most"] if section.cascade else []),
    ]
    lines = [PlannedCost(name, judge.judge, judge.estimate, judge.cost_least) for judge in forecasts]
    return lines, notes if lines else []


def _settle_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    judge = settling.judge_of(texts.context)
    if judge is None:
        return [], []
    alone = settling.settings(judge, texts.context).model_copy(update={"gate": Gate()})
    forecasts = forecast(alone, texts.context, texts.sample(), _pools(work, texts))
    note = "the judge that settles is asked for what the panel contests, which is every pair at most and none at least"
    return [PlannedCost(name, row.judge, row.estimate, row.estimate.cost and 0.0) for row in forecasts], [note]


def _stage_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    """Return a stage's own estimate on unfiltered texts, or a line "not known yet" if it needs more than texts."""
    section: Any = work.pipeline.sections[name]
    try:
        lines = _cost_lines(name, _stage_plan(name)(section, texts.context), exact=False)
    except UserError as error:
        if not isinstance(error, DataError) and {*stages.stage(name).after} <= {*BEFORE}:
            raise  # a wrong name; of a stage behind others it may be that these have not run
        return [PlannedCost(name, "not known yet", None, None)], [str(error)]
    repeats = getattr(section, "again", 0) if lines else 0
    note = f"what breaks a rule is asked for again, up to {repeats} times, which is not counted"
    return lines, [note] if repeats else []


def _pools(work: Run, texts: Unfiltered) -> PoolSize:
    return PoolSize.most(cast("PoolConfig", work.pipeline.sections["pool"]), texts.queries, texts.documents)


def _cost_lines(
    stage: str, rows: Sequence[PlanRow], *, exact: bool, cascade: bool = False, batch: bool = False
) -> Lines:
    """Return the rows of a stage's own estimate, without its total, as lines of the pipeline's estimate."""
    lines = []
    for row in rows:
        label, tokens = row.judge or row.question or "", row.answer_tokens or row.output_tokens or 0
        cost = row.cost if row.online is ABSENT else row.online
        if batch and row.batches not in (ABSENT, None):
            cost = row.batches
        if label != IN_ALL:
            estimate = CostEstimate(row.calls, row.prompt_tokens, tokens, cost, row.currency or "USD")
            least = row.cascade_least if cascade else cost
            lines.append(PlannedCost(stage, label, estimate, least, exact))
    return lines


_EXACT: Mapping[str, Callable[..., list[PlanRow]]] = {"judge": quote, "resolve": _stage_plan("resolve")}
_FORECASTS: Mapping[str, Callable[[Run, str, Unfiltered], tuple[Lines, list[str]]]] = {
    "mask": _mask_lines,
    FILTERED: _pool_lines,
    "pool": _pool_lines,
    "judge": _judge_lines,
    "resolve": _settle_lines,
    **dict.fromkeys(stages.BUILDING, _stage_lines),
}


# Cost of a whole pipeline in one currency, with assumptions.

Rates = Mapping[str, Rate | None]
"""Currency of a price -> exchange rate to the currency of the estimate, None if unknown."""
NAMING = {"models", "model", "generator", "panel", "settle"}
"""Names of settings of stages whose values are names of language models."""


class PlannedCalls(Record, schema_name="asked"):
    """Calls of one model for one purpose of a stage."""

    stage: str = figure("stage that calls the model")
    asked: str = figure("model and its task in the stage")
    calls: int | None = figure("number of calls; null if it cannot be estimated yet")
    prompt_tokens: int | None = figure("prompt tokens, an estimate")
    answer_tokens: int | None = figure("output tokens at most")
    least: float | None = figure("cost at least, in a cascade", digits=2)
    most: float | None = figure("cost at most; null without a price", digits=2)
    currency: str | None = figure("currency of the cost")
    exact: bool = figure("whether calls were counted in the stage's input; else they are forecast from the source")


class ModelPrice(Record, schema_name="price"):
    """Price of a model."""

    model: str = figure("name of the model")
    input: float | None = figure("price of a million input tokens; null if unknown", digits=4)
    output: float | None = figure("price of a million output tokens; null if unknown", digits=4)
    currency: str | None = figure("currency of the price")
    date: str | None = figure("day on which it was read")
    source: str | None = figure("page on which it was read")


class RunPlan(Record, schema_name="bill"):
    """What all stages of a pipeline would ask of models (--plan), and what that costs at most."""

    rows: tuple[PlannedCalls, ...] = figure("calls by stage and model; empty if nothing is left to send")
    prices: tuple[ModelPrice, ...] = figure("prices of all models that would be asked")
    least: float | None = figure("total cost at least, in a cascade; null if a cost is unknown")
    most: float | None = figure("total cost at most; null if a cost is unknown")
    known: float | None = figure(
        "total cost at most of the rows with a price; null if rates to one currency are missing"
    )
    currency: str | None = figure("currency of the totals")
    assumed: tuple[str, ...] = figure("assumptions, one sentence each")
    unknown: tuple[str, ...] = figure("unknown costs and the setting for each, one sentence each")


def plan(work: Run) -> RunPlan:
    """Return the estimated remaining cost of a pipeline; nothing is sent or written.

    A stage whose input exists is estimated from it. Others are forecast from all texts of the source; this is an upper
    bound, since filters only drop texts.
    """
    work.need_consistent()
    work.remember_plan()
    work.consent = Consent(currency=work.consent.currency, batch=work.consent.batch)
    lines, assumed = list[PlannedCost](), list[str]()
    waiting = []
    for name in stages_that_ask(work):
        stage_lines = exact(work, name)
        lines += stage_lines or []
        waiting += [name] if stage_lines is None else []
    if not waiting:
        return _summed(work, lines, assumed)
    if all(work.states().get(name, ("missing",))[0] in DONE for name in ("ingest", "mask", FILTERED)):
        return _summed(work, *_forecast(work, waiting, of_run(work), lines))
    with of_source(work) as texts:
        return _summed(work, *_forecast(work, waiting, texts, lines))


def _forecast(
    work: Run, names: Sequence[str], texts: Unfiltered, lines: Sequence[PlannedCost]
) -> tuple[list[PlannedCost], list[str]]:
    all_lines, assumed = list(lines), [texts.said]
    for name in names:
        stage_lines, notes = forecasted(work, name, texts)
        all_lines += stage_lines
        assumed += [f"{name}: {note}" for note in notes]
    order = work.pipeline.head.stages
    return sorted(all_lines, key=lambda planned: order.index(planned.stage)), assumed


def _summed(work: Run, lines: Sequence[PlannedCost], assumed: Sequence[str]) -> RunPlan:
    """Return the estimate with amounts converted to one currency, as far as exchange rates are known."""
    context = work.beside("ingest")
    models = dict(_models(work.pipeline, {planned.stage for planned in lines}, context))
    paid = {planned.estimate.currency for planned in lines if planned.estimate and planned.estimate.cost}
    currency = context.consent.currency or context.currency or context.rates.common(paid)
    rates = {code: context.rates.find(code, currency) for code in paid} if currency else {}
    rows = [_row(planned, rates) for planned in lines]
    priced = [
        (planned, planned.estimate) for planned in lines if planned.estimate and planned.estimate.cost is not None
    ]
    most = context.rates.total([(estimate.cost, estimate.currency) for _, estimate in priced], currency).amount
    least = context.rates.total([(planned.least, estimate.currency) for planned, estimate in priced], currency).amount
    complete = len(priced) == len(lines)
    return RunPlan(
        rows=tuple(rows),
        prices=tuple(_price(name, price, rates) for name, price in models.items()),
        least=least if complete else None,
        most=most if complete else None,
        known=most,
        currency=currency,
        assumed=(*assumed, *(rate.said() for rate in rates.values() if rate and rate.date)),
        unknown=tuple(_unknown(lines, models, currency, rates)),
    )


def _row(planned: PlannedCost, rates: Rates) -> PlannedCalls:
    estimate = planned.estimate
    rate = rates.get(estimate.currency) if estimate else None
    cost = estimate.cost if estimate else None
    most = None if cost is None else rounded_up(cost * (rate.value if rate else 1.0), 4)
    least = _amount(planned.least, rate)
    return PlannedCalls(
        stage=planned.stage,
        asked=planned.asked,
        calls=estimate.calls if estimate else None,
        prompt_tokens=estimate.prompt_tokens if estimate else None,
        answer_tokens=estimate.output_tokens if estimate else None,
        least=least,
        most=most,
        currency=None if most is None or estimate is None else rate.into if rate else estimate.currency,
        exact=planned.exact,
    )


def _price(name: str, price: Price | None, rates: Rates) -> ModelPrice:
    if price is None:
        return ModelPrice(name, None, None, None, None, None)
    rate = rates.get(price.currency)
    currency = rate.into if rate else price.currency
    return ModelPrice(
        name, _amount(price.input, rate), _amount(price.output, rate), currency, str(price.date), price.source
    )


def _amount(amount: float | None, rate: Rate | None) -> float | None:
    return None if amount is None else round(amount * (rate.value if rate else 1.0), 4)


def _models(pipeline: Pipeline, asking: Collection[str], context: Context) -> Iterator[tuple[str, Price | None]]:
    """Yield name and price of the language models in the settings of stages."""
    for stage in stages.KNOWN:
        section = pipeline.sections["consensus" if stage == "resolve" else stage]
        chosen = [getattr(section, setting, None) or () for setting in sorted(NAMING)]
        names = [name for names in chosen for name in ([names] if isinstance(names, str) else names)]
        for name in names if stage in asking else ():
            if (model := build.language_model(context, name)) is not None:
                yield name, model.price


def _unknown(
    lines: Sequence[PlannedCost], models: Mapping[str, Price | None], currency: str | None, rates: Rates
) -> Iterator[str]:
    for name in (name for name, price in models.items() if price is None):
        price = f"{{input: PRICE, output: PRICE, currency: {currency or 'USD'}, date: YYYY-MM-DD}}"
        yield f"{name} has no price; set the one that you pay per million tokens: --set 'judges.{name}.price={price}'"
    for planned in lines:
        if planned.estimate is None:
            yield f"{planned.stage}: what it asks is not known before the stages that it reads have run"
    if lacking := sorted(code for code, rate in rates.items() if rate is None):
        rates_line = line(lacking, str(currency))
        yield f"no rate leads from {', '.join(lacking)} to {currency}: write `{rates_line}` into the file"
    several = sorted({planned.estimate.currency for planned in lines if planned.estimate and planned.estimate.cost})
    if currency is None and several:
        rates_line = line(several, several[0])
        yield f"prices are in {' and '.join(several)}: write `currency: {several[0]}` and `{rates_line}` into the file"
