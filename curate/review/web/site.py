"""The pages: choose a name, read a row and answer, the end, the guide. Nothing is kept here but through the desk."""

from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError, UserError
from curate.core.scale import FIVE
from curate.review import Answer, Desk, guide
from curate.review.web.guard import HEADERS, Guard, proven
from curate.review.web.highlight import pieces
from curate.review.web.reading import SOURCE, ReadingOrder, keys, mark, noted
from curate.system import resources
from curate.view import grade_colours

LARGEST = 64 * 1024
"""Bytes of the largest form that is read: a note of thousands of characters."""
_STATIC = {
    "report.css": ("text/css", "view/report.css"),
    "review.css": ("text/css", "review/web/templates/review.css"),
    "review.js": ("text/javascript", "review/web/templates/review.js"),
    "icon.svg": ("image/svg+xml", "review/web/templates/icon.svg"),
}


def site(desk: Desk, token: str, known: Callable[[str], bool]) -> Starlette:
    """Return the application that serves a sample to those who hold the token and ask for a host that is known."""
    pages = Pages(desk)
    return Starlette(
        routes=[
            Route("/", pages.people),
            Route("/guide", pages.guide),
            Route("/by/{person}", pages.resume, methods=["GET", "POST"]),
            Route("/by/{person}/{row_id}", pages.row),
            Route("/by/{person}/{row_id}", pages.answer, methods=["POST"]),
            Route("/static/grades.css", pages.colours),
            Route("/static/{name}", _static),
        ],
        middleware=[Middleware(Guard, token=token, known=known, shown=pages.shown)],
        exception_handlers={HTTPException: pages.wrong, UserError: pages.wrong, Exception: pages.wrong},
    )


class Pages:
    """What is shown of one desk, and what a form does to it."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.form = desk, desk.sample.form
        self.classes = grade_colours.classes(desk.sample.scale)
        self.render = _renderer(desk)
        self._one_at_a_time = RLock()

    def shown(self, name: str, status: int, values: dict[str, Any]) -> Response:
        """Return a page as a response."""
        return Response(self.render(name, values), status, HEADERS, media_type="text/html")

    def people(self, _request: Request) -> Response:
        """Show who reads the sample, and how far everybody is."""
        progress = [(person, ReadingOrder.of(self.desk, person).progress) for person in self.desk.assessors]
        return self.shown("people", 200, {"people": progress})

    def guide(self, _request: Request) -> Response:
        """Show the guide for assessors."""
        return self.shown("guide", 200, {"guide": guide.html(self.desk.sample.guide)})

    def colours(self, _request: Request) -> Response:
        """Return the colours of the grades, of which the style sheet of the report has the five."""
        return Response(grade_colours.styles(self.desk.sample.scale), media_type="text/css")

    async def resume(self, request: Request) -> Response:
        """Lead to the first row of which nothing was said, or show that there is none; a form takes back an answer."""
        person = self._person(request)
        if request.method == "POST":
            fields = await _fields(request)
            return _see(await run_in_threadpool(self._taken_back, person, fields.get("undo", "")))
        return await run_in_threadpool(self._resumed, request, person)

    def row(self, request: Request) -> Response:
        """Show one row."""
        person, row_id = self._person(request), request.path_params["row_id"]
        reading = ReadingOrder.of(self.desk, person)
        place = _found(reading.place(row_id))
        answer = reading.said.get(row_id)
        note = answer.note if answer else ""
        return self.shown(
            "row",
            200,
            {
                **self._common(request, person, reading),
                "number": place + 1,
                "row_id": row_id,
                "texts": self._texts(reading.rows[place].texts),
                "keys": keys(self.form.answers),
                "meanings": self.desk.sample.meanings,
                "classes": {answer: self.classes.get(answer, f"g-{answer}") for answer in self.form.answers},
                "chosen": answer.answer if answer else None,
                "note": note,
                "began": mark(note),
            },
        )

    async def answer(self, request: Request) -> Response:
        """Keep what a form says of a row, then lead on: the next page is asked for when the answer is on the disk."""
        person, fields = self._person(request), await _fields(request)
        return _see(await run_in_threadpool(self._answered, person, request.path_params["row_id"], fields))

    def wrong(self, _request: Request, error: Exception) -> Response:
        """Show that something is not there, not allowed, or failed."""
        status = 400 if isinstance(error, ConfigError) else getattr(error, "status_code", 500)
        said = str(error) if isinstance(error, UserError) else ""
        return self.shown("wrong", status, {"status": status, "said": said})

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
        """Keep a form's note and answer; returns where to go."""
        with self._one_at_a_time:  # what another tab says of the row in between must not be undone
            place = self._kept(person, row_id, fields)
            if "undo" in fields:
                return self._taken_back(person, fields["undo"])
        reading = ReadingOrder.of(self.desk, person)
        if "answer" in fields:
            return _address(person, reading.open_after(place), saved=fields["answer"])
        beyond = place + (1 if fields.get("go") == "next" else -1)
        return _address(person, reading.rows[min(max(beyond, 0), len(reading.rows) - 1)].row_id)

    def _kept(self, person: str, row_id: str, fields: dict[str, str]) -> int:
        """Keep what a form changes of a row; returns the row's place."""
        reading = ReadingOrder.of(self.desk, person)
        place = _found(reading.place(row_id))
        before = reading.said.get(row_id, Answer(row_id, None))
        note = noted(fields.get("note", ""), fields.get("began", ""), before.note)
        if "answer" in fields or note != before.note:
            self.desk.record(person, [Answer(row_id, fields.get("answer", before.answer), note, source=SOURCE)])
        return place

    def _taken_back(self, person: str, row_id: str) -> str:
        """Take back the answer to a row and leave its note; returns the row's address."""
        with self._one_at_a_time:
            reading = ReadingOrder.of(self.desk, person)
            _found(reading.place(row_id))
            before = reading.said.get(row_id, Answer(row_id, None))
            self.desk.record(person, [Answer(row_id, None, before.note, source=SOURCE)])
        return _address(person, row_id, undone=before.answer or "")

    def _common(self, request: Request, person: str, reading: ReadingOrder) -> dict[str, Any]:
        """Return what every page of a person shows."""
        told = {name: request.query_params.get(name) for name in ("saved", "undone")}
        return {
            "person": person,
            "address": _address(person),
            "progress": reading.progress,
            "last": reading.last,
            "proof": request.state.proof,
            "told": [(name, said) for name, said in told.items() if said in self.form.answers],
        }

    def _texts(self, texts: tuple[str, ...]) -> list[tuple[str, str, list[tuple[str, bool]]]]:
        """Return name, header and pieces of every text; what is in the query too is marked in the others."""
        asked = texts[0] if self.form.texts[0] == "query" else ""
        named = zip(self.form.texts, texts, strict=True)
        return [(name, self.form.headers[name], pieces("" if name == "query" else asked, text)) for name, text in named]

    def _person(self, request: Request) -> str:
        person: str = request.path_params["person"]
        if person not in self.desk.assessors:
            raise HTTPException(404)
        return person


def _renderer(desk: Desk) -> Callable[[str, dict[str, Any]], str]:
    """Return a function from a page's name and values to HTML, in the words of the sample's language."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    form, known = desk.sample.form, parse_yaml(resources.template("review/web/templates/words.yaml"))
    assert isinstance(known, dict)
    environment = Environment(
        loader=FunctionLoader(lambda name: resources.template(f"review/web/templates/{name}")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    words: Any = known.get(form.language, known["en"])
    environment.globals.update(
        form=form,
        words={**words, **words["items"]} if form.question else words,
        language=form.language,
        name=desk.sample.design.name,
        coloured=desk.sample.scale != FIVE and not form.question,  # answers to a question have no order
    )
    return lambda name, values: environment.get_template(f"{name}.html.j2").render(values)


def _found(place: int | None) -> int:
    if place is None:
        raise HTTPException(404)
    return place


def _address(person: str, row_id: str | None = None, **told: str) -> str:
    """Return the address of a person's row, or of where the person goes on."""
    said = "&".join(f"{name}={quote(value)}" for name, value in told.items() if value)
    path = f"/by/{quote(person)}" + (f"/{quote(row_id)}" if row_id else "")
    return f"{path}?{said}" if said else path


def _see(address: str) -> Response:
    return RedirectResponse(address, status_code=303)


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form that a page of ours sent; 403 without its proof, 413 if it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            raise HTTPException(413)
    read = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    fields = {name: values[-1] for name, values in read.items()}
    if not proven(request, fields.get("proof", "")):
        raise HTTPException(403)
    return fields


@cache
def _file(name: str) -> Response:
    kind, template = _STATIC[name]
    return Response(resources.template(template), media_type=kind)


def _static(request: Request) -> Response:
    if request.path_params["name"] not in _STATIC:
        raise HTTPException(404)
    return _file(request.path_params["name"])
