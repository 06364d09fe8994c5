"""Status of a run's stages: rows, seconds, cost, and the progress of judging; read-only."""

from collections.abc import Mapping, Sequence
from typing import cast

from curate.ask import billing
from curate.ask.billing import Bill
from curate.core.config import Json
from curate.core.errors import UserError
from curate.llm.exchange_rates import shown
from curate.pipeline.mark import Mark
from curate.runs.runner import Run, State

JUDGING = ("judged", "paid")
BELOW = (*JUDGING, "notes")
"""Keys that are printed below the table of stages, as sentences."""


def status_rows(run: Run) -> list[dict[str, Json]]:
    """Return a row per stage: stage, state, rows_in, rows_out, dropped, seconds, cost, currency (None where unknown).

    `judged` is the share of existing ratings and `paid` their cost, currency -> amount, of a judge stage that is not
    done or still runs, from the ledger; of a completed one only `paid`, if in several currencies. `notes` are the notes
    of the stage's report.
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
        share_and_cost = progress(cast("Config", run.pipeline.sections["judge"]), run.beside("judge"))
    except UserError:  # nothing can be judged yet
        return dict.fromkeys(JUDGING)
    return dict(zip(JUDGING, share_and_cost, strict=True))


def spent(rows: Sequence[Mapping[str, Json]]) -> dict[str, float]:
    """Return currency -> total cost of the stages of `status_rows`; unknown costs are left out."""
    total: dict[str, float] = {}
    for row in rows:
        stage_cost = {str(row["currency"]): row["cost"]} if row["cost"] and row["currency"] else {}
        for currency, amount in cast("Mapping[str, float]", row["paid"] or stage_cost).items():
            total[currency] = total.get(currency, 0.0) + amount
    return dict(sorted(total.items()))


def told(rows: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return lines on unfinished judging, on costs in several currencies, and the stages' notes."""
    lines = []
    for row in rows:
        paid = cast("Mapping[str, float] | None", row["paid"]) or {}
        clauses = [" and ".join(shown(amount, currency) for currency, amount in paid.items()) + " paid"] if paid else []
        if row["judged"] is not None:
            clauses.insert(0, f"{cast('float', row['judged']):.0%} of the ratings are there")
        lines += [f"{row['stage']}: {', '.join(clauses)}"] if clauses else []
        lines += [f"{row['stage']}: note: {note}" for note in cast("Sequence[str]", row["notes"])]
    return lines
