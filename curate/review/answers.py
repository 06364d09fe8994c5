"""What people said of a sample: a file a person, a line an answer, appended and never rewritten.

The last line about a row counts; an empty answer takes back what was said. A line is on the disk before `append`
returns, so nothing that was acknowledged is lost in a crash. A crash may leave the beginning of a line, which was not.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from curate.errors import ConfigError, DataError

NAME = re.compile(r"[\w.-]{1,40}", re.UNICODE)
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


def checked(person: str) -> str:
    """Return the name of an assessor; ConfigError if it could not be a file's name."""
    if not NAME.fullmatch(person) or person.startswith("."):
        raise ConfigError(
            f"assessor {person!r}: expected 1 to 40 letters, digits, - _ or . without blanks; choose such a name"
        )
    return person


def path(folder: Path, person: str) -> Path:
    """Return the file of a person's answers."""
    return folder / "answers" / f"{checked(person)}.jsonl"


def append(folder: Path, person: str, answers: Sequence[Answer]) -> None:
    """Write answers behind those that a person gave before; they are on the disk when this returns."""
    file = path(folder, person)
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in answers)
    with FileLock(f"{file}.lock"), file.open("ab+") as stream:
        if stream.tell() and not _ends_a_line(stream.fileno(), stream.tell()):
            lines = "\n" + lines  # what a crash left of a line must not swallow this one
        stream.write(lines.encode("utf-8"))
        stream.flush()
        os.fsync(stream.fileno())


def _ends_a_line(descriptor: int, size: int) -> bool:
    return os.pread(descriptor, 1, size - 1) == b"\n"


def said(folder: Path, person: str) -> dict[str, Answer]:
    """Return row -> the last answer of a person, without rows whose answer was taken back and that have no note."""
    last = {answer.row_id: answer for answer in history(folder, person)}
    return {row_id: answer for row_id, answer in last.items() if answer.answer or answer.note}


def history(folder: Path, person: str) -> Iterator[Answer]:
    """Yield every answer of a person in the order in which they came; DataError for a line that is none."""
    file = path(folder, person)
    if not file.is_file():
        return
    raw = file.read_bytes()
    lines = raw.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield Answer(**_fields(json.loads(line)))
        except (ValueError, TypeError) as error:
            if _torn(line):
                continue
            raise DataError(f"{file}, line {number}: expected an answer as `curate review` writes it") from error


def _fields(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise TypeError("an answer is a JSON object")
    return value


def _torn(line: bytes) -> bool:
    """Say whether a line is the beginning of one: it was cut off before it was acknowledged."""
    return line.startswith(b'{"row_id": ') and not line.rstrip().endswith(b"}")


def people(folder: Path) -> list[str]:
    """Return the names of those who have answered, sorted; `ADJUDICATED` may be one of them."""
    return sorted(file.stem for file in (folder / "answers").glob("*.jsonl"))
