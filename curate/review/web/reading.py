"""Position of an assessor in a sample: rows answered, the next open row, the last answer."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.core.scale import plain
from curate.review import Answer, Desk, SampleRow

SOURCE = "page"
"""What answers say that were given here."""


@dataclass(frozen=True)
class ReadingProgress:
    """How far a person is."""

    total: int
    graded: int
    noted: int
    """Rows that have a note and no answer: the person could not decide."""

    @property
    def left(self) -> int:
        """Return how many rows nothing was said of yet."""
        return self.total - self.graded - self.noted


@dataclass(frozen=True)
class ReadingOrder:
    """The rows of a person in reading order, and what was said of them, the last answer last."""

    rows: Sequence[SampleRow]
    said: Mapping[str, Answer]

    @classmethod
    def of(cls, desk: Desk, person: str) -> "ReadingOrder":
        """Return where a person is now."""
        return cls(desk.rows(person), desk.said(person))

    @property
    def progress(self) -> ReadingProgress:
        """Return how far the person is."""
        mine = [self.said[row.row_id] for row in self.rows if row.row_id in self.said]
        graded = sum(answer.answer is not None for answer in mine)
        return ReadingProgress(len(self.rows), graded, len(mine) - graded)

    def place(self, row_id: str) -> int | None:
        """Return where a row stands, from 0; None if it is not the person's."""
        return next((place for place, row in enumerate(self.rows) if row.row_id == row_id), None)

    def open_after(self, place: int) -> str | None:
        """Return the next row of which nothing was said, after the end from the beginning; None if there is none."""
        around = (*self.rows[place + 1 :], *self.rows[: place + 1])
        return next((row.row_id for row in around if row.row_id not in self.said), None)

    @property
    def last(self) -> Answer | None:
        """Return the latest answer given on the page, which is the one to take back."""
        given = reversed(list(self.said.values()))
        return next((answer for answer in given if answer.answer and answer.source == SOURCE), None)


def keys(answers: Sequence[str], taken: str = "UN") -> dict[str, str]:
    """Return answer -> the key that gives it: its own letter or digit if each has one that is free.

    Else a digit: an answer that is one keeps it, the others get what is left of 1 to 9 and 0, in their order. An answer
    beyond the tenth has none.
    """
    own = {answer: sign for answer in answers if len(sign := plain(answer)) == 1 and sign.isascii() and sign.isalnum()}
    if len(own) == len(answers) and not {*own.values()} & {*taken}:
        return own
    digits = {answer: sign for answer, sign in own.items() if sign.isdecimal()}
    left = (digit for digit in "1234567890" if digit not in digits.values())
    rest = dict(zip((answer for answer in answers if answer not in digits), left, strict=False))
    return {answer: (digits | rest)[answer] for answer in answers if answer in digits or answer in rest}


def mark(note: str) -> str:
    """Return a short mark of a note, by which a form says which note it began with."""
    return hashlib.sha256(note.encode("utf-8", "replace")).hexdigest()[:16]


def noted(typed: str, began: str, stored: str) -> str:
    """Return the note to keep: what was typed, or what is stored if nothing was changed in this form.

    So a page that was opened before a note came, from another tab or a spreadsheet, does not wipe it out.
    """
    text = typed.replace("\r\n", "\n").strip()
    return stored if mark(text) == began else text
