"""Batches: the base of providers' batch APIs, which answer thousands of requests within a day at a lower price.

A batch item has the same body as a call of the online provider, and its reply is parsed by the same code.
"""

import asyncio
import json
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, cast

from curate.core.config import Json
from curate.core.errors import BatchGone, ProviderError
from curate.core.messages import Reply, Request
from curate.core.protocols import BatchProvider
from curate.llm.providers.errors import Rejection, filtered, hidden, rejected
from curate.llm.providers.sdk import Rejected, SdkProvider, Unreachable
from curate.llm.providers.settings import ProviderConfig, key_variable
from curate.system.http import nameless, silent

if TYPE_CHECKING:
    import httpx2

_KINDS: Mapping[str, tuple[str, str]] = {
    "anthropic": ("curate.llm.providers.anthropic", "AnthropicBatch"),
    "openai": ("curate.llm.providers.openai", "OpenAIBatch"),
}
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Valid within JSON strings, but line ends for some readers of JSONL, so they are escaped."""
_GATEWAY = frozenset({502, 504})
"""Statuses of a gateway: the provider may have accepted the request."""
_NOT_SENT = frozenset({"ConnectError", "ConnectTimeout"})
_SLOWEST_UPLOAD = 100_000
"""Bytes per second below which an upload is aborted."""


def batch_provider(config: ProviderConfig) -> BatchProvider | None:
    """Return the provider of these settings with its batch API, None if it has none; ConfigError without a key."""
    if not config.batch or config.kind not in _KINDS:
        return None
    module, name = _KINDS[config.kind]
    provider: BatchProvider = getattr(import_module(module), name)(config)
    return provider


class NoAnswer(ProviderError):
    """It is unknown whether the provider carried out the request."""


class Batching(SdkProvider):
    """Mixin for a provider with a batch API; comes before the provider's class in the bases."""

    most_items: ClassVar[int]
    most_bytes: ClassVar[int]

    async def collect(self, batch_id: str) -> AsyncGenerator[tuple[str, Reply | ProviderError], None]:
        """Yield key and result of an ended batch's items, in any order; an item may be missing."""
        for body in await self._bodies(batch_id):
            async for row in self._rows(batch_id, body):
                key = row.get("custom_id")
                if isinstance(key, str):
                    yield key, self._result(batch_id, row)

    def item(self, key: str, request: Request) -> bytes:
        """Return an item as a line of JSON, ending in a line feed."""
        line = json.dumps(self._item(key, self.body(request)), ensure_ascii=False, separators=(",", ":"))
        return line.translate(_LINE_ENDS).encode() + b"\n"

    @abstractmethod
    def _item(self, key: str, body: dict[str, Json]) -> dict[str, Json]:
        """Return an item in the provider's form."""

    @abstractmethod
    async def _bodies(self, batch_id: str) -> Sequence[AbstractAsyncContextManager[AsyncIterator[bytes]]]:
        """Return the HTTP responses with the results of an ended batch, to be opened by the caller."""

    @abstractmethod
    def _result(self, batch_id: str, row: Mapping[str, object]) -> Reply | ProviderError:
        """Return the reply in a result line, or the error that the line contains instead."""

    def _http(self) -> "httpx2.AsyncClient":
        """Return an HTTP client for uploads and downloads of batches, without a timeout: `_bounded` sets one."""
        import httpx2

        return httpx2.AsyncClient(timeout=None)

    @asynccontextmanager
    async def _bounded(self, batch_id: str = "", size: int = 0) -> AsyncIterator[None]:
        """Apply a timeout to a step, longer for an upload of `size` bytes; every error becomes a ProviderError."""
        seconds = self.config.timeout_s + size / _SLOWEST_UPLOAD
        try:
            async with asyncio.timeout(seconds):
                with self._faults():
                    yield
            self._reached = True
        except Rejected as rejection:
            if batch_id and rejection.reply.status == 404:
                raise BatchGone(f"{self.name}: batch {batch_id} is not known at {self.base_url}", fatal=True) from None
            variable = key_variable(self.config, self.usual_key)
            error = rejected(
                self.name, replace(rejection.reply, body=hidden(rejection.reply.body, self._secrets)), None, variable
            )
            raise (NoAnswer(str(error)) if rejection.reply.status in _GATEWAY else error) from None
        except Unreachable as fault:
            if nameless(fault):
                raise silent(self.name, self.base_url, fault, str(fault), reached=self._reached) from None
            kind = ProviderError if str(fault) in _NOT_SENT else NoAnswer
            raise kind(f"{self.name}: no answer from {self.base_url} ({fault})") from None
        except TimeoutError:
            raise NoAnswer(f"{self.name}: no answer within {seconds:g} s; raise timeout_s") from None

    async def _rows(
        self, batch_id: str, body: AbstractAsyncContextManager[AsyncIterator[bytes]]
    ) -> AsyncGenerator[Mapping[str, object], None]:
        """Yield the JSON objects in the lines of a streamed response; other lines, and overlong ones, are skipped.

        A line has at most `reply_bytes`. Only a line feed ends it: other line ends, which the SDKs split at, may be
        within a text.
        """
        most = self.config.reply_bytes
        async with AsyncExitStack() as stack:
            async with self._bounded(batch_id):
                pieces = await stack.enter_async_context(body)
            unfinished, piece = b"", cast("bytes | None", b"")
            while piece is not None:
                *lines, unfinished = (unfinished + piece).split(b"\n")
                for row in filter(None, (_row(line) for line in lines if len(line) <= most)):
                    yield row
                unfinished = unfinished[: most + 1]  # one byte over the limit, so that the line is skipped when it ends
                async with self._bounded(batch_id):
                    piece = await anext(pieces, None)
            for row in filter(None, [_row(unfinished)] if len(unfinished) <= most else []):
                yield row

    def _answered(self, body: object) -> Reply | ProviderError:
        try:
            return self._reply(hidden(json.dumps(body, ensure_ascii=False, separators=(",", ":")), self._secrets))
        except ProviderError as error:
            return error

    def _refused(self, status: int, body: object) -> Reply | ProviderError:
        """Return the error of a refused item; a content filter's refusal is a reply, as it is online."""
        rejection = Rejection(status, {}, hidden(json.dumps(body, ensure_ascii=False), self._secrets))
        if filtered(rejection):
            return Reply(None, "refusal", model="", usage=None, raw=rejection.body)
        return rejected(self.name, rejection, None, key_variable(self.config, self.usual_key))

    def _unanswered(self, batch_id: str, why: str) -> ProviderError:
        return ProviderError(f"{self.name}: batch {batch_id} gave no answer to an item ({why})")


def _row(line: bytes) -> Mapping[str, object] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, Mapping) else None
