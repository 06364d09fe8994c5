"""One sample on the desk: who reads what, what was said, and where a new answer goes.

The page and the files of a spreadsheet write through it, so both write the same thing.
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
        """Return who the sample was handed to, in the order of the design."""
        return list(self.sample.design.assessors)

    def rows(self, person: str) -> list[SampleRow]:
        """Return what a person is to read, in reading order; ConfigError for a stranger."""
        self._known(person)
        return list(self.sample.rows.values()) if person == ADJUDICATED else self.sample.of(person)

    def said(self, person: str) -> dict[str, Answer]:
        """Return row -> what a person last said of it; what was said last stands last."""
        self._known(person)
        return self._heard.setdefault(person, Heard(self.sample.folder, person)).said()

    def people(self) -> list[str]:
        """Return whose answers there may be: the assessors, and the adjudicator."""
        return [*self.assessors, ADJUDICATED]

    def answered(self) -> Iterator[tuple[dict[str, Any], dict[str, str], str | None]]:
        """Yield every row of the survey, person -> answer, and the answer that counts; None without any.

        The one that counts is the final one, else that of the first of the row's readers who has given one.
        """
        said = {person: self.said(person) for person in self.people()}
        for row in self.sample.survey.iter_rows(named=True):
            kept = {who: answers[row["row_id"]].answer for who, answers in said.items() if row["row_id"] in answers}
            given = {who: answer for who, answer in kept.items() if answer}
            counts = next((given[who] for who in (ADJUDICATED, *row["assessors"]) if who in given), None)
            yield row, given, counts

    def record(self, person: str, given: Sequence[Answer]) -> int:
        """Keep answers; returns how many of them say something new. They are on the disk when this returns.

        ConfigError for a stranger, a row that is not the person's, or an answer that the form does not have.
        """
        mine = {row.row_id for row in self.rows(person)}
        for answer in given:
            if answer.row_id not in mine:
                raise ConfigError(f"row {answer.row_id!r} is not among those of {person!r}")
            if answer.answer is not None and answer.answer not in self.sample.form.answers:
                raise ConfigError(
                    f"{answer.answer!r} is no answer; {suggestion(answer.answer, self.sample.form.answers)}"
                )
        before = self.said(person)
        old = ((answer, before.get(answer.row_id, Answer(answer.row_id, None))) for answer in given)
        new = [answer for answer, said in old if (answer.answer, answer.note) != (said.answer, said.note)]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if new:
            answers.append(self.sample.folder, person, [replace(answer, time=now) for answer in new])
        return len(new)

    def reviews(self) -> pl.DataFrame:
        """Return the `reviews` table: the last grade of everybody for every pair, sorted; controls are left out."""
        said = {person: self.said(person) for person in self.people()}
        rows = [
            {
                **dict(zip(PAIR, row["ids"], strict=True)),
                "assessor": person,
                "grade": grade,
                "note": said[person][row["row_id"]].note,
                "sampled_weight": 1 / row["probability"] if row["probability"] else None,
            }
            for row, given, _ in self.answered()
            if row["expected"] is None
            for person, grade in given.items()
        ]
        return frame("reviews", rows).sort("query_id", "doc_id", "assessor")

    @property
    def digest(self) -> list[Json] | None:
        """Return what identifies the sample and everything that was said of it; None before the first answer."""
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
    return [desk for desk in random_desks(run) if desk.sample.design.facts.get("of") != "audit"]


def random_desks(run: Path) -> list[Desk]:
    """Return the samples whose answers are grades and that were drawn at random of all judged pairs, by name."""
    return [desk for desk in graded_desks(run) if not desk.sample.of_some and not desk.sample.of_pilot]


def graded_desks(run: Path) -> list[Desk]:
    """Return the samples of a run whose answers are grades of its scale, by name; others tell nothing of it."""
    scale = read_scale(run / "judge")
    samples = [desk for desk in desks(run) if desk.sample.design.form == "relevance"]
    return [desk for desk in samples if desk.sample.scale == scale]


def settled(run: Path) -> pl.DataFrame:
    """Return the pairs that people graded: query_id, doc_id, grade, and how many pairs of the pool the row stands for.

    Only drawn rows of random samples of all judged pairs, not their controls. Of a pair in several samples the first
    counts, by name.
    """
    return _answers(random_desks(run))


def known(run: Path) -> pl.DataFrame:
    """Return the pairs that may be controls of judges, as `settled` has them: those of pilots too.

    Nothing is estimated from a pilot, for the panel was chosen on it; but what people found of its pairs stands.
    """
    return _answers([*random_desks(run), *(desk for desk in graded_desks(run) if desk.sample.of_pilot)])


def _answers(found: Sequence[Desk]) -> pl.DataFrame:
    rows = [
        (*row["ids"], grade, 1 / row["probability"])
        for desk in found
        for row, _, grade in desk.answered()
        if grade and row["expected"] is None
    ]
    columns = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.String, "weight": pl.Float64}
    return pl.DataFrame(rows, columns, orient="row").unique(PAIR, keep="first", maintain_order=True)
