"""Judge that replays recorded grades, and recording of a run's ratings for it."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from curate.core.config import Json, Section
from curate.core.errors import DataError
from curate.core.protocols import Kit
from curate.core.records import STATUSES, STOPPED, Document, Outcome, Query
from curate.core.scale import FIVE, Scale
from curate.llm.parse import parse
from curate.llm.prompts import labels
from curate.system.egress import Egress
from curate.system.files import read_table, replacing, sha256

Pair = tuple[str, str]
_STATUSES = (*STATUSES, STOPPED)


class Config(Section):
    """Where the grades are."""

    path: Path
    """TSV or CSV with the columns query_id, doc_id, grade, and if need be status (without it a row is rated), slot and
    batch_size (of the prompt); or JSONL with query_id, doc_ids and reply (a model's text, read as strictly as a fresh
    one). With several raters the rows also have `judge` or `assessor`."""
    assessor: str | None = None
    """Whose rows are taken; None takes all."""
    family: str | None = None
    """Judges that share one err alike; None is unknown."""


class Recorded(NamedTuple):
    """The record of a pair; its status may be `stopped`, slot and batch_size are None if not recorded."""

    grade: str | None
    status: str = "rated"
    slot: int | None = None
    batch_size: int | None = None


NOTHING = Recorded(None, "failed")


class Replay:
    """Replay recorded grades, by query and document id; a pair that is not recorded is `failed`."""

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit | None = None, scale: Scale = FIVE) -> None:
        self.name, self.path, self._assessor, self.family = name, config.path, config.assessor, config.family
        if not self.path.is_file():
            raise DataError(f"judges.{name}.path: {self.path}: no such file; give a file of recorded grades or replies")
        self.identity: Mapping[str, Json] = {"replay": sha256(self.path), "assessor": config.assessor}
        self._named, self._scale = (kit.named, kit.scale) if kit else (str, scale)
        self._recorded: dict[Pair, Recorded] | None = None

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        """Return one outcome per passage; `stopped` ones become `failed`."""
        records = (self.recorded(query.query_id, passage.doc_id) for passage in passages)
        return [Outcome(record.grade, record.status if record.status in STATUSES else "failed") for record in records]

    def recorded(self, query_id: str, doc_id: str) -> Recorded:
        """Return the record of a pair; DataError if the file is malformed."""
        if self._recorded is None:
            self._recorded = self._read()
        return self._recorded.get((query_id, doc_id), NOTHING)

    def _read(self) -> dict[Pair, Recorded]:
        rows = self._replies() if self.path.suffix == ".jsonl" else self._grades()
        recorded: dict[Pair, Recorded] = {}
        try:
            for line, read, record in rows:
                pair = self._named(read[0]), self._named(read[1])
                earlier = recorded.setdefault(pair, record)
                if earlier.grade is None:
                    recorded[pair] = record
                elif record.grade not in (None, earlier.grade):
                    raise DataError(
                        f"{self.path}:{line}: query {pair[0]!r}, document {pair[1]!r} has the grade {record.grade} "
                        f"here and {earlier.grade} above; name one in judges.{self.name}.assessor, or mend the file"
                    )
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path}: found text that is not UTF-8; save the file as UTF-8") from error
        if not recorded:
            whose = "" if self._assessor is None else f" of assessor {self._assessor!r}"
            raise DataError(f"{self.path}: no row{whose}; check judges.{self.name}")
        return recorded

    def _grades(self) -> Iterator[tuple[int, Pair, Recorded]]:
        with self.path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream, delimiter="," if self.path.suffix == ".csv" else "\t")
            lacking = {"query_id", "doc_id", "grade"} - set(rows.fieldnames or ())
            if lacking:
                columns = ", ".join(rows.fieldnames or ()) or "nothing"
                raise DataError(f"{self.path}:1: found the columns {columns}; add {', '.join(sorted(lacking))}")
            for row in rows:
                record = _recorded(row, self._scale, f"{self.path}:{rows.line_num}")
                if self._is_of_assessor(row):
                    yield rows.line_num, (row["query_id"], row["doc_id"]), record

    def _replies(self) -> Iterator[tuple[int, Pair, Recorded]]:
        with self.path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                row = _object(line)
                query_id, doc_ids, reply = row.get("query_id"), row.get("doc_ids"), row.get("reply", 0)
                if not (
                    isinstance(query_id, str)
                    and isinstance(doc_ids, list)
                    and all(isinstance(doc_id, str) for doc_id in doc_ids)
                    and isinstance(reply, str | None)
                ):
                    raise DataError(
                        f"{self.path}:{number}: expected a JSON object with query_id (text), doc_ids (a list of texts) "
                        "and reply (text or null); mend or remove the line"
                    )
                if self._is_of_assessor(row):
                    grades = parse(reply, labels(len(doc_ids)), self._scale).grades.values()
                    for doc_id, grade in zip(doc_ids, grades, strict=True):
                        yield number, (query_id, doc_id), Recorded(grade, "rated" if grade else "unparsed")

    def _is_of_assessor(self, row: Mapping[str, object]) -> bool:
        return self._assessor is None or self._assessor == (row.get("judge") or row.get("assessor"))


def _recorded(row: Mapping[str, str | None], scale: Scale, position: str) -> Recorded:
    """Return the record of a row of grades; DataError names its position, FILE:LINE."""
    status, grade = row.get("status") or "rated", row["grade"] or ""
    if status not in _STATUSES:
        raise DataError(f"{position}: found the status {status!r}, expected one of {', '.join(_STATUSES)}")
    if grade not in (scale.labels if status == "rated" else ("",)):
        expected = f"one of {', '.join(scale.labels)}" if status == "rated" else f"none with the status {status}"
        raise DataError(f"{position}: found the grade {grade!r}, expected {expected}")
    slot, batch_size = (_number(row.get(name), f"{position}: found the {name}") for name in ("slot", "batch_size"))
    return Recorded(grade or None, status, slot, batch_size)


def _number(text: str | None, label: str) -> int | None:
    if text and not (text.isdecimal() and len(text) < 10):
        raise DataError(f"{label} {text!r}, expected a whole number or nothing")
    return int(text) if text else None


def _object(line: str) -> dict[str, object]:
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


# Recording of a run's ratings in a file that `replay` judges read: for tests, docs and users without a key.


def record(run: Path, path: Path) -> int:
    """Write all ratings of a run as TSV, including those without a grade; return their number.

    The columns are those of `ratings` except `replicate`. A `replay` judge reads the rows of the judge named by its
    setting `assessor`; a panel of `replay` judges with the original names reproduces the run's ratings byte for byte.
    """
    ratings = read_table(run / "judge", "ratings").drop("replicate")
    with replacing(path) as partial_path:
        ratings.write_csv(partial_path, separator="\t")
    return len(ratings)
