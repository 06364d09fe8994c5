"""HTTP/1.1 by hand on asyncio: hundreds of open connections cost nothing, and an answer can break at any byte."""

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus

from tests.vendor.records import Answer

_PHRASES = {int(each): each.phrase for each in HTTPStatus}
_PIECES = 10
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Asked:
    """One HTTP request."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


Handler = Callable[[Asked], Awaitable[tuple[Answer, bytes]]]
"""Gives the answer, which says how it is sent, and its body."""


@contextmanager
def served(handler: Handler, port: int = 0) -> Iterator[str]:
    """Serve in a thread of its own while the block lasts, at a free port by default; give the address."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(_listen(loop, handler, port))
    port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, name="vendor")
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _listen(loop: asyncio.AbstractEventLoop, handler: Handler, port: int) -> asyncio.Server:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _read(reader)) and await _answer(writer, *await handler(asked)):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client gave up first, or the block is over
        finally:
            writer.close()

    return await asyncio.start_server(connected, "127.0.0.1", port, backlog=4096)


async def _end(server: asyncio.Server) -> None:
    server.close()
    running = asyncio.all_tasks() - {asyncio.current_task()}
    for each in running:
        each.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await asyncio.sleep(0)  # transports close in the next round


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    """Return the next request of a connection, None if there is none."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head[:-4].split("\r\n")
    method, target, _version = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    path, _, query = target.partition("?")
    if headers.get("transfer-encoding") == "chunked":
        body = await _chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, query, headers, body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body


async def _answer(writer: asyncio.StreamWriter, answer: Answer, body: bytes) -> bool:
    """Send an answer as far as it goes; say whether the connection stands."""
    if answer.sent == "nothing":
        return _reset(writer)
    if answer.sent == "truncated":
        body = body[: len(body) // 2]
    head = _head(answer, len(body))
    if answer.sent == "head":
        writer.write(head)
        await asyncio.sleep(0.01)  # else the reset overtakes the head
        return _reset(writer)
    if answer.sent == "half":
        writer.write(head + body[: len(body) // 2])
        return False
    if answer.dribble:
        writer.write(head)
        await _dribble(writer, body, answer.dribble / _PIECES)
    else:  # head and body in one packet, by one system call
        writer.write(head + body)
    await writer.drain()
    return True


async def _dribble(writer: asyncio.StreamWriter, body: bytes, pause: float) -> None:
    step = len(body) // _PIECES + 1
    for start in range(0, len(body), step):
        writer.write(body[start : start + step])
        await asyncio.sleep(pause)


def _head(answer: Answer, length: int) -> bytes:
    kind = "application/json" if answer.page is None else "text/html"
    headers = {"content-type": kind, "content-length": str(length), **answer.headers}
    first = f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, 'Unknown')}"
    lines = [first, *(f"{name}: {value}" for name, value in headers.items()), "\r\n"]
    return "\r\n".join(lines).encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> bool:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
    return False
