"""Look at runs without changing them: which is the newest, what its stages did, where a table lies."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import polars as pl

from curate import stages
from curate.config import Json
from curate.errors import DataError, UserError, suggestion
from curate.files import read_json
from curate.foreign import is_run
from curate.rates import shown
from curate.run import SETTINGS, Run, State
from curate.stages import billing
from curate.stages.billing import Bill
from curate.stages.judge import Config
from curate.stages.mark import Mark
from curate.stages.quote import progress

JUDGING = ("judged", "paid")
BELOW = (*JUDGING, "notes")
"""What stands below the table of stages, as sentences."""
SHOWN = (".parquet", ".json")
"""Endings of what `curate show` shows."""


def newest(parent: Path = Path("runs")) -> Path:
    """Return the run folder that was worked in last; UserError if there is none."""
    runs = [path.parent for path in parent.glob(f"*/{SETTINGS}") if is_run(path.parent)]
    if not runs:
        raise UserError(
            f"no run folder in {parent.resolve()}; start with `curate run PIPELINE.yaml`, or give --run DIR"
        )
    return max(runs, key=lambda run: (run / SETTINGS).stat().st_mtime_ns)


@contextmanager
def newest_when_done(run: Path) -> Iterator[None]:
    """Leave the newest run what it was, if what begins this one is refused or fails; what was made of it is kept."""
    settings, others = run / SETTINGS, [*run.parent.glob(f"*/{SETTINGS}")]
    try:
        yield
    except BaseException:
        if others and settings not in others and settings.is_file():
            before = max(path.stat().st_mtime_ns for path in others) - 1_000_000
            os.utime(settings, ns=(before, before))
        raise


def status_rows(run: Run) -> list[dict[str, Json]]:
    """Return a row per stage: stage, state, rows_in, rows_out, dropped, seconds, cost, currency (None where unknown).

    `judged` is the share of the ratings that are there, and `paid` what they cost, currency -> amount: of a judge stage
    that is not done, also while it runs, for the ledger knows; else of what was paid in several currencies. `notes` are
    the sentences that the stage said when it was done.
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
    try:
        found = progress(cast("Config", run.pipeline.sections["judge"]), run.beside("judge"))
    except UserError:  # nothing can be judged yet
        return dict.fromkeys(JUDGING)
    return dict(zip(JUDGING, found, strict=True))


def told(rows: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return what there is to say of judging that is not done, of several currencies, and the stages' notes."""
    lines = []
    for row in rows:
        paid = cast("Mapping[str, float] | None", row["paid"]) or {}
        parts = [" and ".join(shown(amount, currency) for currency, amount in paid.items()) + " paid"] if paid else []
        if row["judged"] is not None:
            parts.insert(0, f"{cast('float', row['judged']):.0%} of the ratings are there")
        lines += [f"{row['stage']}: {', '.join(parts)}"] if parts else []
        lines += [f"{row['stage']}: note: {note}" for note in cast("Sequence[str]", row["notes"])]
    return lines


def table_paths(run: Path) -> list[Path]:
    """Return the files of all tables and figures of a run, in the order of its stages; UserError if it is none."""
    if not run.is_dir():
        raise UserError(f"{run}: no such run folder; give one with --run")
    files = [path for each in stages.KNOWN for path in (run / each).glob("*.*") if path.suffix in SHOWN]
    return [path for path in files if path.name != "stage.json"]


def table_path(run: Path, table: str) -> Path:
    """Return the file of a run's table, of its last stage that has one, or of the stage in `stage/table`.

    Figures that are no table, such as agreement, are a JSON file.
    """
    stage, _, name = table.rpartition("/")
    tables = table_paths(run)
    found = [path for path in tables if path.stem == name and stage in ("", path.parent.name)]
    if not found:
        raise UserError(f"{run}: no table {table!r}; {suggestion(name, {path.stem for path in tables})}")
    return found[-1]


def readable(path: Path) -> Path:
    """Return the path of a table, or of figures, that can be read; UserError if it is damaged."""
    try:
        if path.suffix == ".json":
            read_json(path)
        else:
            pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError, DataError) as error:
        raise UserError(f"{path}: damaged; make it again with `curate {path.parent.name} --force`") from error
    return path
