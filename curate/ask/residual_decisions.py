"""What people decided on the places that the residual scan of `mask` lists: mask it, or accept it as no personal data.

`checks/residual.jsonl` of the run holds a line per decision: the place in the raw text, why it was listed, who decided
what and when, and a keyed digest of the text; never the text. Lines are only appended, and the last about a place
counts. A decision belongs to a text: once the text has changed, it counts no more. Decisions to mask are an input of
the stage `mask`, those to accept of all that would carry the texts away.
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
"""Recogniser of a span that a person decided to mask."""
PLACE = ("table", "id", "field", "raw_start", "raw_end")
KINDS = {"name": "name", "address": "address", "record": "medical_record"}
"""Reason -> kind of what is masked by a decision; of other reasons `number`."""

Place = tuple[str, str, str, int, int]
"""Table, id, field, start and end in the raw text."""
Verb = Literal["mask", "accept"]


@dataclass(frozen=True)
class Decision:
    """What a person decided on a place."""

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
        """Return where it belongs."""
        return self.table, self.id, self.field, self.raw_start, self.raw_end


def text_link(key: bytes, text: str) -> str:
    """Return the keyed digest of a raw text that a decision names."""
    return link(key, "text", text)


def read(run: Path) -> dict[Place, Decision]:
    """Return the decision that counts for every place; DataError for a line that cannot be read."""
    path = run / FILE
    found: dict[Place, Decision] = {}
    for number, line in enumerate(_whole(path).splitlines(), 1):
        try:
            decision = Decision(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{path}:{number}: no decision that can be read; delete the line and decide again"
            ) from error
        found[decision.place] = decision
    return found


def _whole(path: Path) -> bytes:
    """Return the lines of the file; what a kill has left of one was never acknowledged, and is none."""
    held = path.read_bytes() if path.is_file() else b""
    return held[: held.rfind(b"\n") + 1]


def append(run: Path, decisions: Sequence[Decision]) -> None:
    """Write decisions behind the earlier ones, all of them or none; they are on the disk when this returns."""
    path = run / FILE
    path.parent.mkdir(exist_ok=True)
    lines = "".join(json.dumps(asdict(decision), ensure_ascii=False) + "\n" for decision in decisions).encode()
    with FileLock(f"{path}.lock"), path.open("ab") as stream:
        size = len(_whole(path))
        stream.truncate(size)
        try:
            stream.write(lines)
            stream.flush()
            os.fsync(stream.fileno())
        except OSError:
            os.truncate(path, size)
            raise


def masked(run: Path) -> list[Decision]:
    """Return the decisions to mask, in the order of their places."""
    return sorted((each for each in read(run).values() if each.decision == "mask"), key=lambda each: each.place)


def accepted(run: Path) -> pl.DataFrame:
    """Return places and links of the decisions to accept."""
    rows = [(*each.place, each.link) for each in read(run).values() if each.decision == "accept"]
    schema = {"table": pl.String, "id": pl.String, "field": pl.String, "raw_start": pl.Int32, "raw_end": pl.Int32}
    return pl.DataFrame(rows, {**schema, "link": pl.String}, orient="row").sort(PLACE)


class ToMask:
    """Decisions to mask, as spans of raw texts; counts those whose text was found."""

    def __init__(self, run: Path, key: bytes) -> None:
        self._key, self._waiting = key, dict[tuple[str, str, str], list[Decision]]()
        for each in masked(run):
            self._waiting.setdefault(each.place[:3], []).append(each)
        self.decided = sum(map(len, self._waiting.values()))
        self.applied = 0

    def of(self, table: str, batch: pl.DataFrame, fields: Mapping[str, str], key: str) -> Iterator[tuple[int, Span]]:
        """Yield number and span of what is to be masked in the texts of a batch, which are counted field by field.

        `fields` is what decisions call a field -> its column. Decisions on a text name the id that its row was listed
        under: that of the source, or the name in its place.
        """
        if not self._waiting:
            return
        for place, (field, column) in enumerate(fields.items()):
            for row, (raw, text) in enumerate(zip(batch[key], batch[column], strict=True)):
                names = (raw, pseudonyms.name(self._key, raw))
                for each in (found for name in names for found in self._waiting.get((table, name, field), ())):
                    if each.link == text_link(self._key, text):
                        self.applied += 1
                        kind = KINDS.get(each.reason, "number")
                        yield place * len(batch) + row, Span(each.raw_start, each.raw_end, kind, PERSON)


def identity(run: Path) -> list[list[str | int]]:
    """Return what the tables of `mask` depend on: places and texts of the decisions to mask."""
    return [[*each.place, each.link] for each in masked(run)]
