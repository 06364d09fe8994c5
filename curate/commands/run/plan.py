"""What an embedding server of a vendor would be sent by diversification and dense retrieval."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from curate.ask import build, settling
from curate.ask.forecast import PoolSize, forecast, times
from curate.ask.quote import quote
from curate.commands.export import Config as ExportConfig
from curate.commands.mask import Config as MaskConfig
from curate.commands.run.unfiltered import BEFORE, Unfiltered, of_run, of_source
from curate.core.config import Json, Settings
from curate.core.errors import DataError, UserError
from curate.core.records import FIELDS
from curate.llm.budget import CostEstimate
from curate.llm.cost import Price, tokens
from curate.llm.exchange_rates import Rate, line
from curate.pipeline import stages
from curate.pipeline.configs import PoolConfig
from curate.pipeline.judge_config import Config as JudgeConfig
from curate.pipeline.judge_config import Gate
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Consent, Context
from curate.retrieval.encoders.presets import with_presets
from curate.runs.runner import Run

API = "api"
BATCH = 64


def planned_embedding(pipeline: Pipeline, stage: str, texts: Unfiltered) -> dict[str, CostEstimate]:
    """Return encoder -> what it would be sent in a stage, each text once; it has no price.

    Of an encoder that an earlier stage asks too nothing is left: vectors are kept.
    """
    encoders = with_presets(cast("dict[str, Settings]", pipeline.head.encoders))
    here = {name for name in _used(pipeline, stage) if _asks(encoders.get(name, {}))}
    before = _used(pipeline, "diversify") if stage != "diversify" else set()
    sample = texts.sample()
    counts = {"queries": (texts.queries, sample.queries), "documents": (texts.documents, sample.documents)}
    sent = sum(round(number * sum(map(tokens, each)) / max(len(each), 1)) for number, each in counts.values())
    found = {}
    for name in sorted(here - before):
        size = int(str(encoders[name].get("batch_size", BATCH)))
        calls = sum(math.ceil(number / size) for number, _ in counts.values())
        found[name] = CostEstimate(calls, sent, 0, None)
    return found


def _asks(settings: Settings) -> bool:
    """Say whether an encoder of these settings is a server that somebody else runs."""
    return settings.get("kind") == API and not settings.get("local")


def _used(pipeline: Pipeline, stage: str) -> set[str]:
    """Return the names of the encoders that a stage uses."""
    section = pipeline.sections[stage].model_dump()
    if stage == "diversify":
        return {section["encoder"]} if section["enabled"] else set()
    defined = pipeline.head.retrievers
    return {str(defined.get(name, {}).get("encoder", name)) for name in section["retrievers"]}


# What each stage of a pipeline would ask of models: exactly where its input is there, else by forecast.

IN_ALL = "in all"
DONE = ("done", "unchecked")


@dataclass(frozen=True)
class PlannedCost:
    """What one model would be asked for one purpose of a stage."""

    stage: str
    asked: str
    """The model, with what it is asked for."""
    estimate: CostEstimate | None
    """None where it cannot be counted."""
    least: float | None
    """What it costs at least, in a cascade; else what it costs. None without a price."""
    exact: bool = False
    """Whether it is counted in the stage's own input."""


Lines = list[PlannedCost]


def stages_that_ask(work: Run) -> list[str]:
    """Return the stages of a pipeline that may ask a model and have not done it yet."""
    states = work.states()
    return [
        name for name in work.pipeline.head.stages if name in (*_EXACT, *_FORECASTS) and states[name][0] not in DONE
    ]


def exact(work: Run, name: str) -> Lines | None:
    """Return what a stage itself plans; None while it has not got its input, or where it has no plan of its own."""
    plan = _EXACT.get(name) or (_planned(name) if name in stages.KIND_COMMANDS else None)
    try:
        work.need_ancestors(name)
    except UserError:
        return None
    cascade = name == "judge" and cast("JudgeConfig", work.pipeline.sections[name]).cascade is not None
    return _cost_lines(name, work.look(name, plan), exact=True, cascade=cascade) if plan else None


def _planned(name: str) -> Callable[[Any, Context], list[dict[str, Json]]]:
    found: Callable[[Any, Context], list[dict[str, Json]]] = stages.module(name).planned
    return found


def forecasted(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    """Return what a stage would ask of models at most, and what is assumed for it, a sentence each."""
    return _FORECASTS.get(name, _by_itself)(work, name, texts)


def _mask_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    section = cast("MaskConfig", work.pipeline.sections[name])
    factors = {"queries": 1.0, "corpus": texts.documents / max(texts.written, 1)}
    found: dict[str, CostEstimate] = {}
    for table in FIELDS if section.enabled else ():
        for label, each in stages.module("mask").planned(section, texts.context, table).items():
            part = times(each, factors[table])
            found[label] = found[label].plus(part) if label in found else part
    return [PlannedCost(name, label, each, each.cost) for label, each in found.items()], []


def _pool_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    found = planned_embedding(work.pipeline, name, texts)
    said = "embedding models have no price setting: look it up at the vendor" if found else ""
    return [PlannedCost(name, label, each, None) for label, each in found.items()], [said] if said else []


def _judge_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    section, pools = cast("JudgeConfig", work.pipeline.sections[name]), _pools(work, texts)
    found = forecast(section, texts.context, texts.sample(), pools)
    own = _of_reranking(work)
    said = [
        f"{pools.queries:,} queries{own} have pools of {pools.documents:,} documents, asked {section.batch} at a time",
        *(["the controls of the gate fill a prompt each at most"] if section.gate.positives else []),
        *(["a cascade asks every judge for all pairs at most"] if section.cascade else []),
    ]
    return [PlannedCost(name, each.judge, each.estimate, each.cost_least) for each in found], said if found else []


def _of_reranking(work: Run) -> str:
    """Return how many of the judged queries reranking and retrieval get, where reranking has a query set of its own."""
    export = work.pipeline.sections.get("export")
    queries = cast("ExportConfig", export).rerank.queries if export else None
    judged = cast("PoolConfig", work.pipeline.sections["pool"]).queries
    return f" ({judged - queries:,} for retrieval, {queries:,} for reranking)" if queries and judged else ""


def _settle_lines(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    judge = settling.judge_of(texts.context)
    if judge is None:
        return [], []
    alone = settling.settings(judge, texts.context).model_copy(update={"gate": Gate()})
    found = forecast(alone, texts.context, texts.sample(), _pools(work, texts))
    said = "the judge that settles is asked for what the panel contests, which is every pair at most and none at least"
    return [PlannedCost(name, each.judge, each.estimate, each.estimate.cost and 0.0) for each in found], [said]


def _by_itself(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    """Return what a stage plans with texts that nothing has filtered; it may need more than these."""
    section: Any = work.pipeline.sections[name]
    try:
        lines = _cost_lines(name, _planned(name)(section, texts.context), exact=False)
    except UserError as error:
        if not isinstance(error, DataError) and {*stages.stage(name).after} <= {*BEFORE}:
            raise  # a wrong name; of a stage behind others it may be that these have not run
        return [PlannedCost(name, "not known yet", None, None)], [str(error)]
    again = getattr(section, "again", 0) if lines else 0
    said = f"what breaks a rule is asked for again, up to {again} times, which is not counted"
    return lines, [said] if again else []


def _pools(work: Run, texts: Unfiltered) -> PoolSize:
    return PoolSize.most(cast("PoolConfig", work.pipeline.sections["pool"]), texts.queries, texts.documents)


def _cost_lines(stage: str, rows: Sequence[Mapping[str, Any]], *, exact: bool, cascade: bool = False) -> Lines:
    """Return the rows of a stage's own plan."""
    found = []
    for row in rows:
        label, answers = row.get("judge", row.get("question")), row.get("answer_tokens", row.get("output_tokens"))
        cost = row.get("online", row.get("cost"))
        if label != IN_ALL:
            estimate = CostEstimate(row["calls"], row["prompt_tokens"], answers, cost, row["currency"] or "USD")
            least = row["cascade_least"] if cascade else cost
            found.append(PlannedCost(stage, label, estimate, least, exact))
    return found


_EXACT: Mapping[str, Callable[..., list[dict[str, Json]]]] = {"judge": quote, "resolve": _planned("resolve")}
_FORECASTS: Mapping[str, Callable[[Run, str, Unfiltered], tuple[Lines, list[str]]]] = {
    "mask": _mask_lines,
    "diversify": _pool_lines,
    "pool": _pool_lines,
    "judge": _judge_lines,
    "resolve": _settle_lines,
    **dict.fromkeys(stages.KIND_COMMANDS, _by_itself),
}


# The bill of a whole pipeline: every stage that asks a model, in one currency, with what had to be assumed.

Row = dict[str, Json]
Rates = Mapping[str, Rate | None]
"""Currency of a price -> its rate into that of the plan; None where there is none."""
NAMING = {"models", "model", "generator", "panel", "settle"}
"""Settings of stages that name language models."""


@dataclass(frozen=True)
class RunPlan:
    """What a pipeline would ask of models, and what that costs at most."""

    rows: Sequence[Row]
    """`stage`, `asked`, `calls`, `prompt_tokens`, `answer_tokens`, `least` and `most` in `currency`, `exact`."""
    prices: Sequence[Row]
    """Per model: `model`, `input` and `output` per million tokens, `currency`, `date`, `source`; None where unknown."""
    least: float | None
    """What all rows come to; None where one is unknown."""
    most: float | None
    known: float | None
    """What those rows come to at most whose price is known; None where there is no rate."""
    currency: str | None
    """Of all amounts but those of a model whose price has no rate into it."""
    assumed: Sequence[str]
    """What was assumed, a sentence each."""
    unknown: Sequence[str]
    """What is not known, and how to set it, a sentence each."""


def plan(work: Run) -> RunPlan:
    """Return what is left of a pipeline to pay for; nothing is sent or kept.

    A stage whose input is there plans itself, all others are forecast from the texts of the source: at most so many
    queries and documents, for filters only drop some.
    """
    work.need_consistent()
    work.remember_plan()
    work.consent = Consent(currency=work.consent.currency)
    lines, assumed = list[PlannedCost](), list[str]()
    waiting = []
    for name in stages_that_ask(work):
        found = exact(work, name)
        lines += found or []
        waiting += [name] if found is None else []
    if not waiting:
        return _summed(work, lines, assumed)
    if all(work.states().get(name, ("missing",))[0] in DONE for name in ("ingest", "mask", "diversify")):
        return _summed(work, *_forecast(work, waiting, of_run(work), lines))
    with of_source(work) as texts:
        return _summed(work, *_forecast(work, waiting, texts, lines))


def _forecast(
    work: Run, names: Sequence[str], texts: Unfiltered, lines: Sequence[PlannedCost]
) -> tuple[list[PlannedCost], list[str]]:
    found, assumed = list(lines), [texts.said]
    for name in names:
        more, said = forecasted(work, name, texts)
        found += more
        assumed += [f"{name}: {each}" for each in said]
    order = work.pipeline.head.stages
    return sorted(found, key=lambda each: order.index(each.stage)), assumed


def _summed(work: Run, lines: Sequence[PlannedCost], assumed: Sequence[str]) -> RunPlan:
    """Return the plan with all amounts in one currency, as far as rates lead there."""
    context = work.beside("ingest")
    models = dict(_models(work.pipeline, {each.stage for each in lines}, context))
    paid = {each.estimate.currency for each in lines if each.estimate and each.estimate.cost}
    into = context.consent.currency or context.currency or context.rates.common(paid)
    rates = {code: context.rates.find(code, into) for code in paid} if into else {}
    rows = [_row(each, rates) for each in lines]
    priced = [(each, each.estimate) for each in lines if each.estimate and each.estimate.cost is not None]
    most = context.rates.total([(found.cost, found.currency) for _, found in priced], into).amount
    least = context.rates.total([(each.least, found.currency) for each, found in priced], into).amount
    whole = len(priced) == len(lines)
    return RunPlan(
        rows,
        [_price(name, price, rates) for name, price in models.items()],
        least if whole else None,
        most if whole else None,
        most,
        into,
        [*assumed, *(rate.said() for rate in rates.values() if rate and rate.date)],
        list(_unknown(lines, models, into, rates)),
    )


def _row(found: PlannedCost, rates: Rates) -> Row:
    estimate = found.estimate
    rate = rates.get(estimate.currency) if estimate else None
    most, least = (_amount(each, rate) for each in (estimate.cost if estimate else None, found.least))
    return {
        "stage": found.stage,
        "asked": found.asked,
        "calls": estimate.calls if estimate else None,
        "prompt_tokens": estimate.prompt_tokens if estimate else None,
        "answer_tokens": estimate.output_tokens if estimate else None,
        "least": least,
        "most": most,
        "currency": None if most is None or estimate is None else rate.into if rate else estimate.currency,
        "exact": found.exact,
    }


def _price(name: str, price: Price | None, rates: Rates) -> Row:
    if price is None:
        return {"model": name, "input": None, "output": None, "currency": None, "date": None, "source": None}
    rate = rates.get(price.currency)
    costs_ = {each: _amount(getattr(price, each), rate) for each in ("input", "output")}
    read: Row = {"date": str(price.date), "source": price.source}
    return {"model": name, **costs_, "currency": rate.into if rate else price.currency, **read}


def _amount(amount: float | None, rate: Rate | None) -> float | None:
    return None if amount is None else round(amount * (rate.value if rate else 1.0), 4)


def _models(pipeline: Pipeline, asking: Collection[str], context: Context) -> Iterator[tuple[str, Price | None]]:
    """Yield the language models that stages name, with their prices."""
    for stage in stages.KNOWN:
        section = pipeline.sections["consensus" if stage == "resolve" else stage].model_dump(include=NAMING)
        named = [each for value in section.values() for each in ([value] if isinstance(value, str) else value or ())]
        for name in named if stage in asking else ():
            if (model := build.language_model(context, name)) is not None:
                yield name, model.price


def _unknown(
    lines: Sequence[PlannedCost], models: Mapping[str, Price | None], into: str | None, rates: Rates
) -> Iterator[str]:
    for name in (name for name, price in models.items() if price is None):
        price = f"{{input: PRICE, output: PRICE, currency: {into or 'USD'}, date: YYYY-MM-DD}}"
        yield f"{name} has no price; set the one that you pay per million tokens: --set 'judges.{name}.price={price}'"
    for each in lines:
        if each.estimate is None:
            yield f"{each.stage}: what it asks is not known before the stages that it reads have run"
    if lacking := sorted(code for code, rate in rates.items() if rate is None):
        yield f"no rate leads from {', '.join(lacking)} to {into}: write `{line(lacking, str(into))}` into the file"
    several = sorted({each.estimate.currency for each in lines if each.estimate and each.estimate.cost})
    if into is None and several:
        rates_line = line(several, several[0])
        yield f"prices are in {' and '.join(several)}: write `currency: {several[0]}` and `{rates_line}` into the file"
