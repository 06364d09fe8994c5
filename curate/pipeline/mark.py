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
    """The done-mark of a stage: inputs, outputs, report and duration."""

    made_from: dict[str, Json]
    """Stage and version, head, digest of the settings, fingerprint of outside inputs, digests of input files."""
    report: Report
    seconds: float
    outputs: dict[str, str]
    released: bool = False
    """True once the raw tables of `ingest` were deleted after `mask`."""

    @classmethod
    def read(cls, folder: Path) -> "Mark | None":
        """Return the mark in the folder of a stage; None if missing or unreadable."""
        path = folder / "stage.json"
        if not path.is_file():
            return None
        try:
            content = files.read_json(path)
            return cls(**{**content, "report": Report(**content["report"])})
        except (DataError, TypeError, KeyError):
            return None  # damaged, or of another version: the stage is made again, which costs no second call

    def whole(self, folder: Path) -> bool:
        """Return whether the folder holds every file as the stage wrote it."""
        current = files.digests(folder)
        gone = (*TEXT_TABLES, *ID_TABLES) if self.released else ()
        return all(current.get(path) == digest for path, digest in self.outputs.items() if path not in gone)


# Deletion of raw texts once they are masked: personal data does not outlive its masking.


def release_raw(folder: Path, mark: Mark) -> None:
    """Delete the raw texts of `ingest`, and its tables of ids if `mask` renamed some; its done-mark says so first."""
    write_json(folder / "ingest" / "stage.json", asdict(replace(mark, released=True)))
    for table in (*TEXT_TABLES, *(ID_TABLES if IdNames(folder / "mask", home()).known else ())):
        (folder / "ingest" / table).unlink(missing_ok=True)
