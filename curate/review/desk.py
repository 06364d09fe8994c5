"""A sample with its answers: the rows of every assessor, the answers so far, and recording of new ones.

Both the page and returned spreadsheets record answers through it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.core.errors import ConfigError, suggestion
from curate.panel.voting import PAIR
from curate.review import answers
from curate.review.answers import ADJUDICATED, Answer, Heard
from curate.review.sample import Sample, SampleRow
from curate.system.files import digests, frame, read_scale, sha256


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
        self._known(person)
        return list(self.sample.rows.values()) if person == ADJUDICATED else self.sample.of(person)

    def said(self, person: str) -> dict[str, Answer]:
        """Return row -> a person's last answer, sorted by time."""
        self._known(person)
        return self._heard.setdefault(person, Heard(self.sample.folder, person)).said()

    def people(self) -> list[str]:
        """Return everybody who may answer: the assessors and the adjudicator."""
        return [*self.assessors, ADJUDICATED]

    def answered(self) -> Iterator[tuple[dict[str, Any], dict[str, str], str | None]]:
        """Yield every row of the survey, person -> answer, and the final answer; None without any.

        The final answer is the adjudicated one, else that of the row's first reader who has given one.
        """
        answers_of = {person: self.said(person) for person in self.people()}
        for row in self.sample.survey.iter_rows(named=True):
            last_answers = {
                who: answers[row["row_id"]].answer for who, answers in answers_of.items() if row["row_id"] in answers
            }
            grades = {who: answer for who, answer in last_answers.items() if answer}
            counts = next((grades[who] for who in (ADJUDICATED, *row["assessors"]) if who in grades), None)
            yield row, grades, counts

    def record(self, person: str, entries: Sequence[Answer]) -> int:
        """Store answers that differ from earlier ones; return their number. They are on the disk when this returns.

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
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if new:
            answers.append(self.sample.folder, person, [replace(answer, time=now) for answer in new])
        return len(new)

    def reviews(self) -> pl.DataFrame:
        """Return the `reviews` table: everybody's last grade of every pair, sorted, without controls."""
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
        """Return the identity of the sample and all its answers; None before the first answer."""
        if not any((self.sample.folder / "answers").glob("*")):
            return None
        return [digests(self.sample.folder / "answers"), sha256(self.sample.folder / "design.json")]

    def _known(self, person: str) -> None:
        if person not in (*self.assessors, ADJUDICATED):
            raise ConfigError(f"assessor {person!r}: {suggestion(person, self.assessors)}")


def desks(run: Path) -> list[Desk]:
    """Return all samples of a run, by name."""
    return [Desk(Sample.load(path.parent)) for path in sorted((run / "reviews").glob("*/design.json"))]


def relevance_desks(run: Path) -> list[Desk]:
    """Return the samples of a run's labels from which figures of all judged pairs are estimated, by name."""
    return [review for review in random_desks(run) if review.sample.design.facts.get("of") != "audit"]


def random_desks(run: Path) -> list[Desk]:
    """Return the samples whose answers are grades and that were drawn at random of all judged pairs, by name."""
    return [review for review in graded_desks(run) if not review.sample.of_some and not review.sample.of_pilot]


def graded_desks(run: Path) -> list[Desk]:
    """Return the samples of a run whose answers are grades of its scale, by name."""
    scale = read_scale(run / "judge")
    samples = [review for review in desks(run) if review.sample.design.form == "relevance"]
    return [review for review in samples if review.sample.scale == scale]


def settled(run: Path) -> pl.DataFrame:
    """Return the pairs that people graded: query_id, doc_id, grade, and weight (pairs of the pool per drawn row).

    Only drawn rows of random samples of all judged pairs, without controls. Of a pair in several samples the first
    one by sample name counts.
    """
    return _answers(random_desks(run))


def known(run: Path) -> pl.DataFrame:
    """Return the pairs that may be controls of judges, as `settled` has them: those of pilots too.

    A pilot is excluded from estimates, because the panel was chosen on it, but its grades are valid.
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
