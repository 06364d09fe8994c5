"""Parent of a run: the earlier version that `curate extend` stored in the folder `parent`, and the added systems."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.core.errors import DataError
from curate.system.files import digests, read_json, read_table, write_json

PARENT = "parent"
"""Folder in a run with tables of the earlier version that it extends."""
FILE = "version.json"
CHANGES = "CHANGES.md"


@dataclass(frozen=True)
class ParentVersion:
    """The parent of a run (its earlier version), and the systems that the run adds."""

    version: int
    """Version of the run itself, 2 or more; a run without a parent is version 1."""
    parent: Mapping[str, Json]
    """`folder`, `id` and `version` of the earlier run."""
    added: Mapping[str, Json]
    """Added system -> its identity."""
    depth: int
    """Rank down to which the documents of every added system are added to the pool."""

    @classmethod
    def load(cls, run: Path) -> "ParentVersion | None":
        """Return the parent of a run; None for a first version, DataError if the file is damaged."""
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
        """Write the file that `load` reads into `folder`, which is the folder `parent` of a run."""
        write_json(folder / FILE, asdict(self))


def identity(run: Path) -> dict[str, Json]:
    """Return {"parent": file -> digest} for the files of a run's parent, for fingerprints; {} without a parent."""
    folder = run / PARENT
    return {PARENT: {**digests(folder)}} if (folder / FILE).is_file() else {}


def table(run: Path, name: str) -> pl.DataFrame:
    """Return a table of the parent: `pool`, `rankings`, `verdicts` or `qrels`."""
    return read_table(run / PARENT, name)


def panel(run: Path) -> dict[str, Any]:
    """Return the panel of the parent: judge -> identity."""
    return read_json(run / PARENT / "panel.json")


def earlier_changes(run: Path) -> str:
    """Return the parent's CHANGES.md without its title; empty for a first version."""
    path = run / PARENT / CHANGES
    return path.read_text(encoding="utf-8").partition("\n\n")[2] if path.is_file() else ""
