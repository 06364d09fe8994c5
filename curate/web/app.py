"""The app: pages of a run, and beside them those on which assessors answer one of its samples."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from curate.core.errors import UserError
from curate.web.decide_pages import DecidePages
from curate.web.guard import Entrance, Guard, UnderPath, Visitor
from curate.web.pages import static
from curate.web.review_pages import ReviewPages
from curate.web.view_pages import ViewPages


def app(view: ViewPages, review: ReviewPages | None, entrance: Entrance) -> Starlette:
    """Return the app of a run, with `review` the pages of a sample too; it only answers requests that may enter."""
    pages = review or view
    of_sample = [*review.routes(), *DecidePages(review).routes(), *review.own_routes()] if review else []

    def wrong(request: Request, error: Exception) -> Response:
        of_review = review is not None and request.url.path.startswith(("/review", "/enter"))
        return (pages if of_review else view).wrong(request, error)

    def may(visitor: Visitor, path: str) -> bool:
        return review is None or review.may(visitor, path)

    return Starlette(
        routes=[*of_sample, *view.routes(), Route("/static/{name}", static)],
        middleware=[
            Middleware(UnderPath, base=entrance.base),
            Middleware(Guard, entrance=entrance, may=may, shown=pages.refused),
        ],
        exception_handlers={HTTPException: wrong, UserError: wrong, Exception: wrong},
    )
