"""The web app, on this machine: the pages of a run, read-only, and those on which assessors answer a sample.

The review pages read rows and store answers by a `Desk`, as the import of sheets does.
"""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

from curate.review import Desk
from curate.system.extras import needed
from curate.view.answers import PACKAGE
from curate.web.serving import PORT

__all__ = ["serve", "view"]


def serve(
    review: Desk,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    allow_remote: bool = False,
    tell: Callable[[str], None],
) -> None:
    """Serve the pages of a sample, and those of its run, until they are stopped, as `serving.serve` does."""
    with needed("the review page"):
        from curate.web import serving
        from curate.web.app import app
        from curate.web.review_pages import ReviewPages
        from curate.web.view_pages import IndexSource, ViewPages
    folder = review.sample.folder
    run = folder.parent.parent
    pages = ViewPages(IndexSource(run), version(PACKAGE), reviewed=True)
    site = partial(app, pages, ReviewPages(review))
    serving.serve(
        site, folder / "page.token", path="/review", host=host, port=port, allow_remote=allow_remote, tell=tell
    )


def view(run: Path, *, path: str = "/", port: int = PORT, tell: Callable[[str], None]) -> None:
    """Serve the pages of a run until they are stopped."""
    with needed("the page of a run"):
        from curate.web import serving
        from curate.web.app import app
        from curate.web.view_pages import IndexSource, ViewPages
    source = IndexSource(run)
    source.now()
    site = partial(app, ViewPages(source, version(PACKAGE)), None)
    serving.serve(site, source.cache / "page.token", path=path, port=port, tell=tell)
