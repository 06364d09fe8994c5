"""Summary of a finished run: queries kept of queries read and why others fell out, labels, money, and what comes next.

Everything is read from the stages' reports and tables; a figure whose stage has not run is left out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from curate import figures
from curate.context import Report
from curate.files import read_json, read_table
from curate.run import Run
from curate.stages.export import NO_POSITIVE

MERGED = {"ingest": "equal to another", "mask": "equal to another once masked"}
Reports = Mapping[str, Report]


def summary(run: Run) -> list[str]:
    """Return the lines that a person needs when a benchmark has been written; none before that."""
    reports = {name: mark.report for name, (state, mark) in run.states().items() if mark and state == "done"}
    if not {"ingest", "judge", "resolve", "export"} <= reports.keys():
        return []
    return [*_queries(run.folder, reports), *_labels(run.folder, reports), _paid(reports), _next(run.folder, reports)]


def _queries(folder: Path, reports: Reports) -> Iterator[str]:
    """Yield how many of the queries that were read are exported, and how many fell out for which reason."""
    reasons = Counter({MERGED[stage]: _fact(reports, stage, "merged_queries") for stage in MERGED if stage in reports})
    for stage in ("ingest", "diversify", "export"):
        lost = read_table(folder / stage, "dropped").filter(pl.col("table") == "queries") if stage in reports else None
        if lost is not None:
            reasons.update(lost.filter((pl.col("reason") == NO_POSITIVE) | (stage != "export"))["reason"].to_list())
    kept = _fact(reports, "export", "queries")
    why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common() if count)
    yield f"queries: {kept:,} of {kept + reasons.total():,} are exported{f'; left out: {why}' if why else ''}"
    if drawn := _fact(reports, "ingest", "queries_left_out"):
        yield f"  {drawn:,} more were not taken, by ingest.ids, ingest.sample or ingest.part"


def _labels(folder: Path, reports: Reports) -> Iterator[str]:
    """Yield the counts of the published verdicts."""
    counts = dict(read_table(folder / "resolve", "verdicts").group_by("verdict").len().iter_rows())
    pairs, positives = sum(counts.values()), _fact(reports, "export", "qrels")
    named = [f"{counts[name]:,} {name}" for name in ("not relevant", "contested", "incomplete") if counts.get(name)]
    mean = positives / _fact(reports, "export", "queries")
    yield f"labels: {positives:,} positives ({mean:.1f} per query); of {pairs:,} judged pairs {', '.join(named)}"


def _paid(reports: Reports) -> str:
    """Return what the run has cost so far, per currency, and which stages used models without a price."""
    spent: dict[str, float] = {}
    for report in reports.values():
        currency = str(report.facts.get("currency") or "")
        spent[currency] = spent.get(currency, 0.0) + (report.cost or 0.0)
    known = ", ".join(f"{_amount(cost)} {currency}".strip() for currency, cost in sorted(spent.items()) if cost)
    unknown = ", ".join(name for name, report in reports.items() if report.cost is None)
    return f"paid: {known or 'nothing'}{f', and what has no known price: {unknown}' if unknown else ''}"


def _amount(cost: float) -> str:
    return f"{cost:,.2f}" if cost >= 0.01 else f"{cost:.2g}"


def _next(folder: Path, reports: Reports) -> str:
    """Return the command that makes the labels worth more, by what the run lacks."""
    heuristic = reports["judge"].facts["heuristic"]
    assert isinstance(heuristic, list)
    if figures.only_heuristics(list(read_json(folder / "judge" / "panel.json")), heuristic):
        return "next: curate judge --models A,B,C --plan: heuristics judged, and prove nothing; see `curate models`"
    if not list((folder / "reviews").glob("*/design.json")):
        return "next: curate review export --plan: people check a sample, and say how right the labels are"
    return "next: curate review report: what people's answers prove of the labels"


def _fact(reports: Reports, stage: str, name: str) -> int:
    """Return a count that a stage reported; 0 if it does not count that."""
    value = reports[stage].facts.get(name, 0)
    assert isinstance(value, int)
    return value
