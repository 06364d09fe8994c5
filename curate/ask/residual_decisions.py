"""Decisions of users on the residual spans that `mask` lists: mask them, or accept them as no personal data.

`checks/residual.jsonl` of the run has a line per decision: position in the raw text, reason of the listing, decision,
person and time, and a keyed digest of the text; never the text. Lines are only appended; the last on a span counts. A
decision is void once its text has changed. Decisions to mask are an input of the stage `mask`; decisions to accept are
read wherever texts could leave.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import polars as pl
from filelock import FileLock

from curate.core.errors import DataError
from curate.core.records import Span
from curate.pii import pseudonyms
from curate.pii.masking import link

FILE = Path("checks", "residual.jsonl")
PERSON = "person"
"""Name of the recogniser of spans that a person decided to mask."""
PLACE = ("table", "id", "field", "raw_start", "raw_end")
KINDS = {"name": "name", "address": "address", "record": "medical_record"}
"""Reason -> kind of the span masked by a decision; `number` for other reasons."""

Place = tuple[str, str, str, int, int]
"""Table, id, field, start and end in the raw text."""
Verb = Literal["mask", "accept"]


@dataclass(frozen=True)
class Decision:
    """A person's decision on a span."""

    table: str
    id: str
    field: str
    raw_start: int
    raw_end: int
    link: str
    """Keyed digest of the raw text of the field."""
    reason: str
    decision: Verb
    by: str
    time: str
    """ISO 8601 in UTC."""

    @property
    def place(self) -> Place:
        """Return the position of the span."""
        return self.table, self.id, self.field, self.raw_start, self.raw_end


def text_link(key: bytes, text: str) -> str:
    """Return the keyed digest of a raw text that a decision names."""
    return link(key, "text", text)


def read(run: Path) -> dict[Place, Decision]:
    """Return position -> last decision; DataError for a malformed line."""
    path = run / FILE
    decisions: dict[Place, Decision] = {}
    for number, line in enumerate(_complete_lines(path).splitlines(), 1):
        try:
            decision = Decision(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{path}:{number}: no decision that can be read; delete the line and decide again"
            ) from error
        decisions[decision.place] = decision
    return decisions


def _complete_lines(path: Path) -> bytes:
    """Return the complete lines of the file; the rest of an interrupted write was never acknowledged."""
    held = path.read_bytes() if path.is_file() else b""
    return held[: held.rfind(b"\n") + 1]


def append(run: Path, decisions: Sequence[Decision]) -> None:
    """Append decisions, all or none; synced to disk on return."""
    path = run / FILE
    path.parent.mkdir(exist_ok=True)
    lines = "".join(json.dumps(asdict(decision), ensure_ascii=False) + "\n" for decision in decisions).encode()
    with FileLock(f"{path}.lock"), path.open("ab") as stream:
        size = len(_complete_lines(path))
        stream.truncate(size)
        try:
            stream.write(lines)
            stream.flush()
            os.fsync(stream.fileno())
        except OSError:
            os.truncate(path, size)
            raise


def masked(run: Path) -> list[Decision]:
    """Return the decisions to mask, in the order of their positions."""
    return sorted(
        (decision for decision in read(run).values() if decision.decision == "mask"),
        key=lambda decision: decision.place,
    )


def accepted(run: Path) -> pl.DataFrame:
    """Return positions and keyed text digests of the decisions to accept."""
    rows = [(*decision.place, decision.link) for decision in read(run).values() if decision.decision == "accept"]
    schema = {"table": pl.String, "id": pl.String, "field": pl.String, "raw_start": pl.Int32, "raw_end": pl.Int32}
    return pl.DataFrame(rows, {**schema, "link": pl.String}, orient="row").sort(PLACE)


class ToMask:
    """Decisions to mask, as spans of raw texts; `applied` counts those whose text is unchanged."""

    def __init__(self, run: Path, key: bytes) -> None:
        self._key, self._waiting = key, dict[tuple[str, str, str], list[Decision]]()
        for decision in masked(run):
            self._waiting.setdefault(decision.place[:3], []).append(decision)
        self.decided = sum(map(len, self._waiting.values()))
        self.applied = 0

    def of(self, table: str, batch: pl.DataFrame, fields: Mapping[str, str], key: str) -> Iterator[tuple[int, Span]]:
        """Yield number of text and span to mask in a batch; texts are numbered field by field.

        `fields` maps field names of decisions to columns. Decisions name the id under which the row was listed: the
        source's, or its pseudonym.
        """
        if not self._waiting:
            return
        for index, (field, column) in enumerate(fields.items()):
            for row, (raw, text) in enumerate(zip(batch[key], batch[column], strict=True)):
                names = (raw, pseudonyms.name(self._key, raw))
                for decision in (
                    candidate for name in names for candidate in self._waiting.get((table, name, field), ())
                ):
                    if decision.link == text_link(self._key, text):
                        self.applied += 1
                        kind = KINDS.get(decision.reason, "number")
                        yield index * len(batch) + row, Span(decision.raw_start, decision.raw_end, kind, PERSON)


def identity(run: Path) -> list[list[str | int]]:
    """Return the input of `mask`: positions and digests of texts of the decisions to mask."""
    return [[*decision.place, decision.link] for decision in masked(run)]
