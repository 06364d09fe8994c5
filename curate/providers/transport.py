"""HTTP beneath the vendors' SDKs: connections by aiohttp, types by httpx2, and little work a call.

For each call httpx2's own pool goes through all of its connections, so its work grows with the square of their number;
docs/decisions/0008-connections.md has the figures.
"""

from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

from curate.errors import ConfigError

_KEPT_S = 5.0
"""Seconds for which an idle connection is kept; many servers close theirs soon after."""
_address = lru_cache(maxsize=64)(httpx2.URL)


class Client(httpx2.AsyncClient):
    """What an SDK is given as its client: at most `slots` connections to one address, of one event loop.

    Redirects, cookies, netrc and timeouts are left out: no vendor's API needs the first three, and `answer` bounds a
    call. A reply is read as a whole before it is handed on.
    """

    def __init__(self, address: str, slots: int) -> None:
        self._connections = _Connections(address, slots)
        super().__init__(transport=self._connections, timeout=None)

    def build_request(self, method: str, url: httpx2.URL | str, **parts: Any) -> httpx2.Request:  # noqa: ANN401
        """Return a request; one with its body ready is built as it is, and merged with no defaults."""
        if not isinstance(parts.get("content"), bytes) or parts.get("params"):
            return super().build_request(method, url, **parts)
        return httpx2.Request(method, _address(str(url)), headers=parts.get("headers"), content=parts["content"])

    async def send(self, request: httpx2.Request, **_options: Any) -> httpx2.Response:  # noqa: ANN401
        """Return the reply; httpx2.TransportError if there is none."""
        return await self._connections.handle_async_request(request)


class _Connections(httpx2.AsyncBaseTransport):
    def __init__(self, address: str, slots: int) -> None:
        secure = httpx2.create_ssl_context() if address.startswith("https:") else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=slots, ssl=secure, keepalive_timeout=_KEPT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,  # httpx2.Response does it
            skip_auto_headers=["User-Agent", "Accept", "Accept-Encoding"],
            proxy=proxy(address),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body, headers = await request.aread(), request.headers.multi_items()
        sending = self._session.request(
            request.method, str(request.url), headers=headers, data=body, allow_redirects=False
        )
        try:
            async with sending as reply:
                content = await reply.read()
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error)) from error
        except aiohttp.ClientError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        return httpx2.Response(reply.status, headers=reply.raw_headers, content=content, request=request)

    async def aclose(self) -> None:
        await self._session.close()


def proxy(address: str) -> str | None:
    """Return the proxy that the environment names for an address, None for none; ConfigError unless it speaks HTTP."""
    parts, named = urlsplit(address), getproxies()
    found = named.get(parts.scheme) or named.get("all")
    if not found or proxy_bypass(parts.hostname or ""):
        return None
    if urlsplit(found).scheme not in ("http", "https"):
        raise ConfigError(
            f"{parts.scheme}_proxy: a proxy for {address} must be an http:// address; "
            "set that variable, or name the host in no_proxy"
        )
    return found
