"""Status of a run's stages, and summary of a finished run; nothing is written."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count as count_from
from pathlib import Path
from typing import Any, NamedTuple, cast

import polars as pl

from curate.ask import billing
from curate.ask.billing import Bill
from curate.core.errors import UserError
from curate.core.figures import Record, figure
from curate.llm.exchange_rates import Rates
from curate.llm.providers.presets import rates
from curate.panel.voting import EXPERTS
from curate.pipeline import facts, legacy, stages
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.facts import Reports, count
from curate.pipeline.folder import run_id
from curate.pipeline.mark import Mark
from curate.pipeline.stage import ledger_place
from curate.review import flags, published
from curate.review.desk import Desk, desks
from curate.review.lead import Recommendation, of_run, recommendation
from curate.review.proof import prove
from curate.runs.opening import KEPT, resolve_policy
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
    further: Mapping[str, float] | None = figure(
        "in the row of the last stage: currency -> amount paid beside the stages, as for checks of judges", default=None
    )


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
    if rows and (further := _further(run, rows)):
        rows[-1] = replace(rows[-1], further=further)
    return rows


def _further(run: Run, rows: Sequence[StageStatus]) -> dict[str, float]:
    known_rates = Rates(run.pipeline.head.rates).over(rates())
    return billing.further(ledger_place(), run_id(run.folder), spent(rows), known_rates)


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
    """Return currency -> total cost, over the rows of `status_rows` and beside them; unknown costs are left out."""
    total: dict[str, float] = {}
    for row in rows:
        stage_cost = {row.currency: row.cost} if row.cost and row.currency else {}
        for currency, amount in (*(row.paid or stage_cost).items(), *(row.further or {}).items()):
            total[currency] = total.get(currency, 0.0) + amount
    return dict(sorted(total.items()))


# Summary of a finished run: queries exported and dropped by reason, labels, cost.

PANEL = "deepseek,doubao-1.5-pro,qwen-plus"
SAMPLE = 200
"""Size of the sample for review that the summary proposes, in pairs."""


def summary(run: Run) -> list[str]:
    """Return the lines of a finished run's summary: queries, labels, cost, next step; [] before the export."""
    reports = {name: mark.report for name, (state, mark) in run.states().items() if mark and state == "done"}
    if not {"ingest", "judge", "resolve", "export"} <= reports.keys():
        return []
    folder, paid = run.folder, facts.paid(reports, status_rows(run)[-1].further or {})
    return [*_queries(folder, reports), *_labels(folder, reports), *paid, *next_lines(run)]


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


# Next step of a run: one rule for all commands that print one.


class NextStep(NamedTuple):
    """A command to type, and why; the reason may be empty."""

    command: str
    reason: str = ""


def next_lines(run: Run, review: Desk | None = None) -> list[str]:
    """Return the lines of the steps of `next_steps`."""
    return step_lines(next_steps(run, review))


def step_lines(steps: Iterable[NextStep]) -> list[str]:
    """Return a line `next: COMMAND` or `  or: COMMAND` per step, and its reason on the line below."""
    lines = list[str]()
    for step in steps:
        lines.append(f"{'  or' if lines else 'next'}: {step.command}")
        lines += [f"    {step.reason}"] if step.reason else []
    return lines


def next_steps(run: Run, review: Desk | None = None) -> list[NextStep]:
    """Return what to do next in a judged run, the alternatives last: read, adjudicate, use the answers, verify.

    Open flags of personal data come first, since nothing leaves the run until they are settled. `review` is the sample
    that a command is about; by default the one with the most answers. Empty for a run whose labels nobody resolves, and
    for a pilot or a sample of items, whose answers change no label.
    """
    if flagged := _flagged(run.folder):
        return [flagged]
    sample = review.sample if review else None
    if sample and (sample.of_pilot or sample.of_items or sample.design.form != "relevance"):
        return []
    name = shlex.quote(str(run.folder))
    if "resolve" not in run.pipeline.head.stages:
        answered = review is not None and review.digest is not None
        return [NextStep(f"curate audit --run {name}", "the audit with these answers")] if answered else []
    stale = run.stale()
    if "judge" in stale or "consensus" in stale:
        return [NextStep(_rerun(run), "the labels are not up to date")]
    main, of_main = of_run(run.folder) or (None, None)
    review, advice = (main, of_main) if review is None else (review, _advice(review))
    steps = [*(_reading(run.folder, review, advice) if review else ()), *(_using(run, stale) if stale else ())]
    if steps:
        return steps
    lacking = _lacking(run, advice or of_main)
    return [lacking or NextStep(f"curate verify {name}/export", f"then `curate ready {name}`")]


def review_step(run: Run, review: Desk | None, advice: Recommendation | None) -> NextStep | None:
    """Return what a review of the labels lacks; None if the labels can be published by it."""
    reading = next(_reading(run.folder, review, advice), None) if review else None
    return reading or _lacking(run, advice)


def _flagged(run: Path) -> NextStep | None:
    """Return the command that lists the open flags of personal data of the first sample with one; None without one."""
    if not (rows := flags.personal_rows(run)):
        return None
    sample = rows[0][0]
    count_flagged = sum(name == sample for name, _ in rows)
    return NextStep(flags.listing(run, sample), f"personal data that assessors flagged in {count_flagged:,} rows")


def _rerun(run: Run) -> str:
    """Return the command that brings a run up to date."""
    name = shlex.quote(str(run.folder))
    return f"curate run {name}/pipeline.yaml --run {name}"


def _advice(review: Desk) -> Recommendation | None:
    """Return what a sample of all judged pairs recommends; None for one of some pairs."""
    if review.sample.of_some or review.sample.design.facts.get("of") == "audit":
        return None
    run = review.sample.folder.parents[1]
    return recommendation(prove(review), published.prove(run), len(flags.personal_rows(run)))


def _reading(run: Path, review: Desk, advice: Recommendation | None) -> Iterator[NextStep]:
    """Yield how to go on with a sample that has open or disputed rows."""
    sample = f"--run {shlex.quote(str(run))} --sample {shlex.quote(review.sample.design.name)}"
    rows = [grade for row, _, grade in review.answered() if row["expected"] is None]
    unread = sum(grade is None for grade in rows)
    if unread and (advice is None or advice.obstacle in ("unread", "nothing", "open")):
        yield NextStep(f"curate review serve {sample}", f"{unread:,} of {len(rows):,} rows are open")
        sheets = sorted((review.sample.folder / "sheets").glob("*.csv"))
        if written := [sheet for sheet in sheets if sheet.stem in review.assessors]:
            yield NextStep(f"curate review import {shlex.join(map(str, written))} {sample}", "filled-in sheets")
    elif advice is not None and advice.reading.disputed:
        yield NextStep(f"curate review adjudicate {sample}", f"readers differ on {advice.reading.disputed:,} rows")


def _using(run: Run, stale: Sequence[str]) -> Iterator[NextStep]:
    """Yield how to bring stages up to date; after new answers with what becomes of the labels."""
    if _answered(run.folder) and (changed := _changed(run)) is not None:
        yield NextStep(_rerun(run), "the labels stay the panel's, page and card say how right they are")
        yield _as_people_say(run, changed)
    elif len(stale) == 1:
        yield NextStep(f"curate {stale[0]} --run {shlex.quote(str(run.folder))}", f"the {stale[0]} is not up to date")
    else:
        yield NextStep(_rerun(run), f"not up to date: {', '.join(stale)}")


def _answered(run: Path) -> bool:
    """Return whether a sample whose answers can become labels has any."""
    samples = (review for review in desks(run) if not (review.sample.of_pilot or review.sample.of_items))
    return any(review.digest for review in samples)


def _changed(run: Run) -> int | None:
    """Return the number of labels that people's answers would change; None if they count already."""
    if resolve_policy(run.pipeline) == EXPERTS:
        return None
    changed: int = stages.module("resolve").overridden(run.beside("resolve"))
    return changed


def _as_people_say(run: Run, changed: int) -> NextStep:
    """Return the command that makes people's answers labels."""
    return NextStep(
        f"{_rerun(run)} --set resolve.policy={EXPERTS}", f"{changed:,} labels become what people say; {KEPT}"
    )


def _lacking(run: Run, advice: Recommendation | None) -> NextStep | None:
    """Return what answers that are all read and used do not prove yet, as the command for it; None if they do."""
    name = shlex.quote(str(run.folder))
    if advice is None:
        heuristic: Any = run.beside("judge").done("judge").facts["heuristic"]
        if run_figures.only_heuristics(list(read_json(run.folder / "judge" / "panel.json")), heuristic):
            plan = f"curate judge --run {name} --models {PANEL} --plan"
            return NextStep(plan, "labels are heuristic; see `curate models`")
        plan = f"curate review export --run {name} --size {SAMPLE} --assessors first,second --plan"
        return NextStep(plan, "people check a sample, and say how right the labels are")
    if advice.obstacle in ("ready", "flagged"):
        return _flagged(run.folder)
    if advice.obstacle in ("accepted", "precision") and (changed := _changed(run)):
        return _as_people_say(run, changed)
    if advice.obstacle == "accepted":
        plan = f"curate judge --run {name} --models {PANEL} --plan"
        return NextStep(plan, "people reject the positives: ask other judges")
    return NextStep(_another_sample(run, advice), "the answers do not prove the labels yet")


def _another_sample(run: Run, advice: Recommendation) -> str:
    """Return the command that draws another sample, twice as large, under a free name, for the same people."""
    drawn = {review.sample.design.name: review.sample.design for review in desks(run.folder)}
    free = next(name for number in count_from(2) if (name := f"{advice.sample}-{number}") not in drawn)
    people = drawn[advice.sample].assessors
    names = ",".join(people if len(people) > 1 else [*people, "SECOND"])
    target = " --target precision" if advice.obstacle == "precision" else ""
    options = f"--size {2 * advice.reading.rows} --sample {shlex.quote(free)} --assessors {shlex.quote(names)}{target}"
    return f"curate review export --run {shlex.quote(str(run.folder))} {options} --plan"
