"""The app, pages of a run and of one of its samples, and its server: host, address, secret and shutdown."""

import ipaddress
import re
import secrets
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from curate.core.errors import ConfigError, UserError
from curate.review.access import ENTER
from curate.system.extras import needed
from curate.system.files import replacing
from curate.web.decide_pages import DecidePages
from curate.web.guard import Entrance, Guard, UnderPath, Visitor
from curate.web.pages import static
from curate.web.review_pages import ReviewPages
from curate.web.view_pages import ViewPages

_HERE = ("127.0.0.1", "localhost", "::1")
_CLOSING_S = 3
"""Seconds that open connections get to finish when the server stops."""


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


def serve(
    site: Callable[[Entrance], Starlette],
    entrance: Entrance,
    *,
    path: str = "/",
    host: str = "127.0.0.1",
    port: int,
    tell: Callable[[str], None],
) -> None:
    """Serve the app that `site` returns until it is stopped; `tell` is called with the address to open.

    It ends in `path`; with a public URL it is that of the page for personal links. Port 0 is any free port.
    MissingExtra without the extra `review`; UserError if the port is in use.
    """
    with needed("the page"):
        import uvicorn
    config = uvicorn.Config(
        site(entrance),
        log_config=None,
        access_log=False,  # addresses and texts of requests stay out of every log
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_S,
    )
    with _listening(host, port) as listener:
        with_secret = address(host, listener.getsockname()[1], entrance.token, path)
        tell(f"{entrance.public_url}{ENTER}" if entrance.public_url else with_secret)
        uvicorn.Server(config).run(sockets=[listener])


def need_loopback(host: str) -> None:
    """Raise ConfigError for an address that other machines can reach."""
    if not loopback(host):
        raise ConfigError(
            f"host {host!r}: others could reach it, and nothing is encrypted on the way; leave --host out and use "
            "`ssh -L`, or add --allow-remote in a network that you trust"
        )


def hosts(host: str = _HERE[0]) -> Callable[[str], bool]:
    """Return the function that tells whether the page served at `host` accepts a Host header."""
    return partial(answers_to, host)


def loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    number = _number(host)
    return number.is_loopback if number else host == "localhost"


def answers_to(host: str, name: str) -> bool:
    """Return whether the page served at `host` accepts the Host header `name`.

    Other names that resolve to this machine are refused, since an attacker could use one to read the page (DNS
    rebinding).
    """
    number = _number(host)
    if number and number.is_unspecified and (_number(name) or name == socket.gethostname().lower()):
        return True
    return name in _HERE or name == host.lower()


def address(host: str, port: int, token: str, path: str = "/") -> str:
    """Return the URL to open, with the token, which the app removes from the browser's address by a redirect."""
    number = _number(host)
    name = socket.gethostname() if number and number.is_unspecified else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}{path}?token={token}"


def kept_token(path: Path) -> str:
    """Return the secret of a sample's review app, from the file `path`, created once and readable only by its owner.

    It is stored so that address and sessions remain valid after a restart of the server.
    """
    if not path.is_file() or not re.fullmatch(rb"[\w-]{43}\s*", path.read_bytes()):
        with replacing(path) as temporary:
            temporary.touch(mode=0o600)
            temporary.write_text(secrets.token_urlsafe(32), encoding="ascii")
    path.chmod(0o600)
    return path.read_text(encoding="ascii").strip()


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UserError(f"{host}, port {port}: cannot be served ({error.strerror}); choose another --port") from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each page waits 40 ms for an acknowledgement
    return listener
