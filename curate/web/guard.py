"""Request guard of the review app: host check, secret in the address, and CSRF protection.

Listening on loopback is not enough: any site open in the user's browser can send requests to it, and an attacker can
make any host name resolve to it. So the Host header must be one of the app's, and a cookie must contain the secret from
the address. A request that changes something must come from the app's own page, by the headers Origin and
Sec-Fetch-Site and by a hidden field.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
"""Path of the style files, served without the secret."""

Shown = Callable[[str, int, dict[str, Any]], Response]
"""Function of (template, HTTP status, values) that returns a rendered page as a response."""


class Guard:
    """Middleware that passes a request on to the review app, or refuses it."""

    def __init__(self, app: ASGIApp, token: str, known: Callable[[str], bool], shown: Shown) -> None:
        self._app, self._token, self._known, self._shown = app, token, known, shown
        self._cookie = f"review_{self._derived('name')[:8]}"  # ports of one host share cookies
        self._pass, self._proof = self._derived("pass"), self._derived("proof")

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
        if not self._host_known(request.headers.get("host", "")):
            return self._refused("host")
        if request.url.path.startswith(_OPEN):
            return None
        if "token" in request.query_params:
            return self._entered(request)
        if not _equal_digest(request.cookies.get(self._cookie, ""), self._pass):
            return self._refused("token")
        request.state.proof = self._proof
        if request.method not in ("GET", "HEAD") and not _from_here(request):
            return self._refused("origin")
        return None

    def _host_known(self, header: str) -> bool:
        try:
            return self._known(urlsplit(f"//{header}").hostname or "")
        except ValueError:
            return False

    def _entered(self, request: Request) -> Response:
        """Exchange the secret in the address for a cookie, and redirect to an address without it."""
        if not _equal_digest(request.query_params["token"], self._token):
            return self._refused("token")
        rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        path = "/" + request.scope["raw_path"].partition(b"?")[0].decode("ascii", "replace").lstrip("/\\")
        target = f"{path}?{rest}" if rest else path
        if request.headers.get("sec-fetch-site") == "cross-site":
            response = self._shown("entered", 200, {"target": target})  # a redirect would not carry a strict cookie
        else:
            response = RedirectResponse(target, status_code=303)
        response.set_cookie(self._cookie, self._pass, max_age=_MONTH_S, httponly=True, samesite="strict")
        return response

    def _derived(self, use: str) -> str:
        """Return a secret for one use (HMAC of the token), which does not reveal the token."""
        return hmac.new(self._token.encode(), use.encode(), hashlib.sha256).hexdigest()

    def _refused(self, why: str) -> Response:
        return self._shown("refused", 403, {"why": why})


def proven(request: Request, field: str) -> bool:
    """Return whether the hidden CSRF field of a form is that of the app's own pages."""
    return _equal_digest(field, request.state.proof)


def _from_here(request: Request) -> bool:
    """Return whether the request comes from one of the app's pages, by its headers Origin and Sec-Fetch-Site.

    Without scripts, a form's Origin is `null`, because of the pages' referrer policy; then Sec-Fetch-Site decides.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != "same-origin":
        return False
    ours = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return origin == ours or (site is not None and origin in (None, "null"))


def _equal_digest(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode("utf-8", "replace"), second.encode("utf-8", "replace"))
