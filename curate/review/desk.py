"""A sample with its answers: one append-only file per assessor, written by the review app and by sheet imports.

The last line about a row counts; an empty answer withdraws an earlier one. A line is on the disk before `append`
returns, so no acknowledged answer is lost in a crash. A crash may leave an incomplete line, which was not acknowledged.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.core.errors import ConfigError, DataError, suggestion
from curate.panel.voting import PAIR
from curate.review.sample import Sample, SampleRow
from curate.system.files import append_lines, digests, frame, read_lines, read_scale, sha256

NAME = re.compile(r"[\w.-]{1,40}", re.UNICODE)
_BEGIN = b'{"row_id": "'
"""Start of every line, as `append` writes it."""
_TAIL = 256
"""Number of bytes at the end of a file that must be unchanged at the next read; else it is another file, read anew."""
FLAGS = "flags.jsonl"
"""File with the flags of assessors; see `flags`."""
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
    """Time of recording, ISO 8601 in UTC."""
    source: str = ""
    """`page`, or the name of the file that it came from."""


def checked(name: str, whose: str = "assessor") -> str:
    """Return `name`, of an assessor or a sample; ConfigError if it is not valid as a file name.

    `whose` is the object named in the message.
    """
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
    append_lines(file, [asdict(answer) for answer in answers])


class Heard:
    """Incremental reader of one person's answers: a call only reads lines appended since the last one; thread-safe."""

    def __init__(self, folder: Path, person: str) -> None:
        self._file, self._lock = path(folder, person), Lock()
        self._place: int
        self._lines: int
        self._inode: int
        self._tail: bytes
        self._forget()

    def said(self) -> dict[str, Answer]:
        """Return row -> last answer, in the order of recording, latest last; DataError for a damaged line.

        A row whose answer was withdrawn is left out unless it has a note.
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
        new = list(_answers_of_lines(self._file, complete, self._lines))
        self._place, self._lines = self._place + len(complete), self._lines + complete.count(b"\n")
        self._tail = (self._tail + complete)[-_TAIL:]
        return new

    def _forget(self) -> None:
        self._last: dict[str, Answer] = {}
        self._place, self._lines, self._inode, self._tail = 0, 0, 0, b""


def history(folder: Path, person: str) -> Iterator[Answer]:
    """Yield every answer of a person in the order of arrival; DataError for a damaged line."""
    file = path(folder, person)
    if file.is_file():
        yield from _answers_of_lines(file, file.read_bytes(), 0)


def _answers_of_lines(file: Path, raw: bytes, lines_before: int) -> Iterator[Answer]:
    """Yield the answers in a part of a file that starts after `lines_before` lines."""
    for number, line in enumerate(raw.split(b"\n"), start=lines_before + 1):
        if not line.strip():
            continue
        try:
            yield Answer(**_fields(json.loads(line)))
        except (ValueError, TypeError) as error:
            # the start of an answer that a crash cut off before it was acknowledged
            if line[: len(_BEGIN)] == _BEGIN[: len(line)] and not line.endswith(b'"}'):
                continue
            raise DataError(
                f"{file}, line {number}: found a damaged line, expected an answer as `curate review` writes it; "
                "put a copy of the file back, or take the line out"
            ) from error


def _fields(record: object) -> Mapping[str, str]:
    if not isinstance(record, dict):
        raise TypeError("an answer is a JSON object")
    return record


# One sample on the desk: who reads what, what was said, and where a new answer goes.


class Desk:
    """A sample and the answers to it."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self._heard: dict[str, Heard] = {}

    @property
    def assessors(self) -> list[str]:
        """Return the assessors, in the order of the design."""
        return list(self.sample.design.assessors)

    def rows(self, person: str) -> list[SampleRow]:
        """Return a person's rows in reading order; ConfigError for an unknown person."""
        self._check_person(person)
        if person == ADJUDICATED:
            return list(self.sample.rows.values())
        passed_on = [self.sample.rows[row_id] for row_id, _, to in self._passed_on() if to == person]
        return [*self.sample.of(person), *passed_on]

    def _passed_on(self) -> list[tuple[str, str, str]]:
        """Return (row, assessor, new assessor) of the rows that an assessor passed on, oldest first."""
        records = [record for _, record in read_lines(self.sample.folder / FLAGS)]
        moves = [(record["row_id"], record.get("person", ""), record["to"]) for record in records if record.get("to")]
        return [*dict.fromkeys(moves)]

    def said(self, person: str) -> dict[str, Answer]:
        """Return row -> a person's last answer, sorted by time."""
        self._check_person(person)
        return self._heard.setdefault(person, Heard(self.sample.folder, person)).said()

    def people(self) -> list[str]:
        """Return the persons who may answer: the assessors and the adjudicator."""
        return [*self.assessors, ADJUDICATED]

    def answered(self) -> Iterator[tuple[dict[str, Any], dict[str, str], str | None]]:
        """Yield every row of the survey with its answers (person -> answer) and its final answer.

        Its `assessors` are those who read it now: who passed it on and has not answered is not among them. The final
        answer is the adjudicated one, else the first in the order of the row's assessors, else None.
        """
        answers_of = {person: self.said(person) for person in self.people()}
        passed_on = {(row_id, by): to for row_id, by, to in self._passed_on()}
        for row in self.sample.survey.iter_rows(named=True):
            row["assessors"] = [
                passed_on.get((row["row_id"], person), person) if row["row_id"] not in answers_of[person] else person
                for person in row["assessors"]
            ]
            last_answers = {
                who: answers[row["row_id"]].answer for who, answers in answers_of.items() if row["row_id"] in answers
            }
            grades = {who: answer for who, answer in last_answers.items() if answer}
            counts = next((grades[who] for who in (ADJUDICATED, *row["assessors"]) if who in grades), None)
            yield row, grades, counts

    def open_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows that a reader has not answered, or on which readers do not agree before adjudication."""
        for row, grades, _ in self.answered():
            unread = any(person not in grades for person in row["assessors"])
            if ADJUDICATED not in grades and (unread or not self.sample.scale.agree(grades.values())):
                yield row

    def record(self, person: str, entries: Sequence[Answer]) -> int:
        """Append the answers that differ from a person's current ones; return their number, once they are on the disk.

        ConfigError for an unknown person, another person's row, or an answer that is not in the form.
        """
        own_rows = {row.row_id for row in self.rows(person)}
        for answer in entries:
            if answer.row_id not in own_rows:
                raise ConfigError(f"row {answer.row_id!r} is not among those of {person!r}")
            if answer.answer is not None and answer.answer not in self.sample.form.answers:
                raise ConfigError(
                    f"{answer.answer!r} is no answer; {suggestion(answer.answer, self.sample.form.answers)}"
                )
        earlier = self.said(person)
        old = ((answer, earlier.get(answer.row_id, Answer(answer.row_id, None))) for answer in entries)
        new = [
            answer
            for answer, earlier_answer in old
            if (answer.answer, answer.note) != (earlier_answer.answer, earlier_answer.note)
        ]
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        if new:
            append(self.sample.folder, person, [replace(answer, time=now) for answer in new])
        return len(new)

    def reviews(self) -> pl.DataFrame:
        """Return the `reviews` table: every person's last grade of every pair, sorted, without control rows."""
        answers_of = {person: self.said(person) for person in self.people()}
        rows = [
            {
                **dict(zip(PAIR, row["ids"], strict=True)),
                "assessor": person,
                "grade": grade,
                "note": answers_of[person][row["row_id"]].note,
                "sampled_weight": 1 / row["probability"] if row["probability"] else None,
            }
            for row, grades, _ in self.answered()
            if row["expected"] is None
            for person, grade in grades.items()
        ]
        return frame("reviews", rows).sort("query_id", "doc_id", "assessor")

    @property
    def digest(self) -> list[Json] | None:
        """Return digests of the sample's design and of its files of answers; None before the first answer."""
        if not any((self.sample.folder / "answers").glob("*")):
            return None
        return [digests(self.sample.folder / "answers"), sha256(self.sample.folder / "design.json")]

    def _check_person(self, person: str) -> None:
        if person not in (*self.assessors, ADJUDICATED):
            raise ConfigError(f"assessor {person!r}: {suggestion(person, self.assessors)}")


def desks(run: Path) -> list[Desk]:
    """Return all samples of a run, by name."""
    return [Desk(Sample.load(path.parent)) for path in sorted((run / "reviews").glob("*/design.json"))]


def relevance_desks(run: Path) -> list[Desk]:
    """Return the random samples of all judged pairs of a run, without those of `curate audit`, by name."""
    return [review for review in random_desks(run) if review.sample.design.facts.get("of") != "audit"]


def random_desks(run: Path) -> list[Desk]:
    """Return the samples with graded answers that were drawn at random from all judged pairs, by name."""
    return [review for review in graded_desks(run) if not review.sample.of_some and not review.sample.of_pilot]


def graded_desks(run: Path) -> list[Desk]:
    """Return the samples of a run whose answers are grades on the scale of its judges, by name."""
    scale = read_scale(run / "judge")
    samples = [review for review in desks(run) if review.sample.design.form == "relevance"]
    return [review for review in samples if review.sample.scale == scale]


def settled(run: Path) -> pl.DataFrame:
    """Return the pairs that assessors graded: query_id, doc_id, grade, weight.

    The weight is the number of pairs of the pool that a drawn row represents. Random samples of all judged pairs count,
    without their planted controls. If a pair is in several samples, the first sample by name counts.
    """
    return _answers(random_desks(run))


def known(run: Path) -> pl.DataFrame:
    """Return the pairs that can serve as control pairs, with the columns of `settled`, including those of pilots.

    Pilots are excluded from estimates, because the panel was chosen on them, but their grades are valid.
    """
    return _answers([*random_desks(run), *(review for review in graded_desks(run) if review.sample.of_pilot)])


def _answers(reviews: Sequence[Desk]) -> pl.DataFrame:
    rows = [
        (*row["ids"], grade, 1 / row["probability"])
        for review in reviews
        for row, _, grade in review.answered()
        if grade and row["expected"] is None
    ]
    columns = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.String, "weight": pl.Float64}
    return pl.DataFrame(rows, columns, orient="row").unique(PAIR, keep="first", maintain_order=True)
