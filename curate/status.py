"""Look at runs without changing them: which is the newest, what its stages did, where a table lies."""

from pathlib import Path
from typing import Any

import polars as pl

from curate import stages
from curate.errors import DataError, UserError, suggestion
from curate.files import read_json
from curate.run import Run

SHOWN = (".parquet", ".json")
"""Endings of what `curate show` shows."""


def newest(parent: Path = Path("runs")) -> Path:
    """Return the run folder that was worked in last; UserError if there is none."""
    runs = [path.parent for path in parent.glob("*/pipeline.yaml")]
    if not runs:
        raise UserError(
            f"no run folder in {parent.resolve()}; start with `curate run PIPELINE.yaml`, or give --run DIR"
        )
    return max(runs, key=lambda run: (run / "pipeline.yaml").stat().st_mtime)


def status_rows(run: Run) -> list[dict[str, Any]]:
    """Return a row per stage: stage, state, rows_in, rows_out, dropped, seconds, cost, currency, notes.

    What is unknown is None; `notes` are the sentences that the stage said when it was done.
    """
    rows: list[dict[str, Any]] = []
    for name, (state, mark) in run.states().items():
        row: dict[str, Any] = {"stage": name, "state": state}
        for key in ("rows_in", "rows_out", "dropped"):
            row[key] = getattr(mark.report, key) if mark else None
        rows.append(
            {
                **row,
                "seconds": mark.seconds if mark else None,
                "cost": mark.report.cost if mark else None,
                "currency": mark.report.facts.get("currency") if mark else None,
                "notes": list(mark.report.notes) if mark else [],
            }
        )
    return rows


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
