"""Outcome of a run: exported and dropped queries, and cost."""

from collections import Counter
from collections.abc import Callable, Mapping

import polars as pl

from curate.llm.exchange_rates import shown
from curate.pipeline.pooled import pooled
from curate.pipeline.stage import Context, Report

NO_GAIN = "no graded label gains anything"

MERGED = {"ingest": "equal to another", "mask": "equal to another once masked"}
"""Stage -> reason of dropped queries that have no row."""
NO_POSITIVE = "no positive"
"""Reason of queries that are in no export."""
Reports = Mapping[str, Report]


def left_out(reports: Reports, read: Callable[[str, str], pl.DataFrame]) -> Counter[str]:
    """Return reason -> number of queries dropped before judging; `read` returns a stage's table."""
    reasons = Counter({MERGED[stage]: count(reports, stage, "merged_queries") for stage in MERGED if stage in reports})
    for stage in ("mask", "diversify"):
        if stage in reports:
            reasons.update(read(stage, "dropped").filter(pl.col("table") == "queries")["reason"].to_list())
    return reasons


def queries(kept: int, reasons: Counter[str]) -> str:
    """Return the line with the numbers of exported queries and of dropped ones by reason."""
    why = ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common() if number)
    return f"queries: {kept:,} of {kept + reasons.total():,} are exported{f'; left out: {why}' if why else ''}"


def paid(reports: Reports) -> str:
    """Return the line with the cost of stages, per currency, and the stages with models without a price."""
    spent: dict[str, float] = {}
    for report in reports.values():
        currency = str(report.facts.get("currency") or "")
        spent[currency] = spent.get(currency, 0.0) + (report.cost or 0.0)
    amounts = ", ".join(shown(cost, currency) for currency, cost in sorted(spent.items()) if cost)
    unknown = ", ".join(name for name, report in reports.items() if report.cost is None)
    return f"paid: {amounts or 'nothing'}{f', and what has no known price: {unknown}' if unknown else ''}"


def nothing_left(context: Context, stages: tuple[str, ...]) -> list[str]:
    """Return these lines for a run without any positive; `stages` are those that have run."""
    reports = {name: report for name in stages if (report := context.report(name)) is not None}
    judged = len(pooled(context))
    return [queries(0, left_out(reports, context.read) + Counter({NO_POSITIVE: judged})), paid(reports)]


def count(reports: Reports, stage: str, name: str) -> int:
    """Return a count that a stage reported; 0 if it does not count that."""
    number = reports[stage].facts.get(name, 0)
    assert isinstance(number, int)
    return number
