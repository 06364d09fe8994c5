"""Summary of a finished run: queries exported and dropped by reason, labels, cost, and the next command.

Read from the stages' reports and tables; figures of stages that have not run are left out.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from curate.pipeline import facts, legacy
from curate.pipeline.facts import NO_POSITIVE, Reports, count
from curate.review.desk import desks
from curate.runs.runner import Run
from curate.system.files import read_json, read_table
from curate.view import run_figures

PAPER_PANEL = "deepseek-v3,doubao-1.5-pro,gpt-4o"
SAMPLE = 200
"""Size of the proposed sample of pairs."""


def summary(run: Run) -> list[str]:
    """Return the lines of the summary; [] before the export."""
    reports = {name: mark.report for name, (state, mark) in run.states().items() if mark and state == "done"}
    if not {"ingest", "judge", "resolve", "export"} <= reports.keys():
        return []
    folder, spent = run.folder, facts.paid(reports)
    return [*_queries(folder, reports), *_labels(folder, reports), spent, _next(folder, reports)]


def _queries(folder: Path, reports: Reports) -> Iterator[str]:
    """Yield the numbers of exported queries and of dropped ones by reason."""
    reasons = facts.left_out(reports, lambda stage, table: read_table(folder / stage, table))
    lost = read_table(folder / "export", "dropped").filter(pl.col("table") == "queries")
    reasons[NO_POSITIVE] += int((lost["reason"] == NO_POSITIVE).sum())
    yield facts.queries(count(reports, "export", "queries"), reasons)
    if drawn := count(reports, "ingest", "queries_left_out"):
        yield f"  {drawn:,} more were not taken, by ingest.ids, ingest.sample or ingest.part"
    if unpooled := count(reports, "pool", "queries_not_drawn"):
        yield f"  {unpooled:,} more were not drawn for a pool, by pool.queries"


def _labels(folder: Path, reports: Reports) -> Iterator[str]:
    """Yield the counts of the published verdicts."""
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
    """Return the most useful next command for better labels, by what the run lacks."""
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
