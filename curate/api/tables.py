"""Tables of a run as attributes of `RunView`, and their files."""

from pathlib import Path
from shlex import quote
from typing import Protocol, Self, overload

import polars as pl

from curate.core.errors import NotFound, UserError
from curate.pipeline.folder import readable, table_path, table_paths


class MissingTable(NotFound, AttributeError):
    """A run has no table of that name, or not yet. Also an AttributeError, so that `hasattr` is False."""


class HasFolder(Protocol):
    """An object with a run folder, such as a `RunView`."""

    @property
    def folder(self) -> Path:
        """Return the run folder."""
        ...


class StageTable:
    """Descriptor of a table of a run: reads the file anew at every access.

    If several stages wrote the table, the last one counts, as for `curate show`. `stage` is the one named if it is
    missing.
    """

    def __init__(self, stage: str, table: str = "") -> None:
        self.stage, self.table = stage, table

    def __set_name__(self, _owner: type, name: str) -> None:
        self.table = self.table or name

    @overload
    def __get__(self, run: None, owner: type) -> Self: ...
    @overload
    def __get__(self, run: HasFolder, owner: type) -> pl.DataFrame: ...
    def __get__(self, run: HasFolder | None, owner: type) -> Self | pl.DataFrame:
        return self if run is None else pl.read_parquet(located(run.folder, self.table, self.stage))


def located(run: Path, name: str, stage: str = "") -> Path:
    """Return the Parquet file of a table, given as `TABLE` (of the last stage that wrote it) or `STAGE/TABLE`.

    MissingTable if there is none; the message names the command that writes it if its `stage` is given.
    """
    paths = [path for path in table_paths(run) if path.suffix == ".parquet"]
    if stage and not any(name in (path.stem, f"{path.parent.name}/{path.stem}") for path in paths):
        raise MissingTable(f"{run}: no table {name!r}, for {remedy(run, stage)}")
    try:
        path = table_path(run, name)
    except UserError as error:
        raise MissingTable(str(error)) from None
    if path.suffix != ".parquet":
        raise MissingTable(f"{path}: found figures in JSON, expected a table; `curate show {name}` prints them")
    return readable(path)


def remedy(run: Path, stage: str) -> str:
    """Return a clause for messages: the stage has not run, or has left no table, and the command that runs it."""
    why = "has left none" if (run / stage / "stage.json").is_file() else "has not run"
    return f"the stage {stage!r} {why}; run `curate {stage.replace('_', '-')} --run {quote(str(run))}`"
