"""Earlier version of a run: what `curate extend` put into the folder `parent`, and what the pool grew by."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.core.errors import DataError
from curate.system.files import digests, read_json, read_table, write_json

PARENT = "parent"
"""Folder of a run with tables of the version that it was grown from."""
FILE = "version.json"
CHANGES = "CHANGES.md"


@dataclass(frozen=True)
class ParentVersion:
    """What a run was grown from, and by which systems."""

    version: int
    """Of the run itself, 2 or more; a run without a parent is version 1."""
    parent: Mapping[str, Json]
    """`folder`, `id` and `version` of the earlier run."""
    added: Mapping[str, Json]
    """System that came later -> what it is."""
    depth: int
    """Documents of each added system that join the pool."""

    @classmethod
    def load(cls, run: Path) -> "ParentVersion | None":
        """Return what a run was grown from; None for a run that begins with itself."""
        path = run / PARENT / FILE
        if not path.is_file():
            return None
        try:
            return cls(**read_json(path))
        except TypeError as error:
            raise DataError(
                f"{path}: not in the form that `curate extend` writes; extend the earlier run again, into another "
                "folder with --out"
            ) from error

    def write(self, folder: Path) -> None:
        """Write it into the folder `parent` of a run."""
        write_json(folder / FILE, asdict(self))


def identity(run: Path) -> dict[str, Json]:
    """Return the digests of all that a run keeps of its parent, under `parent`; empty for a run without one."""
    folder = run / PARENT
    return {PARENT: {**digests(folder)}} if (folder / FILE).is_file() else {}


def table(run: Path, name: str) -> pl.DataFrame:
    """Return a table of the parent: `pool`, `rankings`, `verdicts` or `qrels`."""
    return read_table(run / PARENT, name)


def panel(run: Path) -> dict[str, Any]:
    """Return the panel that judged the parent: judge -> what identifies it."""
    return read_json(run / PARENT / "panel.json")


def earlier_changes(run: Path) -> str:
    """Return what the parent's own CHANGES.md says below its title; empty if it was a first version."""
    path = run / PARENT / CHANGES
    return path.read_text(encoding="utf-8").partition("\n\n")[2] if path.is_file() else ""
