"""The bill of a whole pipeline: every stage that asks a model, in one currency, with what had to be assumed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from curate.ask import build
from curate.commands.run import costs
from curate.commands.run.costs import PlannedCost
from curate.commands.run.unfiltered import Unfiltered, of_run, of_source
from curate.core.config import Json
from curate.llm.cost import Price
from curate.llm.exchange_rates import Rate, line
from curate.pipeline import stages
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Consent, Context
from curate.runs.runner import Run

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
    for name in costs.asking(work):
        found = costs.exact(work, name)
        lines += found or []
        waiting += [name] if found is None else []
    if not waiting:
        return _summed(work, lines, assumed)
    if all(work.states().get(name, ("missing",))[0] in costs.DONE for name in ("ingest", "mask", "diversify")):
        return _summed(work, *_forecast(work, waiting, of_run(work), lines))
    with of_source(work) as texts:
        return _summed(work, *_forecast(work, waiting, texts, lines))


def _forecast(
    work: Run, names: Sequence[str], texts: Unfiltered, lines: Sequence[PlannedCost]
) -> tuple[list[PlannedCost], list[str]]:
    found, assumed = list(lines), [texts.said]
    for name in names:
        more, said = costs.forecasted(work, name, texts)
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
