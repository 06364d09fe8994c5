"""Pages on which assessors answer a sample."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from curate.core.errors import ConfigError, UserError
from curate.core.scale import FIVE, plain
from curate.review import Answer, Desk, SampleRow
from curate.review import forms as guide
from curate.system import resources
from curate.view import charts
from curate.web.guard import HEADERS
from curate.web.highlight import pieces
from curate.web.pages import environment, fields

# Position of an assessor in a sample: rows answered, the next open row, the last answer.

SOURCE = "page"
"""Value of `Answer.source` for answers given in the review app."""


@dataclass(frozen=True)
class ReadingProgress:
    """Progress of an assessor."""

    total: int
    graded: int
    noted: int
    """Number of rows with a note and no answer, where the person could not decide."""

    @property
    def left(self) -> int:
        """Return the number of rows without answer and note."""
        return self.total - self.graded - self.noted


@dataclass(frozen=True)
class ReadingOrder:
    """An assessor's rows in reading order, and the answers by time."""

    rows: Sequence[SampleRow]
    said: Mapping[str, Answer]

    @classmethod
    def of(cls, review: Desk, person: str) -> "ReadingOrder":
        """Return the current rows and answers of an assessor."""
        return cls(review.rows(person), review.said(person))

    @property
    def progress(self) -> ReadingProgress:
        """Return the assessor's progress: rows in all, graded rows, and rows with a note only."""
        answers = [self.said[row.row_id] for row in self.rows if row.row_id in self.said]
        graded = sum(answer.answer is not None for answer in answers)
        return ReadingProgress(len(self.rows), graded, len(answers) - graded)

    def place(self, row_id: str) -> int | None:
        """Return the index of a row, from 0; None if the row is not assigned to the assessor."""
        return next((index for index, row in enumerate(self.rows) if row.row_id == row_id), None)

    def open_after(self, place: int) -> str | None:
        """Return the next row without an answer, continuing from the start after the end; None if there is none."""
        around = (*self.rows[place + 1 :], *self.rows[: place + 1])
        return next((row.row_id for row in around if row.row_id not in self.said), None)

    @property
    def last(self) -> Answer | None:
        """Return the latest answer given in the review app, which can be withdrawn; None without one."""
        latest_first = reversed(list(self.said.values()))
        return next((answer for answer in latest_first if answer.answer and answer.source == SOURCE), None)


def keys(answers: Sequence[str], taken: str = "UN") -> dict[str, str]:
    """Return answer -> keyboard key: the answer itself if all are single letters or digits that are not `taken`.

    Otherwise digits: an answer that is a digit keeps it, the others get the remaining ones of 1 to 9 and 0, in order.
    Answers beyond the tenth have no key.
    """
    own_keys = {
        answer: sign for answer in answers if len(sign := plain(answer)) == 1 and sign.isascii() and sign.isalnum()
    }
    if len(own_keys) == len(answers) and not {*own_keys.values()} & {*taken}:
        return own_keys
    digits = {answer: sign for answer, sign in own_keys.items() if sign.isdecimal()}
    free_digits = (digit for digit in "1234567890" if digit not in digits.values())
    assigned = dict(zip((answer for answer in answers if answer not in digits), free_digits, strict=False))
    return {answer: (digits | assigned)[answer] for answer in answers if answer in digits or answer in assigned}


def mark(note: str) -> str:
    """Return a short digest of a note; a form sends it to identify the note that it was opened with."""
    return hashlib.sha256(note.encode("utf-8", "replace")).hexdigest()[:16]


def noted(typed: str, began: str, stored: str) -> str:
    """Return the note to store: the typed one, or the stored one if this form did not change it.

    `began` is the digest (`mark`) of the note that the form was opened with. A form opened before a note was added, in
    another tab or a spreadsheet, thus does not delete it.
    """
    text = typed.replace("\r\n", "\n").strip()
    return stored if mark(text) == began else text


# The pages: choose a name, read a row and answer, the end, the guide. Nothing is kept here but through the desk.


class ReviewPages:
    """Pages of one sample, and the handlers of their forms."""

    def __init__(self, review: Desk) -> None:
        self.desk, self.form = review, review.sample.form
        self.classes = charts.classes(review.sample.scale)
        self.render = _renderer(review)
        self._one_at_a_time = RLock()

    def routes(self) -> list[Route]:
        """Return the addresses and their handlers."""
        return [
            Route("/review", self.people),
            Route("/review/guide", self.guide),
            Route("/review/grades.css", self.colours),
            Route("/review/by/{person}", self.resume, methods=["GET", "POST"]),
            Route("/review/by/{person}/{row_id}", self.row),
            Route("/review/by/{person}/{row_id}", self.answer, methods=["POST"]),
        ]

    def refused(self, name: str, status: int, values: dict[str, Any]) -> Response:
        """Return a page of the guard, which shows nothing of the sample."""
        return self.shown(name, status, values)

    def shown(self, name: str, status: int, values: dict[str, Any]) -> Response:
        """Return a rendered page as a response."""
        return Response(self.render(name, values), status, HEADERS, media_type="text/html")

    def people(self, _request: Request) -> Response:
        """Show the assessors and their progress."""
        progress = [(person, ReadingOrder.of(self.desk, person).progress) for person in self.desk.assessors]
        return self.shown("people", 200, {"people": progress})

    def guide(self, _request: Request) -> Response:
        """Show the guide for assessors."""
        return self.shown("guide", 200, {"guide": guide.html(self.desk.sample.guide)})

    def colours(self, _request: Request) -> Response:
        """Return a style sheet with the colours of the grades; empty for the default scale of five grades."""
        return Response(charts.styles(self.desk.sample.scale), media_type="text/css")

    async def resume(self, request: Request) -> Response:
        """Redirect to the first row without an answer, or show that there is none; a POST withdraws an answer."""
        person = self._person(request)
        if request.method == "POST":
            typed = await fields(request)
            return _see(await run_in_threadpool(self._taken_back, person, typed.get("undo", "")))
        return await run_in_threadpool(self._resumed, request, person)

    def row(self, request: Request) -> Response:
        """Show one row with its form."""
        person, row_id = self._person(request), request.path_params["row_id"]
        reading = ReadingOrder.of(self.desk, person)
        index = _or_404(reading.place(row_id))
        answer = reading.said.get(row_id)
        note = answer.note if answer else ""
        return self.shown(
            "row",
            200,
            {
                **self._common(request, person, reading),
                "number": index + 1,
                "row_id": row_id,
                "texts": self._texts(reading.rows[index].texts),
                "keys": keys(self.form.answers),
                "meanings": self.desk.sample.meanings,
                "classes": {answer: self.classes.get(answer, f"g-{answer}") for answer in self.form.answers},
                "chosen": answer.answer if answer else None,
                "note": note,
                "began": mark(note),
            },
        )

    async def answer(self, request: Request) -> Response:
        """Store a form's entry, then redirect, so that the next page loads only after the answer is on the disk."""
        person, typed = self._person(request), await fields(request)
        return _see(await run_in_threadpool(self._answered, person, request.path_params["row_id"], typed))

    def wrong(self, _request: Request, error: Exception) -> Response:
        """Show an error page."""
        status = 400 if isinstance(error, ConfigError) else getattr(error, "status_code", 500)
        message = str(error) if isinstance(error, UserError) else ""
        return self.shown("wrong", status, {"status": status, "said": message})

    def _resumed(self, request: Request, person: str) -> Response:
        reading = ReadingOrder.of(self.desk, person)
        following = reading.open_after(-1)
        if following:
            return _see(_address(person, following))
        undecided = [row.row_id for row in reading.rows if not reading.said[row.row_id].answer]
        first = reading.rows[0].row_id if reading.rows else None
        common = self._common(request, person, reading)
        return self.shown("done", 200, {**common, "undecided": undecided, "first": first})

    def _answered(self, person: str, row_id: str, fields: dict[str, str]) -> str:
        """Store a form's note and answer; return the address to go to."""
        with self._one_at_a_time:  # a change by another tab in between must not be overwritten
            index = self._store_changes(person, row_id, fields)
            if "undo" in fields:
                return self._taken_back(person, fields["undo"])
        reading = ReadingOrder.of(self.desk, person)
        if "answer" in fields:
            return _address(person, reading.open_after(index), saved=fields["answer"])
        beyond = index + (1 if fields.get("go") == "next" else -1)
        return _address(person, reading.rows[min(max(beyond, 0), len(reading.rows) - 1)].row_id)

    def _store_changes(self, person: str, row_id: str, fields: dict[str, str]) -> int:
        """Store the changes of a form to a row; return the row's index."""
        reading = ReadingOrder.of(self.desk, person)
        index = _or_404(reading.place(row_id))
        earlier = reading.said.get(row_id, Answer(row_id, None))
        note = noted(fields.get("note", ""), fields.get("began", ""), earlier.note)
        if "answer" in fields or note != earlier.note:
            self.desk.record(person, [Answer(row_id, fields.get("answer", earlier.answer), note, source=SOURCE)])
        return index

    def _taken_back(self, person: str, row_id: str) -> str:
        """Withdraw the answer to a row but keep its note; return the row's address."""
        with self._one_at_a_time:
            reading = ReadingOrder.of(self.desk, person)
            _or_404(reading.place(row_id))
            withdrawn = reading.said.get(row_id, Answer(row_id, None))
            self.desk.record(person, [Answer(row_id, None, withdrawn.note, source=SOURCE)])
        return _address(person, row_id, undone=withdrawn.answer or "")

    def _common(self, request: Request, person: str, reading: ReadingOrder) -> dict[str, Any]:
        """Return the template values common to all pages of an assessor."""
        notices = {name: request.query_params.get(name) for name in ("saved", "undone")}
        return {
            "person": person,
            "address": _address(person),
            "progress": reading.progress,
            "last": reading.last,
            "proof": request.state.proof,
            "told": [(name, answer) for name, answer in notices.items() if answer in self.form.answers],
        }

    def _texts(self, texts: tuple[str, ...]) -> list[tuple[str, str, list[tuple[str, bool]]]]:
        """Return (name, header, pieces) of every text, with matches of the query marked."""
        query = texts[0] if self.form.texts[0] == "query" else ""
        columns = zip(self.form.texts, texts, strict=True)
        return [
            (name, self.form.headers[name], pieces("" if name == "query" else query, text)) for name, text in columns
        ]

    def _person(self, request: Request) -> str:
        person: str = request.path_params["person"]
        if person not in self.desk.assessors:
            raise HTTPException(404)
        return person


def _renderer(review: Desk) -> Callable[[str, dict[str, Any]], str]:
    """Return a function of (name of a page, its values) that returns HTML in the sample's language."""
    form, templates = review.sample.form, environment()
    words: Any = resources.words("web/templates/words.yaml", form.language)
    templates.globals.update(
        form=form,
        words={**words, **words["items"]} if form.question else words,
        language=form.language,
        name=review.sample.design.name,
        coloured=review.sample.scale != FIVE and not form.question,  # answers to a question have no order
    )
    return lambda name, values: templates.get_template(f"{name}.html.j2").render(values)


def _or_404(index: int | None) -> int:
    if index is None:
        raise HTTPException(404)
    return index


def _address(person: str, row_id: str | None = None, **notices: str) -> str:
    """Return the path of an assessor's row, or without `row_id` of the redirect to the next open row."""
    query_string = "&".join(f"{name}={quote(answer)}" for name, answer in notices.items() if answer)
    path = f"/review/by/{quote(person)}" + (f"/{quote(row_id)}" if row_id else "")
    return f"{path}?{query_string}" if query_string else path


def _see(address: str) -> Response:
    return RedirectResponse(address, status_code=303)
