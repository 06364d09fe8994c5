"""Deletion of raw texts once they are masked: personal data does not outlive its masking."""

from dataclasses import asdict, replace
from pathlib import Path

from curate.pii.pseudonyms import IdNames
from curate.pipeline.mark import ID_TABLES, TEXT_TABLES, Mark
from curate.pipeline.stage import home
from curate.system.files import write_json


def release_raw(folder: Path, mark: Mark) -> None:
    """Delete the raw texts of `ingest`, and its tables of ids if `mask` renamed some; its done-mark says so first."""
    write_json(folder / "ingest" / "stage.json", asdict(replace(mark, released=True)))
    for table in (*TEXT_TABLES, *(ID_TABLES if IdNames(folder / "mask", home()).known else ())):
        (folder / "ingest" / table).unlink(missing_ok=True)
