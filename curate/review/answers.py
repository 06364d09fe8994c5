"""Answers to a sample: one file per person, one line per answer, append-only.

The last line about a row counts; an empty answer withdraws an earlier one. A line is on the disk before `append`
returns, so no acknowledged answer is lost in a crash. A crash may leave an incomplete line, which was not acknowledged.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from filelock import FileLock

from curate.core.errors import ConfigError, DataError

NAME = re.compile(r"[\w.-]{1,40}", re.UNICODE)
_BEGIN = b'{"row_id": "'
"""Start of every line, as `append` writes it."""
_TAIL = 256
"""Number of last bytes by which a file is recognised on the next read; they include the last row and its time."""
ADJUDICATED = "adjudicated"
"""Reserved name under which final answers are stored."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of one person to one row."""

    row_id: str
    answer: str | None
    """One of the form's answers; None if there is none or it was withdrawn."""
    note: str = ""
    time: str = ""
    """When it was given, ISO 8601 in UTC."""
    source: str = ""
    """`page`, or the name of the file that it came from."""


def checked(name: str, whose: str = "assessor") -> str:
    """Return the name of an assessor or a sample; ConfigError if it could not be a file's name."""
    if not NAME.fullmatch(name) or name.startswith("."):
        raise ConfigError(
            f"{whose} {name!r}: expected 1 to 40 letters, digits, - _ or . without blanks; choose such a name"
        )
    return name


def path(folder: Path, person: str) -> Path:
    """Return the file of a person's answers."""
    return folder / "answers" / f"{checked(person)}.jsonl"


def append(folder: Path, person: str, answers: Sequence[Answer]) -> None:
    """Append answers to a person's file; they are on the disk when this returns."""
    file = path(folder, person)
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in answers)
    with FileLock(f"{file}.lock"), file.open("ab+") as stream:
        if stream.tell() and os.pread(stream.fileno(), 1, stream.tell() - 1) != b"\n":
            lines = "\n" + lines  # what a crash left of a line must not swallow this one
        stream.write(lines.encode("utf-8"))
        stream.flush()
        os.fsync(stream.fileno())


class Heard:
    """Reader of one person's answers that reads only lines appended since the last call; thread-safe."""

    def __init__(self, folder: Path, person: str) -> None:
        self._file, self._lock = path(folder, person), Lock()
        self._place: int
        self._lines: int
        self._inode: int
        self._tail: bytes
        self._forget()

    def said(self) -> dict[str, Answer]:
        """Return row -> last answer, without rows whose answer was withdrawn and that have no note.

        Sorted by time, the latest answer last. DataError for an invalid line.
        """
        with self._lock:
            for answer in self._new():
                self._last.pop(answer.row_id, None)
                if answer.answer or answer.note:
                    self._last[answer.row_id] = answer
            return dict(self._last)

    def _new(self) -> list[Answer]:
        if not self._file.is_file():
            self._forget()
            return []
        with self._file.open("rb") as stream:
            stream.seek(self._place - len(self._tail))
            raw = stream.read()
            if os.fstat(stream.fileno()).st_ino != self._inode or not raw.startswith(self._tail):
                self._forget()  # another file: an older one was put in its place
                self._inode = os.fstat(stream.fileno()).st_ino
                stream.seek(0)
                raw = stream.read()
        complete = raw[
            len(self._tail) : raw.rfind(b"\n") + 1
        ]  # an incomplete last line is still being written, or was never acknowledged
        new = list(_answers(self._file, complete, self._lines))
        self._place, self._lines = self._place + len(complete), self._lines + complete.count(b"\n")
        self._tail = (self._tail + complete)[-_TAIL:]
        return new

    def _forget(self) -> None:
        self._last: dict[str, Answer] = {}
        self._place, self._lines, self._inode, self._tail = 0, 0, 0, b""


def history(folder: Path, person: str) -> Iterator[Answer]:
    """Yield every answer of a person in the order in which they came; DataError for a line that is none."""
    file = path(folder, person)
    if file.is_file():
        yield from _answers(file, file.read_bytes(), 0)


def _answers(file: Path, raw: bytes, lines_before: int) -> Iterator[Answer]:
    """Yield the answers in a part of a file that starts after `lines_before` lines."""
    for number, line in enumerate(raw.split(b"\n"), start=lines_before + 1):
        if not line.strip():
            continue
        try:
            yield Answer(**_fields(json.loads(line)))
        except (ValueError, TypeError) as error:
            if _torn(line):
                continue
            raise DataError(
                f"{file}, line {number}: found a damaged line, expected an answer as `curate review` writes it; "
                "put a copy of the file back, or take the line out"
            ) from error


def _fields(record: object) -> Mapping[str, str]:
    if not isinstance(record, dict):
        raise TypeError("an answer is a JSON object")
    return record


def _torn(line: bytes) -> bool:
    """Return whether a line is the start of an answer that a crash cut off before it was acknowledged."""
    return line[: len(_BEGIN)] == _BEGIN[: len(line)] and not line.endswith(b'"}')
