"""Where the tables of a run lie, and which run is the newest; nothing is imported but what `curate show` needs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from curate.core.errors import DataError, NotFound, UserError, suggestion
from curate.pipeline import stages
from curate.pipeline.foreign_files import is_run
from curate.system.files import read_json

SETTINGS = "pipeline.yaml"
"""The settings that the run folder stands under; the newest run is the one whose settings were written last."""
SHOWN = (".parquet", ".json")
"""Endings of what `curate show` shows."""


def newest(parent: Path = Path("runs")) -> Path:
    """Return the run folder that was worked in last; UserError if there is none."""
    runs = [path.parent for path in parent.glob(f"*/{SETTINGS}") if is_run(path.parent)]
    if not runs:
        raise NotFound(f"no run folder in {parent.resolve()}; start with `curate run PIPELINE.yaml`, or give --run DIR")
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


def table_paths(run: Path) -> list[Path]:
    """Return the files of all tables and figures of a run, in the order of its stages; UserError if it is none."""
    if not run.is_dir():
        raise NotFound(f"{run}: no such run folder; give one with --run")
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
        raise NotFound(f"{run}: no table {table!r}; {suggestion(name, {path.stem for path in tables})}")
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
