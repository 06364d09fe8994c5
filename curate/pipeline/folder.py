"""Paths of a run's tables, and the newest run; imports only what `curate show` needs."""

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
"""File of a run folder's settings; the newest run is the one whose settings were written last."""
SHOWN = (".parquet", ".json")
"""Endings of what `curate show` shows."""


def newest(parent: Path = Path("runs")) -> Path:
    """Return the run folder that was used last; UserError if there is none."""
    runs = [path.parent for path in parent.glob(f"*/{SETTINGS}") if is_run(path.parent)]
    if not runs:
        raise NotFound(f"no run folder in {parent.resolve()}; start with `curate run PIPELINE.yaml`, or give --run DIR")
    return max(runs, key=lambda run: (run / SETTINGS).stat().st_mtime_ns)


@contextmanager
def newest_when_done(run: Path) -> Iterator[None]:
    """If the block fails in a new run, leave the former newest run the newest; the new run's files stay."""
    settings, others = run / SETTINGS, [*run.parent.glob(f"*/{SETTINGS}")]
    try:
        yield
    except BaseException:
        if others and settings not in others and settings.is_file():
            earlier_ns = max(path.stat().st_mtime_ns for path in others) - 1_000_000
            os.utime(settings, ns=(earlier_ns, earlier_ns))
        raise


def table_paths(run: Path) -> list[Path]:
    """Return the files of all tables and figures of a run, in the order of its stages; NotFound without a run."""
    if not run.is_dir():
        raise NotFound(f"{run}: no such run folder; give one with --run")
    files = [path for stage in stages.KNOWN for path in (run / stage).glob("*.*") if path.suffix in SHOWN]
    return [path for path in files if path.name != "stage.json"]


def table_path(run: Path, table: str) -> Path:
    """Return the file of a table, given as `table` (the last stage that has it) or as `stage/table`.

    Figures that are not a table, such as agreement, are in a JSON file.
    """
    stage, _, name = table.rpartition("/")
    tables = table_paths(run)
    paths = [path for path in tables if path.stem == name and stage in ("", path.parent.name)]
    if not paths:
        raise NotFound(f"{run}: no table {table!r}; {suggestion(name, {path.stem for path in tables})}")
    return paths[-1]


def readable(path: Path) -> Path:
    """Return the path of a table or figures after checking that it can be read; UserError if it is damaged."""
    try:
        if path.suffix == ".json":
            read_json(path)
        else:
            pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError, DataError) as error:
        raise UserError(f"{path}: damaged; make it again with `curate {path.parent.name} --force`") from error
    return path
