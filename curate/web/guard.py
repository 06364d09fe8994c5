"""Request guard: which host, whose browser, which role, and that a form is the app's own.

Listening on loopback is not enough: any site open in the user's browser can send requests to it, and an attacker can
make any host name resolve to it. So the Host header must be one of the app's, and a cookie must contain the pass of a
browser. A request that changes something must come from the app's own page, by the headers Origin and Sec-Fetch-Site
and by a hidden field. Headers of a proxy are never believed: its address is given when the app is started.
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from curate.review.access import ENTER, Access, Role

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every response."""
_MONTH_S = 30 * 24 * 3600
_OPEN = "/static/"
"""Path of the style files, served without a pass."""

Shown = Callable[[str, int, dict[str, Any]], Response]
"""Function of (template, HTTP status, values) that returns a rendered page as a response."""


@dataclass(frozen=True)
class Visitor:
    """Whose browser sends a request."""

    person: str
    """Name of who was invited; empty for who holds the shared secret, which the app printed when it was started."""
    role: Role | Literal["owner"]


OWNER = Visitor("", "owner")
May = Callable[[Visitor, str], bool]
"""Function of (visitor, path) that returns whether the visitor may see a page."""


@dataclass(frozen=True)
class Entrance:
    """How browsers get in: by the shared secret in an address or, with `access`, by personal links and codes."""

    token: str
    is_host: Callable[[str], bool]
    """Whether a host name is one of the app's; not asked if there is a public URL."""
    access: Access | None = None
    public_url: str = ""
    """URL of the proxy in front, without a slash at its end; the shared secret is then refused. Empty without one."""
    command: str = "curate review serve"
    """Command that serves the pages."""

    @property
    def base(self) -> str:
        """Return the path of the public URL, which stands before every address; empty without one."""
        return urlsplit(self.public_url).path

    @property
    def cookie(self) -> str:
        """Return the name of the cookie; without TLS it depends on the secret, for ports of one host share cookies."""
        if self.public_url:
            return "__Secure-review" if self.base else "__Host-review"
        return f"review_{self.derived('name')[:8]}"

    def host_known(self, header: str) -> bool:
        """Return whether a Host header is the app's."""
        if self.public_url:
            address = urlsplit(self.public_url)
            return header.lower() in (address.netloc.lower(), address.hostname)  # proxies may leave the port out
        try:
            return self.is_host(urlsplit(f"//{header}").hostname or "")
        except ValueError:
            return False

    def visitor(self, request: Request) -> Visitor | None:
        """Return whose pass a browser has; None if it has none."""
        browser_pass = request.cookies.get(self.cookie, "")
        if not self.public_url and equal_digest(browser_pass, self.derived("pass")):
            return OWNER
        holder = self.access.holder(browser_pass) if self.access and browser_pass else None
        return Visitor(holder.person, holder.role) if holder else None

    def proof(self, request: Request) -> str:
        """Return the hidden field of the forms that a browser is sent."""
        return self.derived("proof" + request.cookies.get(self.cookie, ""))

    def let_in(self, response: Response, browser_pass: str) -> Response:
        """Return the response with the cookie of a pass; a shared one is only sent by the app's own pages."""
        shared = browser_pass == self.derived("pass")
        response.set_cookie(
            self.cookie,
            browser_pass,
            max_age=_MONTH_S,
            path=self.base or "/",
            httponly=True,
            secure=bool(self.public_url),
            samesite="strict" if shared else "lax",  # a link in a mail has to arrive signed in
        )
        return response

    def is_own(self, request: Request) -> bool:
        """Return whether the request comes from one of the app's pages, by its headers Origin and Sec-Fetch-Site.

        Without scripts, a form's Origin is `null`, because of the pages' referrer policy; then Sec-Fetch-Site decides.
        """
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if site is not None and site != "same-origin":
            return False
        app_origin = (
            f"https://{urlsplit(self.public_url).netloc}"
            if self.public_url
            else f"http://{request.headers.get('host', '')}"
        )
        return (origin or "").lower() == app_origin.lower() or (site is not None and origin in (None, "null"))

    def derived(self, use: str) -> str:
        """Return a secret for one use (HMAC of the token), which does not reveal the token."""
        return hmac.new(self.token.encode(), use.encode(), hashlib.sha256).hexdigest()


class Guard:
    """Middleware that passes a request on to the app, or refuses it."""

    def __init__(self, app: ASGIApp, entrance: Entrance, may: May, shown: Shown) -> None:
        self._app, self._entrance, self._may, self._shown = app, entrance, may, shown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse or pass on one request, and add `HEADERS` to its response."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(Request(scope)) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, headed)

    def _answer(self, request: Request) -> Response | None:
        """Return the response to a refused request; None if it may pass."""
        entrance, path = self._entrance, request.scope["path"]
        if not entrance.host_known(request.headers.get("host", "")):
            return self._refused("host")
        request.state.entrance = entrance
        enters = path == ENTER and entrance.access is not None
        if "token" in request.query_params and not enters and not path.startswith(_OPEN):
            return self._entered(request)
        visitor = entrance.visitor(request)
        if not enters and not path.startswith(_OPEN):
            if visitor is None:
                return self._refused("token")
            if not self._may(visitor, path):
                return self._refused("role")
            request.state.visitor, request.state.proof = visitor, entrance.proof(request)
        is_form = request.method not in ("GET", "HEAD")
        return self._refused("origin") if is_form and not entrance.is_own(request) else None

    def _entered(self, request: Request) -> Response:
        """Exchange the secret in the address for a cookie, and redirect to an address without it."""
        entrance = self._entrance
        if entrance.public_url or not equal_digest(request.query_params["token"], entrance.token):
            return self._refused("token")
        rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        path = "/" + request.scope["raw_path"].partition(b"?")[0].decode("ascii", "replace").lstrip("/\\")
        target = f"{path}?{rest}" if rest else path
        if request.headers.get("sec-fetch-site") == "cross-site":
            response = self._shown("entered", 200, {"target": target})  # a redirect would not carry a strict cookie
        else:
            response = RedirectResponse(target, status_code=303)
        return entrance.let_in(response, entrance.derived("pass"))

    def _refused(self, why: str) -> Response:
        return self._shown("refused", 403, {"why": why, "command": self._entrance.command})


class UnderPath:
    """Middleware that takes the path of the public URL off an address, if the proxy has left it there."""

    def __init__(self, app: ASGIApp, base: str) -> None:
        self._app, self._base = app, base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and (scope["path"] + "/").startswith(f"{self._base}/"):
            raw = scope["raw_path"].decode("ascii", "replace").removeprefix(self._base) or "/"
            scope = {**scope, "path": scope["path"].removeprefix(self._base) or "/", "raw_path": raw.encode()}
        await self._app(scope, receive, send)


def proven(request: Request, field: str) -> bool:
    """Return whether the hidden CSRF field of a form is that of the app's own pages."""
    return equal_digest(field, request.state.proof)


def equal_digest(first: str, second: str) -> bool:
    """Return whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(first.encode("utf-8", "replace"), second.encode("utf-8", "replace"))
