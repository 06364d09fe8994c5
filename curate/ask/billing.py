"""Bills of a run, from the ledger, and totals of plans, per currency and converted into one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.core.figures import ABSENT, Record, figure
from curate.ledger import Ledger, default_path
from curate.llm.cost import Price
from curate.llm.exchange_rates import Amount, Rates, Total, rounded_up
from curate.llm.providers.settings import ProviderConfig
from curate.pipeline.stage import Context

Bill = dict[str, Json]
LATENCY_S = 5.0
"""Assumed latency in seconds of a judge that was never asked."""
COUNTED = ("calls", "prompt_tokens", "cached_tokens", "output_tokens")


class PlanRow(Record, schema_name="plan"):
    """The plan (--plan), a row per model and question; empty if nothing is left to send."""

    judge: str | None = figure(
        'the judge; "in all" in the last of several rows, which is their sum', optional=True, default=None
    )
    question: str | None = figure(
        'what the model is asked for; "in all" in the last of several rows, which is their sum',
        optional=True,
        default=None,
    )
    calls: int = figure("requests that are left to send", default=0)
    prompt_tokens: int = figure("prompt tokens, an estimate", default=0)
    prefix_tokens: int | None = figure("prompt tokens that are the same in every call", optional=True, default=None)
    answer_tokens: int | None = figure("output tokens at most, of judges", optional=True, default=None)
    output_tokens: int | None = figure("output tokens at most, of questions", optional=True, default=None)
    online: float | None = figure("cost at most if sent online; null without a price", optional=True, default=ABSENT)
    batches: float | None = figure(
        "cost at most by the provider's batches; null if it has none", optional=True, default=ABSENT
    )
    cost: float | None = figure("cost at most; null without a price", optional=True, default=ABSENT)
    currency: str | None = figure("currency of the costs; null without a price", default=None)
    minutes: float | None = figure("estimated minutes online", optional=True, default=ABSENT)
    cascade_least: float | None = figure(
        "cost at least in a cascade, whose further judges grade only its sample", optional=True, default=ABSENT
    )

    def printed(self) -> dict[str, Json]:
        """Return the row for a table of two decimals, with upper bounds of costs rounded up."""
        bounds = {name: getattr(self, name) for name in ("online", "batches", "cost")}
        rounded = {name: rounded_up(cost) for name, cost in bounds.items() if isinstance(cost, float)}
        return {**self.to_json(), **rounded}


def bills(ledger: Ledger, context: Context, judges: Mapping[str, tuple[str, Price | None]]) -> dict[str, Bill]:
    """Return judge -> its bill in this run: COUNTED, cost and currency; a sum is None if a call lacks the number.

    `judges` is name -> digest and price. A call without a currency was paid in that of the price.
    """
    calls = ledger.bill(context.run_id, [digest for digest, _ in judges.values()])
    calls_by_judge = {name: calls.filter(pl.col("judge_digest") == digest) for name, (digest, _) in judges.items()}
    return {name: _bill(rows, judges[name][1], context) for name, rows in calls_by_judge.items() if len(rows)}


def _bill(calls: pl.DataFrame, price: Price | None, context: Context) -> Bill:
    usual = price.currency if price else None
    paid = [(cost, currency or usual) for cost, currency in calls.select("cost", "currency").iter_rows()]
    total = context.rates.total(paid, usual)
    counts = {name: None if calls[name].has_nulls() else int(calls[name].sum()) for name in COUNTED}
    return {**counts, "cost": total.amount, "currency": total.currency or usual}


def total(bills: Mapping[str, Bill], context: Context) -> Total:
    """Return the total of several bills.

    Its currency is that of the pipeline, else that of the bills; that of the budget only where these leave it open, for
    another command may have another budget.
    """
    amounts: list[Any] = [(bill["cost"], bill["currency"]) for bill in bills.values()]
    paid = {str(bill["currency"]) for bill in bills.values() if bill["cost"] and bill["currency"]}
    into = context.currency or context.rates.common(paid) or context.consent.budget.policy.currency
    return context.rates.total(amounts, into or None)


def planned(amounts: Sequence[Amount], context: Context) -> Total:
    """Return the total of plans, in the currency of the budget, else the pipeline's."""
    return context.rates.total(amounts, context.consent.currency or context.currency)


def by(total: Total) -> str:
    """Return the rates by which a total was converted, with their days, as the end of a clause; empty for none."""
    return "".join(f"; {rate.said()}" for rate in total.rates)


def by_currency(bills: Mapping[str, Bill]) -> dict[str, float]:
    """Return currency -> amount paid in it, sorted; bills without a cost or a currency are left out."""
    amounts: dict[str, float] = {}
    for bill in filter(None, bills.values()):
        cost, currency = bill["cost"], bill["currency"]
        if isinstance(cost, float) and cost and isinstance(currency, str):
            amounts[currency] = amounts.get(currency, 0.0) + cost
    return dict(sorted(amounts.items()))


LEAST = 1e-6
"""Least difference of two sums of money that is not an error of their last digits."""


def further(place: Path | str, run_id: str, counted: Mapping[str, float], rates: Rates) -> dict[str, float]:
    """Return currency -> amount that a run has paid beyond what is `counted`, by its ledger; {} if nothing.

    Beyond the cost of its stages these are checks, such as of the judges, and answers that no stage uses any more.
    """
    if not run_id or (isinstance(place, Path) and not place.exists()):
        return {}
    with Ledger(place) as ledger:
        costs = ledger.costs(run_id)
    beyond = {name: costs.get(name, 0.0) - counted.get(name, 0.0) for name in sorted({*costs, *counted})}
    converted = [name for name, amount in beyond.items() if amount <= -LEAST]
    if converted:  # the cost of a stage that paid in several currencies is counted in one of them
        total = rates.total(list(zip(beyond.values(), beyond, strict=True)), converted[0])
        beyond = {} if total.amount is None else {converted[0]: total.amount}
    return {name: amount for name, amount in beyond.items() if amount >= LEAST}


def beside_stages(context: Context, counted: Mapping[str, float]) -> dict[str, float]:
    """Return what `further` returns, for the run of a stage."""
    return further(context.ledger or default_path(context.home), context.run_id, counted, context.rates)


def facts(total: Total) -> dict[str, Json]:
    """Return a total as a stage's report stores it."""
    return {"total": total.amount, "currency": total.currency, "rates": [rate.plain() for rate in total.rates]}


def minutes(ledger: Ledger, judge_digest: str, settings: ProviderConfig, calls: int, tokens: int) -> float:
    """Return the estimated minutes of calls: calls x mean latency / concurrency, or longer by its rate limits.

    The latency is that of the judge's last calls in the ledger, LATENCY_S without any.
    """
    from curate.ledger.stats import latency

    seconds = latency(ledger, judge_digest, settings.timeout_s) or LATENCY_S
    limits = ((calls, settings.requests_per_minute), (tokens, settings.tokens_per_minute))
    bound = [amount / limit for amount, limit in limits if limit]
    return round(max(calls * seconds / settings.concurrency / 60, *bound, 0.0), 2)


def in_all(rows: Sequence[PlanRow], context: Context, money: Sequence[str]) -> list[PlanRow]:
    """Return the rows of a plan, followed by a row of totals if there are several; `minutes` is the longest.

    `money` are the columns with amounts in the `currency` of the row. A missing amount counts as the row's amount in
    the first of these columns: a judge without batches is asked online.
    """
    if len(rows) < 2:
        return list(rows)
    entries = [row.to_json() for row in rows]
    last: dict[str, Json] = dict.fromkeys(entries[0])
    for column in entries[0]:
        cells: list[Any] = [entry[column] for entry in entries]
        if column in money and any(cell is not None for cell in cells):
            paid: list[Any] = [
                (entry[money[0]] if entry[column] is None else entry[column], entry["currency"]) for entry in entries
            ]
            total = planned(paid, context)
            last[column] = None if total.amount is None else rounded_up(total.amount, 4)
            if last["currency"] is None and total.rates:
                context.tell(f"in all{by(total)}")
            last["currency"] = last["currency"] or total.currency
        elif column == "minutes":
            last[column] = max(cells)
        elif column not in (*money, "currency"):
            last[column] = sum(cells) if isinstance(cells[0], int) else "in all"
    return [*rows, PlanRow.from_json(last)]
