"""Status of a run's stages, and summary of a finished run; nothing is written."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl

from curate.ask import billing
from curate.ask.billing import Bill
from curate.core.errors import UserError
from curate.core.figures import Record, figure
from curate.pipeline import facts, legacy
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.facts import Reports, count
from curate.pipeline.mark import Mark
from curate.review.desk import desks
from curate.runs.runner import Run, State
from curate.system.files import read_json, read_table
from curate.view import run_figures


class StageStatus(Record, schema_name="row"):
    """A row per stage of the run, in the order of the pipeline."""

    stage: str = figure("name of the stage")
    state: State = figure("state of the stage: done, or why it has to run")
    rows_in: int | None = figure("rows that it read")
    rows_out: int | None = figure("rows that it wrote")
    dropped: int | None = figure("dropped rows")
    seconds: float | None = figure("wall-clock time", digits=1)
    cost: float | None = figure("cost so far; null if unknown or paid in several currencies")
    currency: str | None = figure("currency of the cost")
    judged: float | None = figure(
        "share of the ratings that is complete, for an unfinished judge stage", digits=0, percent=True
    )
    paid: Mapping[str, float] | None = figure("currency -> cost so far")
    notes: tuple[str, ...] = figure("notices of the finished stage")


def status_rows(run: Run) -> list[StageStatus]:
    """Return one row per stage.

    `judged` and `paid` are of the stage `judge`; before its first end both are from the ledger, of a partial stage from
    its report. A completed one has only `paid`, and only with several currencies.
    """
    rows = []
    for name, (state, mark) in run.states().items():
        judged, paid = _judging(run, state, mark) if name == "judge" else (None, None)
        report = mark.report if mark else None
        rows.append(
            StageStatus(
                stage=name,
                state=state,
                rows_in=report.rows_in if report else None,
                rows_out=report.rows_out if report else None,
                dropped=report.dropped if report else None,
                seconds=mark.seconds if mark else None,
                cost=report.cost if report else None,
                currency=cast("str | None", report.facts.get("currency")) if report else None,
                judged=judged,
                paid=paid,
                notes=tuple(report.notes) if report else (),
            )
        )
    return rows


def _judging(run: Run, state: State, mark: Mark | None) -> tuple[float | None, Mapping[str, float] | None]:
    """Return `judged` and `paid` of a judge stage."""
    if mark is not None:
        counts, bills = mark.report.facts, cast("Mapping[str, Bill]", mark.report.facts.get("bill") or {})
        failed, rows = cast("int", counts.get("failed", 0)), mark.report.rows_in
        judged = 1 - failed / rows if state == "partial" and rows else None
        paid = billing.by_currency(bills)
        return judged, paid if state == "partial" or len(paid) > 1 else None
    from curate.ask.quote import progress

    try:
        return progress(cast("JudgeConfig", run.pipeline.sections["judge"]), run.beside("judge"))
    except UserError:  # nothing can be judged yet
        return None, None


def spent(rows: Sequence[StageStatus]) -> dict[str, float]:
    """Return currency -> total cost, over the rows of `status_rows`; unknown costs are left out."""
    total: dict[str, float] = {}
    for row in rows:
        stage_cost = {row.currency: row.cost} if row.cost and row.currency else {}
        for currency, amount in (row.paid or stage_cost).items():
            total[currency] = total.get(currency, 0.0) + amount
    return dict(sorted(total.items()))


# Summary of a finished run: queries exported and dropped by reason, labels, cost, and the next command.

PANEL = "deepseek,doubao-1.5-pro,qwen-plus"
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
    lost = read_table(folder / "export", "dropped").filter(pl.col("table") == "queries")["reason"]
    reasons.update(lost.filter(lost.is_in(facts.NOT_EXPORTED)))
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
    queries = count(reports, "export", "queries")
    mean = f" ({positives / queries:.1f} per exported query)" if queries else ""
    composition = (
        f"of {pairs:,} judged pairs {', '.join(by_verdict)}"
        if by_verdict
        else f"all {pairs:,} judged pairs are relevant"
    )
    yield f"labels: {positives:,} positives{mean}; {composition}"
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
        return f"next: curate judge --run {name} --models {PANEL} --plan: labels are heuristic; see `curate models`"
    if all(answers.sample.of_pilot for answers in desks(folder)):
        return (
            f"next: curate review export --run {name} --size {SAMPLE} --plan: people check a sample, and say how right "
            "the labels are"
        )
    return f"next: curate review report --run {name}: what people's answers prove of the labels"
