"""What a run has paid, by the ledger: a bill per judge in its vendor's currency, and the total by the rates."""

from collections.abc import Mapping

import polars as pl

from curate.config import Json
from curate.context import Context
from curate.cost import Price
from curate.ledger import Ledger
from curate.rates import Total

Bill = dict[str, Json]
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
    """Return what several bills come to in the currency of caps and totals."""
    amounts = [(each["cost"], each["currency"]) for each in bills.values()]
    budget = context.consent.budget
    return context.rates.total(amounts, context.currency or (budget.currency or None))  # type: ignore[arg-type]


def facts(found: Total) -> dict[str, Json]:
    """Return what a stage's report keeps of a total beside its amount."""
    return {"currency": found.currency, "rates": [rate.plain() for rate in found.rates]}
