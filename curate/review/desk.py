"""One sample on the desk: who reads what, what was said, and where a new answer goes.

The page and the files of a spreadsheet write through it, so both write the same thing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from curate.core.config import Json
from curate.core.errors import ConfigError, suggestion
from curate.review import answers
from curate.review.answers import ADJUDICATED, Answer, Heard
from curate.review.sample import Sample, SampleRow
from curate.system.files import digests, frame, sha256


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

    @staticmethod
    def adjudicated(said: Mapping[str, str]) -> bool:
        """Say whether a row has a final answer; `said` is person -> answer."""
        return ADJUDICATED in said

    @staticmethod
    def settled(readers: Sequence[str], said: Mapping[str, str]) -> str | None:
        """Return the answer that counts: the final one, else that of the first of its readers who has given one."""
        return next((said[person] for person in (ADJUDICATED, *readers) if person in said), None)

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
        new = [answer for answer in given if _differs(answer, before.get(answer.row_id))]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if new:
            answers.append(self.sample.folder, person, [replace(answer, time=now) for answer in new])
        return len(new)

    def reviews(self) -> pl.DataFrame:
        """Return the `reviews` table: the last grade of everybody for every pair, sorted; controls are left out."""
        drawn = self.sample.survey.filter(pl.col("expected").is_null())
        keys = {row[0]: row[1:] for row in drawn.select("row_id", "ids", "probability").iter_rows()}
        rows = [
            {
                "query_id": keys[row_id][0][0],
                "doc_id": keys[row_id][0][1],
                "assessor": person,
                "grade": answer.answer,
                "note": answer.note,
                "sampled_weight": 1 / keys[row_id][1],
            }
            for person in self.people()
            for row_id, answer in self.said(person).items()
            if row_id in keys and answer.answer
        ]
        return frame("reviews", rows).sort("query_id", "doc_id", "assessor")

    @property
    def digest(self) -> list[Json]:
        """Return what identifies the sample and everything that was said of it."""
        return [digests(self.sample.folder / "answers"), sha256(self.sample.folder / "design.json")]

    def _known(self, person: str) -> None:
        if person not in (*self.assessors, ADJUDICATED):
            raise ConfigError(f"assessor {person!r}: {suggestion(person, self.assessors)}")


def _differs(answer: Answer, before: Answer | None) -> bool:
    said = (before.answer, before.note) if before else (None, "")
    return (answer.answer, answer.note) != said


def relevance_desks(run: Path) -> list[Desk]:
    """Return the samples of a run in which people were asked what the panel was asked, by name."""
    found = [Sample.load(path.parent) for path in sorted((run / "reviews").glob("*/design.json"))]
    return [Desk(each) for each in found if each.design.form == "relevance" and each.design.facts.get("of") != "audit"]
