"""HTTP beneath the vendors' SDKs: connections by aiohttp, types by httpx2, and little work a call.

For each call httpx2's own pool goes through all of its connections, so its work grows with the square of their number;
docs/decisions/0008-connections.md has the figures.
"""

import zlib
from collections.abc import AsyncIterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import aiohttp
import httpx2

from curate.egress import proxy
from curate.providers.way import SENDING, TooLarge

_KEPT_S = 5.0
"""Seconds for which an idle connection is kept; many servers close theirs soon after."""
_MOST_CODINGS = 2
_GZIP = frozenset({"gzip", "x-gzip"})
_ABOUT_THE_BODY = frozenset({b"content-encoding", b"content-length", b"content-type", b"transfer-encoding"})
"""Headers that are true of a body as it was sent; a charset that decompresses would be one more way to a large one."""
_address = lru_cache(maxsize=64)(httpx2.URL)


class Client(httpx2.AsyncClient):
    """What an SDK is given as its client: at most `slots` connections to one address, of one event loop.

    Redirects, cookies, netrc and timeouts are left out: no vendor's API needs the first three, and `answer` bounds a
    call. A reply is read as a whole before it is handed on, and given up once it is longer than `most` bytes.
    """

    def __init__(self, address: str, slots: int, most: int) -> None:
        self._connections = _Connections(address, slots, most)
        super().__init__(transport=self._connections, timeout=None)

    def build_request(self, method: str, url: httpx2.URL | str, **parts: Any) -> httpx2.Request:  # noqa: ANN401
        """Return a request; one with its body ready is built as it is, and merged with no defaults."""
        if not isinstance(parts.get("content"), bytes) or parts.get("params"):
            return super().build_request(method, url, **parts)
        return httpx2.Request(method, _address(str(url)), headers=parts.get("headers"), content=parts["content"])

    async def send(self, request: httpx2.Request, **_options: Any) -> httpx2.Response:  # noqa: ANN401
        """Return the reply; httpx2.TransportError if there is none, TooLarge if it is longer than it may be."""
        return await self._connections.handle_async_request(request)


class _Connections(httpx2.AsyncBaseTransport):
    def __init__(self, address: str, slots: int, most: int) -> None:
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
        body, headers = await request.aread(), request.headers.multi_items()
        sending = self._session.request(
            request.method, str(request.url), headers=headers, data=body, allow_redirects=False
        )
        if (way := SENDING.get()) is not None:
            way.sent = False
        try:
            async with sending as reply:
                content = await self._read(reply)
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error)) from error
        except (aiohttp.ClientError, OSError, TooLarge, ValueError, zlib.error) as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        told = [(name, value) for name, value in reply.raw_headers if name.lower() not in _ABOUT_THE_BODY]
        return httpx2.Response(reply.status, headers=told, content=content, request=request)

    async def _read(self, reply: aiohttp.ClientResponse) -> bytes:
        """Return the body of a reply; of a refusal that is too long nothing, for its status says enough."""
        try:
            content = b"".join([part async for part in self._parts(reply)])
            return unpacked(content, reply.headers.get("content-encoding", ""), self._most)
        except TooLarge:
            reply.close()
            if reply.status < 300:
                raise
            return b""

    async def _parts(self, reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        if (reply.content_length or 0) > self._most:
            raise TooLarge
        size = 0
        async for part in reply.content.iter_any():
            size += len(part)
            if size > self._most:
                raise TooLarge
            yield part

    async def aclose(self) -> None:
        await self._session.close()


async def _sent(_session: aiohttp.ClientSession, _context: SimpleNamespace, _what: object) -> None:
    if (way := SENDING.get()) is not None:
        way.sent = True


def unpacked(content: bytes, codings: str, most: int) -> bytes:
    """Return a body without its compressions, of which no more than `most` bytes are ever unpacked.

    TooLarge if there are more bytes, or more layers than is sensible; zlib.error if it is not packed as it says. A
    coding that is not known here is left in place.
    """
    names = [name for each in codings.lower().split(",") if (name := each.strip()) in {*_GZIP, "deflate"}]
    if len(names) > _MOST_CODINGS:
        raise TooLarge
    for name in reversed(names):
        zipped = name in _GZIP or content[:1] == b"\x78"  # else deflate without a head, as some servers send it
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32 if zipped else -zlib.MAX_WBITS)
        content = unpacking.decompress(content, most + 1)
        if len(content) > most:
            raise TooLarge
    return content
