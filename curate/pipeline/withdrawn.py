"""Withdrawn records of a run: ids of queries and documents that `curate erase` took out and that stay out."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from curate.core.config import Json, digest
from curate.system.files import read_json, write_json

NAME = "withdrawn.json"
"""File of a run folder; it has ids and times, never a text."""


@dataclass(frozen=True)
class Withdrawn:
    """Ids of withdrawn records, as in the source or as masked, with the time of their withdrawal."""

    queries: dict[str, str] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, run: Path) -> "Withdrawn":
        """Return what was withdrawn from a run; nothing if `curate erase` was never used on it."""
        path = run / NAME
        return cls(**read_json(path)) if path.is_file() else cls()

    def __bool__(self) -> bool:
        return bool(self.queries or self.documents)

    def adding(self, queries: set[str], documents: set[str]) -> "Withdrawn":
        """Return the records with more of them, withdrawn now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Withdrawn(
            dict.fromkeys(sorted(queries), now) | self.queries, dict.fromkeys(sorted(documents), now) | self.documents
        )

    def write(self, run: Path) -> None:
        """Store the records in the run folder."""
        write_json(run / NAME, {"queries": self.queries, "documents": self.documents})

    def fingerprint(self) -> dict[str, Json]:
        """Return what `ingest` depends on: a digest of the ids; nothing without withdrawn records."""
        return {"withdrawn": digest([sorted(self.queries), sorted(self.documents)])} if self else {}

    def facts(self) -> dict[str, Json]:
        """Return the counts that the report of `ingest` states; nothing without withdrawn records."""
        return {"withdrawn": {"queries": len(self.queries), "documents": len(self.documents)}} if self else {}

    def note(self) -> str:
        """Return the sentence on withdrawn records; empty without any."""
        if not self:
            return ""
        return f"{len(self.queries):,} queries and {len(self.documents):,} documents were withdrawn (`curate erase`)"
