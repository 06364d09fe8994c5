"""A pilot in the small run with known truth, and people who grade it."""

from collections.abc import Callable
from pathlib import Path

from curate.commands.pilot.export import PilotExportCommand, draw
from curate.review import Answer, Desk, Sample
from curate.runs.runner import Run
from tests.support.controlled import DOCUMENTS

PEOPLE = ("ann", "ben")


def drawn(run: Run, size: int = 120) -> Sample:
    """Draw a pilot from the pool of a run."""
    return draw(run, PilotExportCommand(assessors=PEOPLE, size=size, seed=3))


def true(_row: int, doc_id: str) -> str:
    """Return the grade that a document deserves."""
    return DOCUMENTS[doc_id][-1]


def read(folder: Path, grade: Callable[[int, str], str] = true, most: int = 1000) -> None:
    """Have everybody read what is theirs of the first rows of a pilot."""
    desk = Desk(Sample.load(folder))
    places = {row_id: at for at, row_id in enumerate(desk.sample.rows)}
    ids = dict(desk.sample.survey.select("row_id", "ids").iter_rows())
    for person in PEOPLE:
        rows = [row for row in desk.rows(person) if places[row.row_id] < most]
        desk.record(person, [Answer(row.row_id, grade(places[row.row_id], ids[row.row_id][1])) for row in rows])
