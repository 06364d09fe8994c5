"""Status of a run's stages, and summary of a finished run; nothing is written."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl

from curate.ask import billing
from curate.ask.billing import Bill
from curate.core.config import Json
from curate.core.errors import UserError
from curate.llm.exchange_rates import shown
from curate.pipeline import facts, legacy
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.facts import NO_POSITIVE, Reports, count
from curate.pipeline.mark import Mark
from curate.review.desk import desks
from curate.runs.runner import Run, State
from curate.system.files import read_json, read_table
from curate.view import run_figures

JUDGING = ("judged", "paid")
BELOW = (*JUDGING, "notes")
"""Keys of `status_rows` that are printed as sentences below the table of stages."""


def status_rows(run: Run) -> list[dict[str, Json]]:
    """Return one row per stage: stage, state, rows_in, rows_out, dropped, seconds, cost, currency (None if unknown).

    For the stage `judge`, `judged` is the share of ratings that exist, and `paid` is currency -> amount; before its
    first end both are from the ledger, of a partial stage from its report. A completed one has only `paid`, and only
    with several currencies. `notes` are the notes of the stage's report.
    """
    rows: list[dict[str, Json]] = []
    for name, (state, mark) in run.states().items():
        row: dict[str, Json] = {"stage": name, "state": state}
        for key in ("rows_in", "rows_out", "dropped"):
            row[key] = getattr(mark.report, key) if mark else None
        rows.append(
            {
                **row,
                "seconds": mark.seconds if mark else None,
                "cost": mark.report.cost if mark else None,
                "currency": mark.report.facts.get("currency") if mark else None,
                **(_judging(run, state, mark) if name == "judge" else dict.fromkeys(JUDGING)),
                "notes": list(mark.report.notes) if mark else [],
            }
        )
    return rows


def _judging(run: Run, state: State, mark: Mark | None) -> dict[str, Json]:
    """Return `judged` and `paid` of a judge stage."""
    if mark is not None:
        counts, bills = mark.report.facts, cast("Mapping[str, Bill]", mark.report.facts.get("bill") or {})
        failed, rows = cast("int", counts.get("failed", 0)), mark.report.rows_in
        judged = 1 - failed / rows if state == "partial" and rows else None
        paid = billing.by_currency(bills)
        return {"judged": judged, "paid": paid if state == "partial" or len(paid) > 1 else None}
    from curate.ask.quote import progress

    try:
        share_and_cost = progress(cast("JudgeConfig", run.pipeline.sections["judge"]), run.beside("judge"))
    except UserError:  # nothing can be judged yet
        return dict.fromkeys(JUDGING)
    return dict(zip(JUDGING, share_and_cost, strict=True))


def spent(rows: Sequence[Mapping[str, Json]]) -> dict[str, float]:
    """Return currency -> total cost, over the rows of `status_rows`; unknown costs are left out."""
    total: dict[str, float] = {}
    for row in rows:
        stage_cost = {str(row["currency"]): row["cost"]} if row["cost"] and row["currency"] else {}
        for currency, amount in cast("Mapping[str, float]", row["paid"] or stage_cost).items():
            total[currency] = total.get(currency, 0.0) + amount
    return dict(sorted(total.items()))


def told(rows: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return lines on unfinished judging, on costs in several currencies, and the notes, for rows of `status_rows`."""
    lines = []
    for row in rows:
        paid = cast("Mapping[str, float] | None", row["paid"]) or {}
        clauses = [" and ".join(shown(amount, currency) for currency, amount in paid.items()) + " paid"] if paid else []
        if row["judged"] is not None:
            clauses.insert(0, f"{cast('float', row['judged']):.0%} of the ratings are there")
        lines += [f"{row['stage']}: {', '.join(clauses)}"] if clauses else []
        lines += [f"{row['stage']}: note: {note}" for note in cast("Sequence[str]", row["notes"])]
    return lines


# Summary of a finished run: queries exported and dropped by reason, labels, cost, and the next command.

PAPER_PANEL = "deepseek-v3,doubao-1.5-pro,gpt-4o"
SAMPLE = 200
"""Size of the sample for review that the summary proposes, in pairs."""


def summary(run: Run) -> list[str]:
    """Return the lines of a finished run's summary: queries, labels, cost, next command; [] before the export."""
    reports = {name: mark.report for name, (state, mark) in run.states().items() if mark and state == "done"}
    if not {"ingest", "judge", "resolve", "export"} <= reports.keys():
        return []
    folder, spent = run.folder, facts.paid(reports)
    return [*_queries(folder, reports), *_labels(folder, reports), spent, _next(folder, reports)]


def _queries(folder: Path, reports: Reports) -> Iterator[str]:
    """Yield lines with the number of exported queries, and of those left out by reason."""
    reasons = facts.left_out(reports, lambda stage, table: read_table(folder / stage, table))
    lost = read_table(folder / "export", "dropped").filter(pl.col("table") == "queries")
    reasons[NO_POSITIVE] += int((lost["reason"] == NO_POSITIVE).sum())
    yield facts.queries(count(reports, "export", "queries"), reasons)
    if drawn := count(reports, "ingest", "queries_left_out"):
        yield f"  {drawn:,} more were not taken, by ingest.ids, ingest.sample or ingest.part"
    if unpooled := count(reports, "pool", "queries_not_drawn"):
        yield f"  {unpooled:,} more were not drawn for a pool, by pool.queries"


def _labels(folder: Path, reports: Reports) -> Iterator[str]:
    """Yield lines with the counts of published labels, and what decided them."""
    counts = dict(read_table(folder / "resolve", "verdicts").group_by("verdict").len().iter_rows())
    pairs, positives = sum(counts.values()), count(reports, "export", "qrels")
    by_verdict = [
        f"{counts[name]:,} {name}" for name in ("not relevant", "contested", "incomplete") if counts.get(name)
    ]
    mean = positives / count(reports, "export", "queries")
    composition = (
        f"of {pairs:,} judged pairs {', '.join(by_verdict)}"
        if by_verdict
        else f"all {pairs:,} judged pairs are relevant"
    )
    yield f"labels: {positives:,} positives ({mean:.1f} per query); {composition}"
    decided: Any = reports["resolve"].facts
    if brought := decided.get("legacy"):
        yield f"  {legacy.sentence(brought)} ({folder / 'resolve' / legacy.FILE})"
    if held := (decided.get("accept") or {}).get("threshold"):
        yield f"  of which people call {held['bound']:.1%} wrong at most: grades add up to {held['least']} or more"
    if settled := decided.get("settle"):
        yield f"  one judge, {settled['judge']}, decided {settled['pairs']:,} of the pairs that the panel contested"


def _next(folder: Path, reports: Reports) -> str:
    """Return a line that proposes the next command for better labels, by what the run lacks."""
    name, heuristic = shlex.quote(str(folder)), reports["judge"].facts["heuristic"]
    assert isinstance(heuristic, list)
    if run_figures.only_heuristics(list(read_json(folder / "judge" / "panel.json")), heuristic):
        return (
            f"next: curate judge --run {name} --models {PAPER_PANEL} --plan: heuristics judged, and prove nothing; "
            "see `curate models`"
        )
    if all(answers.sample.of_pilot for answers in desks(folder)):
        return (
            f"next: curate review export --run {name} --size {SAMPLE} --plan: people check a sample, and say how right "
            "the labels are"
        )
    return f"next: curate review report --run {name}: what people's answers prove of the labels"
