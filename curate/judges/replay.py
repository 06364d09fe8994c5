"""Grades recorded before: a table of grades, or a file of whole replies."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from curate.config import Json, Section
from curate.errors import DataError
from curate.files import sha256
from curate.parse import parse
from curate.prompts import labels
from curate.protocols import Kit
from curate.records import GRADES, Document, Grade, Outcome, Query

Pair = tuple[str, str]


class Config(Section):
    """Where the grades are."""

    path: Path
    """TSV or CSV with the columns query_id, doc_id, grade; or JSONL with query_id, doc_ids and reply (a model's text,
    read as strictly as a fresh one). With several raters the rows also have `judge` or `assessor`."""
    assessor: str | None = None
    """Whose rows are taken; None takes all."""


class Replay:
    """Give back recorded grades by query and document id; a pair that is not recorded is `failed`."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:  # noqa: ARG002 - every judge is given the kit
        self.name, self.path, self._assessor = name, config.path, config.assessor
        if not self.path.is_file():
            raise DataError(f"judges.{name}.path: {self.path}: no such file; give a file of recorded grades or replies")
        self.identity: Mapping[str, Json] = {"replay": sha256(self.path), "assessor": config.assessor}
        self._recorded: dict[Pair, Outcome] | None = None

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        """Return one outcome a passage."""
        if self._recorded is None:
            self._recorded = self._read()
        missing = Outcome(None, "failed")
        return [self._recorded.get((query.query_id, passage.doc_id), missing) for passage in passages]

    def _read(self) -> dict[Pair, Outcome]:
        rows = self._replies() if self.path.suffix == ".jsonl" else self._grades()
        recorded: dict[Pair, Outcome] = {}
        try:
            for line, pair, outcome in rows:
                before = recorded.setdefault(pair, outcome)
                if before.grade is None:
                    recorded[pair] = outcome
                elif outcome.grade not in (None, before.grade):
                    raise DataError(
                        f"{self.path}:{line}: query {pair[0]!r}, document {pair[1]!r} has the grade {outcome.grade} "
                        f"here and {before.grade} above; name one in judges.{self.name}.assessor, or mend the file"
                    )
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path}: found text that is not UTF-8; save the file as UTF-8") from error
        if not recorded:
            whose = "" if self._assessor is None else f" of assessor {self._assessor!r}"
            raise DataError(f"{self.path}: no row{whose}; check judges.{self.name}")
        return recorded

    def _grades(self) -> Iterator[tuple[int, Pair, Outcome]]:
        known: dict[str | None, Grade] = {grade: grade for grade in GRADES}
        with self.path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream, delimiter="," if self.path.suffix == ".csv" else "\t")
            lacking = {"query_id", "doc_id", "grade"} - set(rows.fieldnames or ())
            if lacking:
                found = ", ".join(rows.fieldnames or ()) or "nothing"
                raise DataError(f"{self.path}:1: found the columns {found}; add {', '.join(sorted(lacking))}")
            for row in rows:
                if row["grade"] not in known:
                    found = repr(row["grade"] or "")
                    raise DataError(f"{self.path}:{rows.line_num}: found the grade {found}, expected S, A, B, C or D")
                if self._wanted(row):
                    yield rows.line_num, (row["query_id"], row["doc_id"]), Outcome(known[row["grade"]])

    def _replies(self) -> Iterator[tuple[int, Pair, Outcome]]:
        with self.path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                row = _object(line)
                query_id, doc_ids, reply = row.get("query_id"), row.get("doc_ids"), row.get("reply", 0)
                if not (isinstance(query_id, str) and _is_texts(doc_ids) and isinstance(reply, str | None)):
                    raise DataError(
                        f"{self.path}:{number}: expected a JSON object with query_id (text), doc_ids (a list of texts) "
                        "and reply (text or null); mend or remove the line"
                    )
                if self._wanted(row):
                    grades = parse(reply, labels(len(doc_ids))).grades.values()
                    for doc_id, grade in zip(doc_ids, grades, strict=True):
                        yield number, (query_id, doc_id), Outcome(grade) if grade else Outcome(None, "unparsed")

    def _wanted(self, row: Mapping[str, object]) -> bool:
        return self._assessor is None or self._assessor == (row.get("judge") or row.get("assessor"))


def _object(line: str) -> dict[str, object]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
