"""Pages on which assessors answer a sample."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
from curate.review import Answer, Desk, Sample, SampleRow, flags
from curate.review import forms as guide
from curate.review.access import ENTER, Access
from curate.review.forms import Form
from curate.system import resources
from curate.view import charts
from curate.web.guard import HEADERS, OWNER, Entrance, Visitor
from curate.web.highlight import pieces
from curate.web.pages import LANGUAGES, environment, fields, language_of, remembering, typed_fields

# Position of an assessor in a sample: rows answered, the next open row, the last answer.

SOURCE = "page"
"""Value of `Answer.source` for answers given in the review app."""
_NONE = Answer("", None)


@dataclass(frozen=True)
class ReadingProgress:
    """Progress of an assessor."""

    total: int
    graded: int
    noted: int
    """Number of rows with a note or a flag and no answer, where the person could not decide."""

    @property
    def left(self) -> int:
        """Return the number of rows without answer, note and flag."""
        return self.total - self.graded - self.noted


@dataclass(frozen=True)
class ReadingOrder:
    """An assessor's rows in reading order, and the answers by time."""

    rows: Sequence[SampleRow]
    said: Mapping[str, Answer]
    flagged: Collection[str] = ()
    """Rows that the assessor flagged, and has not answered since."""

    @classmethod
    def of(cls, review: Desk, person: str) -> "ReadingOrder":
        """Return the current rows, answers and flags of an assessor."""
        flagged = {flag.row_id for flag in flags.open_flags(review) if flag.person == person}
        return cls(review.rows(person), review.said(person), flagged)

    @property
    def progress(self) -> ReadingProgress:
        """Return the assessor's progress: rows in all, graded rows, and rows with a note only."""
        answers = [self.said[row.row_id] for row in self.rows if row.row_id in self.said]
        graded = sum(answer.answer is not None for answer in answers)
        return ReadingProgress(len(self.rows), graded, sum(map(self.is_dealt_with, self.rows)) - graded)

    def is_dealt_with(self, row: SampleRow) -> bool:
        """Return whether a row has an answer, a note or a flag."""
        return row.row_id in self.said or row.row_id in self.flagged

    @property
    def open_rows(self) -> list[str]:
        """Return the rows without answer, note and flag."""
        return [row.row_id for row in self.rows if not self.is_dealt_with(row)]

    def place(self, row_id: str) -> int | None:
        """Return the index of a row, from 0; None if the row is not assigned to the assessor."""
        return next((index for index, row in enumerate(self.rows) if row.row_id == row_id), None)

    def open_after(self, place: int) -> str | None:
        """Return the next row without an answer, continuing from the start after the end; None if there is none."""
        around = (*self.rows[place + 1 :], *self.rows[: place + 1])
        return next((row.row_id for row in around if not self.is_dealt_with(row)), None)

    @property
    def last(self) -> Answer | None:
        """Return the latest answer given in the review app, which can be withdrawn; None without one."""
        latest_first = reversed(list(self.said.values()))
        return next((answer for answer in latest_first if answer.answer and answer.source == SOURCE), None)


def keys(answers: Sequence[str], taken: str = "UNXP") -> dict[str, str]:
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


def seen(answer: Answer | None) -> str:
    """Return a short digest of an answer, a note and their time; a form sends it to say what it was opened with."""
    return mark(f"{answer.answer} {answer.note} {answer.time}") if answer else ""


class ConflictError(Exception):
    """An answer that was stored after the form was opened would be overwritten."""

    def __init__(self, stored: Answer, fields: Mapping[str, str]) -> None:
        self.stored, self.fields = stored, fields


# The pages: enter, choose a name, read a row and answer, the end, the guide. Nothing is kept here but by the desk.


class ReviewPages:
    """Pages of one sample, and the handlers of their forms."""

    def __init__(self, review: Desk, base: str = "") -> None:
        self.desk, self.form, self.base = review, review.sample.form, base
        self.access = Access(review)
        self.classes = charts.classes(review.sample.scale)
        samples = {
            language: replace(review.sample, design=replace(review.sample.design, language=language))
            for language in LANGUAGES
        }
        self.samples = {**samples, self.form.language: review.sample}
        """Language of a reader -> the sample, with form and meanings in it."""
        self._renderers = {language: _renderer(sample, base) for language, sample in self.samples.items()}
        self.one_at_a_time = RLock()

    def routes(self) -> list[Route]:
        """Return the addresses and their handlers."""
        return [
            Route(ENTER, self.enter, methods=["GET", "POST"]),
            Route("/review", self.people),
            Route("/review/guide", self.guide),
            Route("/review/grades.css", self.colours),
            Route("/review/by/{person}", self.resume, methods=["GET", "POST"]),
            Route("/review/by/{person}/{row_id}", self.row),
            Route("/review/by/{person}/{row_id}", self.answer, methods=["POST"]),
        ]

    def own_routes(self) -> list[Route]:
        """Return the addresses by which an invited assessor opens a row, behind all others that begin as they do."""
        return [
            Route("/review/{row_id}", self.row),
            Route("/review/{row_id}", self.answer, methods=["POST"]),
        ]

    def may(self, visitor: Visitor, path: str) -> bool:
        """Return whether a visitor may see a page.

        Who answers sees nothing of the run while the sample is open. Without invitations, who holds the shared secret
        may answer in every name; with them, only follow.
        """
        if path.startswith(("/review/by/", "/review/decide")):
            if visitor == OWNER:
                return not self.access.invitations()
            is_reading = path.startswith("/review/by/")
            allowed = f"/review/by/{visitor.person}" if is_reading else "/review/decide"
            role = "assessor" if is_reading else "adjudicator"
            return visitor.role == role and (path == allowed or path.startswith(f"{allowed}/"))
        if path == "/review/progress":
            return visitor.role in ("owner", "lead")
        if path.startswith("/review"):
            return visitor.role != "reader"
        return visitor.role in ("owner", "lead", "reader") or not any(self.desk.open_rows())

    def refused(self, name: str, status: int, values: dict[str, Any]) -> Response:
        """Return a page of the guard, which shows nothing of the sample."""
        return self.shown(name, status, values)

    def shown(self, name: str, status: int, values: dict[str, Any], request: Request | None = None) -> Response:
        """Return a page as a response, in the language of the browser or, without a request, of the sample."""
        html = self._renderers[self.language(request)](name, values)
        response = Response(html, status, HEADERS, media_type="text/html")
        return remembering(response, request, self.base) if request else response

    def language(self, request: Request | None) -> str:
        """Return the language of a reader."""
        return language_of(request, self.form.language, tuple(self.samples)) if request else self.form.language

    async def enter(self, request: Request) -> Response:
        """Show the form for a link or a code, which a GET never uses up; a POST exchanges it for a pass."""
        if request.method != "POST":
            return self.shown("enter", 200, {"wrong": False}, request)
        typed = await typed_fields(request)
        secret = (typed.get("token") or typed.get("code") or "").strip().rpartition("#")[2].replace(" ", "")
        entered = await run_in_threadpool(self.access.enter, secret) if secret else None
        if entered is None:
            return self.shown("enter", 403, {"wrong": True}, request)
        invitation, browser_pass = entered
        page = "/" if invitation.role == "reader" else "/review"
        entrance: Entrance = request.state.entrance
        return entrance.let_in(self.see(page), browser_pass)

    def people(self, request: Request) -> Response:
        """Show the assessors and their progress; who was invited is led to the page of the role."""
        visitor: Visitor = request.state.visitor
        if visitor.role == "assessor":
            return self.see(_address(visitor.person))
        if visitor.role == "adjudicator":
            return self.see("/review/decide")
        if visitor.role == "lead" or self.access.invitations():
            return self.see("/review/progress")
        progress = [(person, ReadingOrder.of(self.desk, person).progress) for person in self.desk.assessors]
        return self.shown("people", 200, {"people": progress}, request)

    def guide(self, request: Request) -> Response:
        """Show the guide for assessors."""
        return self.shown("guide", 200, {"guide": self.guide_html(request)}, request)

    def guide_html(self, request: Request) -> str:
        """Return the guide as HTML, in the reader's language if it has that."""
        return guide.html(guide.in_language(self.desk.sample.guide, self.language(request)))

    def colours(self, _request: Request) -> Response:
        """Return a style sheet with the colours of the grades; empty for the default scale of five grades."""
        return Response(charts.styles(self.desk.sample.scale), media_type="text/css")

    async def resume(self, request: Request) -> Response:
        """Redirect to the first row without an answer, or show that there is none; a POST withdraws an answer."""
        person = self._person(request)
        if request.method == "POST":
            typed = await fields(request)
            return self.see(await run_in_threadpool(self._taken_back, person, typed))
        return await run_in_threadpool(self._resumed, request, person)

    def row(self, request: Request) -> Response:
        """Show one row with its form."""
        return self._row(request, self._person(request), request.path_params["row_id"])

    def _row(
        self, request: Request, person: str, row_id: str, status: int = 200, conflict: ConflictError | None = None
    ) -> Response:
        reading = ReadingOrder.of(self.desk, person)
        index = _or_404(reading.place(row_id))
        answer = reading.said.get(row_id)
        note = answer.note if answer else ""
        own_flags = [flag for flag in flags.open_flags(self.desk) if (flag.row_id, flag.person) == (row_id, person)]
        return self.shown(
            "row",
            status,
            {
                **self._common(request, person, reading),
                **self.item(reading.rows[index], self.language(request)),
                "number": index + 1,
                "keys": keys(self.form.answers),
                "chosen": answer.answer if answer else None,
                "note": note,
                "began": mark(note),
                "seen": seen(answer),
                "conflict": conflict,
                "own_flags": own_flags,
                "reasons": flags.REASONS,
                "open_rows": reading.open_rows,
                "guide": self.guide_html(request),
            },
            request,
        )

    def item(self, row: SampleRow, language: str) -> dict[str, Any]:
        """Return the template values of a row: its texts, and the answers with their meanings and colours."""
        sample = self.samples[language]
        positives = self.desk.sample.scale.positives if self.form.name == "relevance" else None
        return {
            "row_id": row.row_id,
            "texts": _texts(sample.form, row.texts),
            "meanings": sample.meanings,
            "classes": {answer: self.classes.get(answer, f"g-{answer}") for answer in self.form.answers},
            "cut": len(positives) if positives else 0,
        }

    async def answer(self, request: Request) -> Response:
        """Store a form's entry, then redirect, so that the next page loads only after the answer is on the disk.

        409, with what is stored, if another browser has answered since the form was opened.
        """
        person, typed, row_id = self._person(request), await fields(request), request.path_params["row_id"]
        try:
            return self.see(await run_in_threadpool(self._answered, person, row_id, typed))
        except ConflictError as conflict:
            self.access.log("conflict", person, row_id)
            return await run_in_threadpool(self._row, request, person, row_id, 409, conflict)

    def wrong(self, request: Request, error: Exception) -> Response:
        """Show an error page."""
        status = 400 if isinstance(error, ConfigError) else getattr(error, "status_code", 500)
        message = str(error) if isinstance(error, UserError) else ""
        return self.shown("wrong", status, {"status": status, "said": message}, request)

    def see(self, path: str) -> Response:
        """Return a redirect to a page of the app."""
        return RedirectResponse(self.base + path, status_code=303)

    def _resumed(self, request: Request, person: str) -> Response:
        reading = ReadingOrder.of(self.desk, person)
        following = reading.open_after(-1)
        if following:
            return self.see(_address(person, following))
        undecided = [row.row_id for row in reading.rows if not (reading.said.get(row.row_id) or _NONE).answer]
        first = reading.rows[0].row_id if reading.rows else None
        common = self._common(request, person, reading)
        return self.shown("done", 200, {**common, "undecided": undecided, "first": first}, request)

    def _answered(self, person: str, row_id: str, fields: dict[str, str]) -> str:
        """Store a form's note, answer and flag; return the address to go to."""
        with self.one_at_a_time:  # a change by another tab in between must not be overwritten
            index = self._store_changes(person, row_id, fields)
            if fields.get("undo"):
                return self._taken_back(person, fields)
        reading = ReadingOrder.of(self.desk, person)
        if "answer" in fields or "flag" in fields:
            return _address(person, reading.open_after(index), saved=fields.get("answer", ""))
        if "keep" in fields:
            return _address(person, row_id)
        beyond = index + (1 if fields.get("go") == "next" else -1)
        return _address(person, reading.rows[min(max(beyond, 0), len(reading.rows) - 1)].row_id)

    def _store_changes(self, person: str, row_id: str, fields: dict[str, str]) -> int:
        """Store the changes of a form to a row; return the row's index. ConflictError if they meet newer ones."""
        reading = ReadingOrder.of(self.desk, person)
        index = _or_404(reading.place(row_id))
        earlier = reading.said.get(row_id, Answer(row_id, None))
        note = noted(fields.get("note", ""), fields.get("began", ""), earlier.note)
        changes_answer = fields.get("answer", earlier.answer) != earlier.answer
        changes_note = note != earlier.note
        is_stale = fields.get("seen", "") != seen(reading.said.get(row_id))
        if is_stale and ((changes_answer and earlier.answer) or (changes_note and earlier.note)):
            raise ConflictError(earlier, fields)
        if changes_answer or changes_note:
            self.desk.record(person, [Answer(row_id, fields.get("answer", earlier.answer), note, source=SOURCE)])
        if "answer" in fields and row_id in reading.flagged:
            flags.take_back(self.desk, person, row_id)
        if "flag" in fields:
            flags.raise_flag(self.desk, person, row_id, fields["flag"], fields.get("reason", ""))
        return index

    def _taken_back(self, person: str, fields: Mapping[str, str]) -> str:
        """Withdraw the answer to a row but keep its note; return the row's address.

        An answer that another browser has changed since the form was opened is shown, not withdrawn.
        """
        row_id = fields.get("undo", "")
        with self.one_at_a_time:
            reading = ReadingOrder.of(self.desk, person)
            _or_404(reading.place(row_id))
            withdrawn = reading.said.get(row_id, Answer(row_id, None))
            if fields.get("last", "") != mark(withdrawn.answer or ""):
                return _address(person, row_id)
            self.desk.record(person, [Answer(row_id, None, withdrawn.note, source=SOURCE)])
        return _address(person, row_id, undone=withdrawn.answer or "")

    def _common(self, request: Request, person: str, reading: ReadingOrder) -> dict[str, Any]:
        """Return the template values common to all pages of an assessor."""
        notices = {name: request.query_params.get(name) for name in ("saved", "undone")}
        return {
            "person": person,
            "invited": request.state.visitor != OWNER,
            "address": self.base + _address(person),
            "progress": reading.progress,
            "last": reading.last,
            "last_seen": mark(reading.last.answer or "") if reading.last else "",
            "proof": request.state.proof,
            "told": [(name, answer) for name, answer in notices.items() if answer in self.form.answers],
        }

    def _person(self, request: Request) -> str:
        visitor: Visitor = request.state.visitor
        person: str = request.path_params.get("person", visitor.person)
        if person not in self.desk.assessors:
            raise HTTPException(404)
        return person


def _texts(form: Form, texts: tuple[str, ...]) -> list[tuple[str, str, list[tuple[str, bool]]]]:
    """Return (name, header, pieces) of every text, with matches of the query marked."""
    query = texts[0] if form.texts[0] == "query" else ""
    columns = zip(form.texts, texts, strict=True)
    return [(name, form.headers[name], pieces("" if name == "query" else query, text)) for name, text in columns]


def _renderer(sample: Sample, base: str) -> Callable[[str, dict[str, Any]], str]:
    """Return a function of (name of a page, its values) that returns HTML in the language of its design."""
    form, templates = sample.form, environment()
    words: Any = resources.words("web/templates/words.yaml", form.language)
    templates.globals.update(
        form=form,
        words={**words, **words["items"]} if form.question else words,
        language=form.language,
        base=base,
        name=sample.design.name,
        coloured=sample.scale != FIVE and not form.question,  # answers to a question have no order
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
