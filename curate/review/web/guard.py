"""Who may pass: the page's own address, a secret in it, and on every change proof that the page itself sent it.

Loopback is no wall: any site that a visitor has open can send requests to it, and any name can be made to point at it.
So the Host header must be one of ours, a cookie must hold what only the address gives, and a change must come from
this very page, which the browser says (Origin, Sec-Fetch-Site) and a hidden field proves.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

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
"""What every response says."""
_MONTH_S = 30 * 24 * 3600
_OPEN = "/static/"
"""Served without a login: how the page looks."""

Shown = Callable[[str, int, dict[str, Any]], Response]
"""Template, status, what it shows -> response."""


class Guard:
    """Lets a request pass to the page, or answers it."""

    def __init__(self, app: ASGIApp, token: str, known: Callable[[str], bool], shown: Shown) -> None:
        self._app, self._token, self._known, self._shown = app, token, known, shown
        self._cookie = f"review_{self._derived('name')[:8]}"  # ports of one host share cookies
        self._pass, self._proof = self._derived("pass"), self._derived("proof")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on one request, and put the headers on its response."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(Request(scope)) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, headed)

    def _answer(self, request: Request) -> Response | None:
        """Return the response to a request that goes no further, None if it may pass."""
        if not self._host_known(request.headers.get("host", "")):
            return self._refused("host")
        if request.url.path.startswith(_OPEN):
            return None
        if "token" in request.query_params:
            return self._entered(request)
        if not _same(request.cookies.get(self._cookie, ""), self._pass):
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
        """Exchange the secret in the address for a cookie, and leave an address without it."""
        if not _same(request.query_params["token"], self._token):
            return self._refused("token")
        if request.headers.get("sec-fetch-site") == "cross-site":
            response = self._shown("entered", 200, {})  # a redirect from elsewhere would not carry a strict cookie
        else:
            response = RedirectResponse("/", status_code=303)
        response.set_cookie(self._cookie, self._pass, max_age=_MONTH_S, httponly=True, samesite="strict")
        return response

    def _derived(self, use: str) -> str:
        """Return a secret that only this one use knows; the token cannot be told from it."""
        return hmac.new(self._token.encode(), use.encode(), hashlib.sha256).hexdigest()

    def _refused(self, why: str) -> Response:
        return self._shown("refused", 403, {"why": why})


def proven(request: Request, field: str) -> bool:
    """Say whether the hidden field of a form is the one that our pages have."""
    return _same(field, request.state.proof)


def _from_here(request: Request) -> bool:
    """Say whether a browser sent this from a page of ours.

    Without scripts a form's Origin is `null`, because the page asks for no referrer; then the other header decides.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != "same-origin":
        return False
    ours = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return origin == ours or (site is not None and origin in (None, "null"))


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
