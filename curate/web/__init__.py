"""The web app, on this machine: the pages of a run, read-only, and those on which assessors answer a sample.

The review pages read rows and store answers by a `Desk`, as the import of sheets does.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from curate.review import Desk
from curate.system.extras import needed
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
    """Serve the review pages of a sample until they are stopped, as `serving.serve` does."""
    with needed("the review page"):
        from curate.web import serving
        from curate.web.review_pages import site
    token_file = review.sample.folder / "page.token"
    serving.serve(partial(site, review), token_file, host=host, port=port, allow_remote=allow_remote, tell=tell)


def view(
    run: Path, cache: Path, *, version: str, path: str = "/", port: int = PORT, tell: Callable[[str], None]
) -> None:
    """Serve the pages of a run until they are stopped; its index is kept in `cache`."""
    with needed("the page of a run"):
        from curate.web import serving
        from curate.web.view_pages import IndexSource, app
    source = IndexSource(run, cache)
    source.now()
    serving.serve(partial(app, source, version), cache / "page.token", path=path, port=port, tell=tell)
