"""The done-mark of a stage, `stage.json`, and deletion of raw texts once they are masked."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from curate.core.config import Json
from curate.core.errors import DataError
from curate.pii.pseudonyms import IdNames
from curate.pipeline.stage import Report, home
from curate.system import files
from curate.system.files import write_json

TEXT_TABLES = ("queries.parquet", "corpus.parquet")
ID_TABLES = ("aliases.parquet", "classes.parquet", "dropped.parquet", "qrels.parquet")


@dataclass(frozen=True)
class Mark:
    """Done-mark of a stage, stored as `stage.json`: inputs, report, duration in seconds, outputs (file -> SHA-256)."""

    made_from: dict[str, Json]
    """Everything that the tables depend on: stage and version, settings, fingerprint of outside inputs, input files."""
    report: Report
    seconds: float
    outputs: dict[str, str]
    released: bool = False
    """Whether the raw tables of `ingest` were deleted after `mask`; only for `ingest`."""

    @classmethod
    def read(cls, folder: Path) -> "Mark | None":
        """Return the done-mark in the folder of a stage; None if missing or unreadable."""
        path = folder / "stage.json"
        if not path.is_file():
            return None
        try:
            content = files.read_json(path)
            return cls(**{**content, "report": Report(**content["report"])})
        except (DataError, TypeError, KeyError):
            return None  # damaged, or of another version: the stage is made again, which costs no second call

    def whole(self, folder: Path) -> bool:
        """Return whether every file of the stage is unchanged, by digest; raw tables that were deleted do not count."""
        current = files.digests(folder)
        gone = (*TEXT_TABLES, *ID_TABLES) if self.released else ()
        return all(current.get(path) == digest for path, digest in self.outputs.items() if path not in gone)


# Deletion of raw texts once they are masked: personal data does not outlive its masking.


def release_raw(folder: Path, mark: Mark) -> None:
    """Delete the raw texts of `ingest`, and its tables of ids if `mask` replaced any.

    `mark` is its done-mark; it is first rewritten with `released`, so that the deletion does not make the stage stale.
    """
    write_json(folder / "ingest" / "stage.json", asdict(replace(mark, released=True)))
    for table in (*TEXT_TABLES, *(ID_TABLES if IdNames(folder / "mask", home()).known else ())):
        (folder / "ingest" / table).unlink(missing_ok=True)
