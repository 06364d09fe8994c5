"""What people said of a sample: a file per person, a line per answer, appended and never rewritten.

The last line about a row counts; an empty answer takes back what was said. A line is on the disk before `append`
returns, so nothing that was acknowledged is lost in a crash. A crash may leave the beginning of a line, which was not.
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
"""How every line begins, as `append` writes it."""
_TAIL = 256
"""Bytes by which a file that was read before is known again; its last row and time are among them."""
ADJUDICATED = "adjudicated"
"""The name under which final answers are kept; no person may have it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one person said of one row."""

    row_id: str
    answer: str | None
    """One of the form's answers; None for nothing, or nothing any more."""
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
    """Write answers behind those that a person gave before; they are on the disk when this returns."""
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
    """What one person said; a look reads only what was appended since the look before. Threads may share it."""

    def __init__(self, folder: Path, person: str) -> None:
        self._file, self._lock = path(folder, person), Lock()
        self._place: int
        self._lines: int
        self._inode: int
        self._tail: bytes
        self._forget()

    def said(self) -> dict[str, Answer]:
        """Return row -> the last answer, without rows whose answer was taken back and that have no note.

        What was said last stands last. The file is read as it stands now; DataError for a line that is no answer.
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
        whole = raw[len(self._tail) : raw.rfind(b"\n") + 1]  # the rest is being written, or never was acknowledged
        new = list(_answers(self._file, whole, self._lines))
        self._place, self._lines = self._place + len(whole), self._lines + whole.count(b"\n")
        self._tail = (self._tail + whole)[-_TAIL:]
        return new

    def _forget(self) -> None:
        self._last: dict[str, Answer] = {}
        self._place, self._lines, self._inode, self._tail = 0, 0, 0, b""


def history(folder: Path, person: str) -> Iterator[Answer]:
    """Yield every answer of a person in the order in which they came; DataError for a line that is none."""
    file = path(folder, person)
    if file.is_file():
        yield from _answers(file, file.read_bytes(), 0)


def _answers(file: Path, raw: bytes, before: int) -> Iterator[Answer]:
    """Yield the answers in a part of a file that so many lines come before."""
    for number, line in enumerate(raw.split(b"\n"), start=before + 1):
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


def _fields(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise TypeError("an answer is a JSON object")
    return value


def _torn(line: bytes) -> bool:
    """Say whether a line is the beginning of one: it was cut off before it was acknowledged."""
    return line[: len(_BEGIN)] == _BEGIN[: len(line)] and not line.endswith(b'"}')
