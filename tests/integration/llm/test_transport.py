"""The connections beneath the SDKs against a server that speaks bare bytes, so that it may break every rule."""

import asyncio
import gzip
import json
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from curate.core.errors import ConfigError, ProviderError
from curate.core.messages import Message, Reply, Request
from curate.llm.providers.openai import OpenAIProvider
from curate.llm.providers.settings import ProviderConfig
from curate.system.egress import proxy

REQUEST = Request((Message("user", "几点了"),), max_tokens=5)
ANSWER = json.dumps({"model": "m", "choices": [{"message": {"content": "三点"}, "finish_reason": "stop"}]}).encode()
Say = Callable[[str, asyncio.StreamWriter], Awaitable[None]]
Test = Callable[[OpenAIProvider], Awaitable[Any]]


class Server:
    """Counts connections, keeps what was sent, and lets `say` write whatever it likes."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.opened = self.open = 0
        self.heads: list[str] = []
        self.bodies: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened, self.open = self.opened + 1, self.open + 1
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(line for line in head.lower().splitlines() if line.startswith("content-length:"))
                self.bodies.append(await reader.readexactly(int(length.split(":")[1])))
                self.heads.append(head)
                await self.say(head, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):  # the client is done
            pass
        finally:
            self.open -= 1
            writer.close()


def whole(body: bytes = ANSWER, extra: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n{extra}\r\n".encode() + body


async def answers(_head: str, writer: asyncio.StreamWriter) -> None:
    writer.write(whole())


def run(say: Say, test: Test, context: ssl.SSLContext | None = None, **more: Any) -> Server:
    """Run the test with a provider of the server, and close it."""
    server = Server(say)

    async def both() -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
        port = listening.sockets[0].getsockname()[1]
        address = f"{'https' if context else 'http'}://127.0.0.1:{port}/v1"
        provider = OpenAIProvider(ProviderConfig(**{"model": "m", "base_url": address, "timeout_s": 20.0, **more}))
        try:
            await test(provider)
        finally:
            await provider.close()
            listening.close()
            while server.open:  # noqa: ASYNC110 - a connection that leaks keeps us here until the test's time is up
                await asyncio.sleep(0.01)

    asyncio.run(both())
    return server


async def once(provider: OpenAIProvider) -> Reply:
    reply = await provider.answer(REQUEST)
    assert reply.text == "三点"
    return reply


async def many(provider: OpenAIProvider) -> None:
    await asyncio.gather(*(once(provider) for _ in range(40)))


def test_a_connection_is_used_again() -> None:
    async def thrice(provider: OpenAIProvider) -> None:
        for _ in range(3):
            await once(provider)

    assert run(answers, thrice).opened == 1


def test_there_are_never_more_connections_than_slots() -> None:
    async def slowly(head: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.01)
        await answers(head, writer)

    server = run(slowly, many, concurrency=7)
    assert (server.opened, len(server.heads)) == (7, 40)


def test_a_connection_that_the_server_gave_up_is_replaced() -> None:
    async def last(head: str, writer: asyncio.StreamWriter) -> None:
        await answers(head, writer)
        writer.close()

    async def twice(provider: OpenAIProvider) -> None:
        await once(provider)
        await asyncio.sleep(0.05)
        await once(provider)

    assert run(last, twice).opened == 2


@pytest.mark.parametrize(
    "sent",
    [
        whole(gzip.compress(ANSWER), "content-encoding: gzip\r\n"),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(ANSWER), ANSWER),
        whole(extra="set-cookie: a=b\r\n"),
    ],
    ids=["gzip", "chunked", "cookie"],
)
def test_every_form_of_a_body_is_read(sent: bytes) -> None:
    async def say(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)

    async def twice(provider: OpenAIProvider) -> None:
        await once(provider)
        await once(provider)

    assert "cookie" not in run(say, twice).heads[1].lower()


@pytest.mark.parametrize(
    "sent", [b"", b"220 mail.example.com ESMTP\r\n\r\n", whole()[:-9]], ids=["none", "mail", "cut"]
)
def test_what_is_no_answer_is_an_error_that_may_pass(sent: bytes) -> None:
    async def say(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        writer.close()

    async def fail(provider: OpenAIProvider) -> None:
        with pytest.raises(ProviderError, match="no answer from http") as caught:
            await provider.answer(REQUEST)
        assert not caught.value.fatal
        assert not caught.value.useless

    run(say, fail)


def test_a_body_that_stalls_is_given_up_and_its_connection_closed() -> None:
    async def say(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(whole()[:-9])

    async def fail(provider: OpenAIProvider) -> None:
        for _ in range(2):
            with pytest.raises(ProviderError, match=r"no answer within 0.2 s"):
                await provider.answer(REQUEST)

    assert run(say, fail, timeout_s=0.2, concurrency=1).opened == 2


def test_the_sdk_can_send_a_file() -> None:
    async def say(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(b'{"id": "file-1"}', "content-type: application/json\r\n"))

    async def upload(provider: OpenAIProvider) -> None:
        sent = await provider._open().files.create(file=("a.jsonl", b'{"custom_id": 1}'), purpose="batch")
        assert sent.id == "file-1"

    server = run(say, upload)
    assert b'{"custom_id": 1}' in server.bodies[0]
    assert "multipart/form-data; boundary=" in server.heads[0]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Make a certificate for 127.0.0.1, and its key in the same file."""
    if which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    key, made = tmp_path / "key.pem", tmp_path / "certificate.pem"
    options = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", "req", *options.split(), "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    made.write_text(made.read_text() + key.read_text())
    return made


def secured(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_trusted_certificate(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert run(answers, many, secured(certificate), concurrency=4).opened == 4


def test_a_certificate_that_nobody_vouches_for(certificate: Path) -> None:
    async def fail(provider: OpenAIProvider) -> None:
        with pytest.raises(ProviderError, match="ConnectError"):
            await provider.answer(REQUEST)

    assert run(answers, fail, secured(certificate)).heads == []


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_the_proxy_of_the_environment(proxies: pytest.MonkeyPatch) -> None:
    async def through(provider: OpenAIProvider) -> None:
        proxies.setenv("http_proxy", provider.base_url.removesuffix("/v1"))
        far = OpenAIProvider(ProviderConfig(model="m", base_url="http://vendor.invalid/v1"))
        try:
            await once(far)
        finally:
            await far.close()

    assert run(answers, through).heads[0].startswith("POST http://vendor.invalid/v1/chat/completions ")


def test_which_proxy_is_taken(proxies: pytest.MonkeyPatch) -> None:
    address = "https://api.vendor.example/v1"
    assert proxy(address) is None
    proxies.setenv("all_proxy", "http://all:1")
    assert proxy(address) == "http://all:1"
    proxies.setenv("https_proxy", "http://secure:1")
    assert proxy(address) == "http://secure:1"
    proxies.setenv("no_proxy", "vendor.example")
    assert proxy(address) is None
    assert proxy("https://other.example") == "http://secure:1"
    proxies.setenv("https_proxy", "socks5://user:secret@socks:1")
    with pytest.raises(ConfigError, match="https_proxy: a proxy for https://other") as caught:
        proxy("https://other.example")
    assert "secret" not in str(caught.value)
