"""The web app, on this machine: the pages of a run, read-only, and those on which assessors answer a sample.

The review pages read rows and store answers by a `Desk`, as the import of sheets does.
"""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from curate.review import Desk
from curate.review.access import Access, public
from curate.system.extras import needed
from curate.view.answers import PACKAGE

__all__ = ["serve", "view"]

PORT = 8765
"""Default port of the page."""


def serve(
    review: Desk,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    allow_remote: bool = False,
    public_url: str = "",
    tell: Callable[[str], None],
) -> None:
    """Serve the pages of a sample, and those of its run, until they are stopped, as `serving.serve` does.

    ConfigError for a host that other machines can reach, unless `allow_remote`, and for an invalid public URL.
    """
    with needed("the review page"):
        from curate.web import serving
        from curate.web.guard import Entrance
        from curate.web.review_pages import ReviewPages
        from curate.web.view_pages import IndexSource, ViewPages
    if not allow_remote:
        serving.need_loopback(host)
    public_url = public(public_url) if public_url else ""
    folder, base = review.sample.folder, urlsplit(public_url).path
    pages = ViewPages(IndexSource(folder.parent.parent), version(PACKAGE), base, reviewed=True)
    site = partial(serving.app, pages, ReviewPages(review, base))
    command = "curate check mask --serve" if review.sample.form.private else "curate review serve"
    token = serving.kept_token(folder / "page.token")
    entrance = Entrance(token, serving.hosts(host), Access(review), public_url, command)
    serving.serve(site, entrance, path="/review", host=host, port=port, tell=tell)


def view(run: Path, *, path: str = "/", port: int = PORT, tell: Callable[[str], None]) -> None:
    """Serve the pages of a run until they are stopped."""
    with needed("the page of a run"):
        from curate.web import serving
        from curate.web.guard import Entrance
        from curate.web.view_pages import IndexSource, ViewPages
    source = IndexSource(run)
    source.now()
    site = partial(serving.app, ViewPages(source, version(PACKAGE)), None)
    entrance = Entrance(serving.kept_token(source.cache / "page.token"), serving.hosts(), command="curate view")
    serving.serve(site, entrance, path=path, port=port, tell=tell)
