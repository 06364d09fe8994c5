"""Bills of a run by the ledger, and plans, per vendor's currency and in total."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.ledger import Ledger
from curate.llm.cost import Price
from curate.llm.exchange_rates import Amount, Total
from curate.llm.providers.settings import ProviderConfig
from curate.pipeline.stage import Context

Bill = dict[str, Json]
Row = dict[str, Json]
LATENCY_S = 5.0
"""Seconds that a call is taken to last to a judge that was never asked."""
COUNTED = ("calls", "prompt_tokens", "cached_tokens", "output_tokens")


def bills(ledger: Ledger, context: Context, judges: Mapping[str, tuple[str, Price | None]]) -> dict[str, Bill]:
    """Return judge -> what the run has paid for it: COUNTED, cost and currency, None where one call does not know.

    `judges` is name -> digest and price. Calls that do not know their currency were paid in that of the price.
    """
    found = ledger.bill(context.run_id, [digest for digest, _ in judges.values()])
    parts = {name: found.filter(pl.col("judge_digest") == digest) for name, (digest, _) in judges.items()}
    return {name: _bill(part, judges[name][1], context) for name, part in parts.items() if len(part)}


def _bill(part: pl.DataFrame, price: Price | None, context: Context) -> Bill:
    usual = price.currency if price else None
    paid = [(cost, currency or usual) for cost, currency in part.select("cost", "currency").iter_rows()]
    total = context.rates.total(paid, usual)
    counts = {name: None if part[name].has_nulls() else int(part[name].sum()) for name in COUNTED}
    return {**counts, "cost": total.amount, "currency": total.currency or usual}


def total(bills: Mapping[str, Bill], context: Context) -> Total:
    """Return what several bills come to.

    The currency is that of the pipeline, or of the prices; that of a cap, which another command may not have, counts
    only where these leave it open.
    """
    amounts: list[Any] = [(bill["cost"], bill["currency"]) for bill in bills.values()]
    paid = {str(bill["currency"]) for bill in bills.values() if bill["cost"] and bill["currency"]}
    into = context.currency or context.rates.common(paid) or context.consent.budget.policy.currency
    return context.rates.total(amounts, into or None)


def planned(amounts: Sequence[Amount], context: Context) -> Total:
    """Return what plans come to in all, in the currency that was named with the cap, else the pipeline's."""
    return context.rates.total(amounts, context.consent.currency or context.currency)


def by(found: Total) -> str:
    """Return the rates by which a total was converted, with their days, as the end of a clause; empty for none."""
    return "".join(f"; {rate.said()}" for rate in found.rates)


def by_currency(bills: Mapping[str, Bill]) -> dict[str, Json]:
    """Return currency -> what was paid in it; what a bill does not know is left out."""
    amounts: dict[str, float] = {}
    for bill in filter(None, bills.values()):
        cost, currency = bill["cost"], bill["currency"]
        if isinstance(cost, float) and cost and isinstance(currency, str):
            amounts[currency] = amounts.get(currency, 0.0) + cost
    return dict(sorted(amounts.items()))


def facts(found: Total) -> dict[str, Json]:
    """Return what a stage's report keeps of a total beside its amount."""
    return {"total": found.amount, "currency": found.currency, "rates": [rate.plain() for rate in found.rates]}


def minutes(ledger: Ledger, judge_digest: str, settings: ProviderConfig, calls: int, tokens: int) -> float:
    """Return about how long calls last: calls x mean latency / concurrency, or longer by the vendor's rate limits.

    The latency is that of the judge's last calls in the ledger, LATENCY_S without any.
    """
    from curate.ledger.stats import latency

    seconds = latency(ledger, judge_digest, settings.timeout_s) or LATENCY_S
    limits = ((calls, settings.requests_per_minute), (tokens, settings.tokens_per_minute))
    bound = [amount / limit for amount, limit in limits if limit]
    return round(max(calls * seconds / settings.concurrency / 60, *bound, 0.0), 2)


def in_all(rows: list[Row], context: Context, money: Sequence[str]) -> list[Row]:
    """Return the rows of a plan, behind several of them one of their sums; models are asked side by side.

    `money` are the columns that hold amounts in the `currency` of the row; an amount that is not there is taken from
    the first of them, for who has no batches is asked online.
    """
    if len(rows) < 2:
        return rows
    last: Row = dict.fromkeys(rows[0])
    for column in rows[0]:
        cells: list[Any] = [row[column] for row in rows]
        if column in money and any(cell is not None for cell in cells):
            paid: list[Any] = [(row[money[0]] if row[column] is None else row[column], row["currency"]) for row in rows]
            found = planned(paid, context)
            last[column] = None if found.amount is None else round(found.amount, 4)
            if last["currency"] is None and found.rates:
                context.tell(f"in all{by(found)}")
            last["currency"] = last["currency"] or found.currency
        elif column == "minutes":
            last[column] = max(cells)
        elif column not in (*money, "currency"):
            last[column] = sum(cells) if isinstance(cells[0], int) else "in all"
    return [*rows, last]
