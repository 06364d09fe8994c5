"""What all pages share: the template environment, forms, and files of style and script."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from curate.core.languages import base_language
from curate.system import resources
from curate.view import charts
from curate.view.words import html_environment
from curate.web.addresses import Links
from curate.web.filters import param
from curate.web.guard import proven

if TYPE_CHECKING:
    from jinja2 import Environment

    from curate.web.index import RunIndex

LANGUAGES = ("zh", "en")
LARGEST = 64 * 1024
"""Maximum bytes of a form, enough for a note of thousands of characters."""
FILES: Mapping[str, tuple[str, str]] = {
    "report.css": ("text/css", "view/report.css"),
    "review.css": ("text/css", "web/templates/review.css"),
    "view.css": ("text/css", "web/templates/view.css"),
    "web.js": ("text/javascript", "web/templates/web.js"),
    "icon.svg": ("image/svg+xml", "web/templates/icon.svg"),
}
"""Name of a file that any page may load -> its type and its template."""


def environment() -> "Environment":
    """Return the environment of the templates of pages."""
    templates = html_environment("web/templates/")
    templates.globals.update(zip=zip, param=param)
    return templates


def rendered(
    templates: "Environment",
    index: "RunIndex",
    name: str,
    language: str,
    *,
    links: Links,
    proof: str,
    other: str = "",
    **values: Any,  # noqa: ANN401
) -> str:
    """Return a page of a run as HTML; without `proof`, the proof of a form, it has no forms and no filters.

    `other` is the language that the page offers.
    """
    words: Any = resources.words("web/templates/view.words.yaml", language)
    return templates.get_template(f"view_{name}.html.j2").render(
        index=index,
        name=name,
        language=language,
        words=words,
        links=links,
        proof=proof,
        other=other,
        classes=charts.classes(index.scale),
        meanings=index.meanings.get(language) or next(iter(index.meanings.values()), {}),
        **values,
    )


def language_of(request: Request, default: str, languages: Sequence[str] = LANGUAGES) -> str:
    """Return the language of the page: of the address, an earlier choice, the browser, the run, or English."""
    chosen = [request.query_params.get("lang"), request.cookies.get("view_language")]
    accepted = request.headers.get("accept-language", "").split(",")
    preferred = [base_language(tag.partition(";")[0].strip().lower()) for tag in accepted]
    tags = [*chosen, *preferred, default, base_language(default), "en"]
    return next(tag for tag in tags if tag in languages and tag is not None)


def remembering(response: Response, request: Request, base: str) -> Response:
    """Return a response with a cookie of the language, if the address chooses one."""
    if (language := request.query_params.get("lang")) in LANGUAGES and language:
        response.set_cookie("view_language", language, path=base or "/", httponly=True, samesite="strict")
    return response


async def fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; HTTP error 403 without the app's CSRF field, 413 if the form is too large."""
    typed = await typed_fields(request)
    if not proven(request, typed.get("proof", "")):
        raise HTTPException(403)
    return typed


async def typed_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form, of which each counts once; HTTP error 413 if the form is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            raise HTTPException(413)
    read = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in read.items()}


def static(request: Request) -> Response:
    """Return a file of `FILES`; HTTP error 404 for another name."""
    if request.path_params["name"] not in FILES:
        raise HTTPException(404)
    return _file(request.path_params["name"])


@cache
def _file(name: str) -> Response:
    kind, template = FILES[name]
    return Response(resources.template(template), media_type=kind)
