"""HTTP transport of the vendors' SDKs (aiohttp connections, httpx2 types), and whether a request was sent."""

import zlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx2

from curate.system.egress import proxy

if TYPE_CHECKING:
    import aiohttp


@dataclass
class Way:
    """One request on its way to a provider."""

    sent: bool = True
    """Whether any of it may have arrived; only the transport can rule that out."""


SENDING: ContextVar[Way | None] = ContextVar("SENDING", default=None)
"""The request that the current task sends, for the transport."""


class TooLarge(Exception):
    """The body of a reply exceeds its limit."""


# HTTP transport of the vendors' SDKs: connections by aiohttp, types by httpx2.

_KEPT_S = 5.0
"""Seconds for which an idle connection is kept; many servers close theirs soon after."""
_MOST_CODINGS = 2
_GZIP = frozenset({"gzip", "x-gzip"})
_ABOUT_THE_BODY = frozenset({b"content-encoding", b"content-length", b"content-type", b"transfer-encoding"})
"""Headers of the body as sent, dropped once it is decoded; a charset that decompresses could make it large again."""
_address = lru_cache(maxsize=64)(httpx2.URL)


class Client(httpx2.AsyncClient):
    """HTTP client for an SDK: at most `slots` connections to one address, for one event loop.

    No redirects, cookies, netrc or timeouts: no provider's API needs the first three, and `answer` bounds a call. A
    reply is read completely before it is returned, and aborted once it is longer than `most` bytes.
    """

    def __init__(self, address: str, slots: int, most: int) -> None:
        self._connections = _Connections(address, slots, most)
        super().__init__(transport=self._connections, timeout=None)

    def build_request(self, method: str, url: httpx2.URL | str, **parts: Any) -> httpx2.Request:  # noqa: ANN401
        """Return a request; one with an encoded body is built without the client's defaults."""
        if not isinstance(parts.get("content"), bytes) or parts.get("params"):
            return super().build_request(method, url, **parts)
        return httpx2.Request(method, _address(str(url)), headers=parts.get("headers"), content=parts["content"])

    async def send(self, request: httpx2.Request, **_options: Any) -> httpx2.Response:  # noqa: ANN401
        """Return the reply; httpx2.TransportError if there is none or it is too long."""
        return await self._connections.handle_async_request(request)


class _Connections(httpx2.AsyncBaseTransport):
    def __init__(self, address: str, slots: int, most: int) -> None:
        import aiohttp

        secure = httpx2.create_ssl_context() if address.startswith("https:") else True
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_sent)
        self._most = most
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=slots, ssl=secure, keepalive_timeout=_KEPT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,  # `unpacked` does it, to a bound
            skip_auto_headers=["User-Agent", "Accept", "Accept-Encoding"],
            proxy=proxy(address),
            trace_configs=[tracing],
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        import aiohttp

        body, headers = await request.aread(), request.headers.multi_items()
        sending = self._session.request(
            request.method, str(request.url), headers=headers, data=body, allow_redirects=False
        )
        if (transfer := SENDING.get()) is not None:
            transfer.sent = False
        try:
            async with sending as reply:
                content = await self._read(reply)
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error)) from error
        except (aiohttp.ClientError, OSError, TooLarge, ValueError, zlib.error) as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        kept_headers = [(name, text) for name, text in reply.raw_headers if name.lower() not in _ABOUT_THE_BODY]
        return httpx2.Response(reply.status, headers=kept_headers, content=content, request=request)

    async def _read(self, reply: "aiohttp.ClientResponse") -> bytes:
        """Return the body of a reply; empty for an error whose body is too long, since its status is enough."""
        try:
            content = b"".join([piece async for piece in self._parts(reply)])
            return unpacked(content, reply.headers.get("content-encoding", ""), self._most)
        except TooLarge:
            reply.close()
            if reply.status < 300:
                raise
            return b""

    async def _parts(self, reply: "aiohttp.ClientResponse") -> AsyncIterator[bytes]:
        if (reply.content_length or 0) > self._most:
            raise TooLarge
        size = 0
        async for piece in reply.content.iter_any():
            size += len(piece)
            if size > self._most:
                raise TooLarge
            yield piece

    async def aclose(self) -> None:
        await self._session.close()


async def _sent(_session: "aiohttp.ClientSession", _context: SimpleNamespace, _what: object) -> None:
    if (transfer := SENDING.get()) is not None:
        transfer.sent = True


def unpacked(content: bytes, codings: str, most: int) -> bytes:
    """Return a decompressed body of at most `most` bytes.

    TooLarge if there are more bytes, or more than `_MOST_CODINGS` layers; zlib.error for broken data. Unknown codings
    are left as they are.
    """
    names = [name for coding in codings.lower().split(",") if (name := coding.strip()) in {*_GZIP, "deflate"}]
    if len(names) > _MOST_CODINGS:
        raise TooLarge
    for name in reversed(names):
        zipped = name in _GZIP or content[:1] == b"\x78"  # else deflate without a head, as some servers send it
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32 if zipped else -zlib.MAX_WBITS)
        content = unpacking.decompress(content, most + 1)
        if len(content) > most:
            raise TooLarge
    return content
