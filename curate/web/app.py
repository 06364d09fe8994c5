"""The app: pages of a run, and beside them those on which assessors answer one of its samples."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from curate.core.errors import UserError
from curate.web.guard import Guard
from curate.web.pages import static
from curate.web.review_pages import ReviewPages
from curate.web.view_pages import ViewPages


def app(view: ViewPages, review: ReviewPages | None, token: str, known: Callable[[str], bool]) -> Starlette:
    """Return the app of a run, with `review` the pages of a sample too.

    It only answers requests with the token and a `known` host.
    """
    pages = review or view

    def wrong(request: Request, error: Exception) -> Response:
        of_review = review is not None and request.url.path.startswith("/review")
        return (pages if of_review else view).wrong(request, error)

    return Starlette(
        routes=[*(review.routes() if review else ()), *view.routes(), Route("/static/{name}", static)],
        middleware=[Middleware(Guard, token=token, known=known, shown=pages.refused)],
        exception_handlers={HTTPException: wrong, UserError: wrong, Exception: wrong},
    )
