"""Anthropic by its SDK, online (the system text marked for prompt caching) and in batches."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal

from curate.core.config import Json
from curate.core.errors import ProviderError
from curate.core.messages import BatchState, Reply, Request, Usage
from curate.llm.cost import believed
from curate.llm.providers.batch import Batching, NoAnswer
from curate.llm.providers.sdk import SdkProvider, count, inner, merged, model_id, spoken

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_FINISH: Mapping[object, Literal["stop", "length", "refusal"]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class AnthropicProvider(SdkProvider):
    """A model served by the Anthropic Messages API or a compatible server."""

    sdk: ClassVar[str] = "anthropic"
    address: ClassVar[str] = "https://api.anthropic.com"
    path: ClassVar[str] = "/v1/messages"
    usual_key: ClassVar[str] = "ANTHROPIC_API_KEY"

    def body(self, request: Request) -> dict[str, Json]:
        """Return the JSON that is sent for a request."""
        config = self.config
        system = "\n\n".join(turn.content for turn in request.messages if turn.role == "system")
        turns = [turn for turn in request.messages if turn.role != "system"]
        body: dict[str, Json] = {
            "model": config.model,
            "max_tokens": request.max_tokens,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
        }
        if system:
            body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        if config.temperature is not None:
            body["temperature"] = config.temperature
        if request.schema is not None and config.json_mode == "schema":
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        return merged(body, config.extra_body)

    @staticmethod
    def read(answer: Mapping[str, object], raw: str) -> Reply | None:
        """Return the reply in a provider's JSON, None if it has none; thinking blocks do not count as an answer."""
        blocks = answer.get("content")
        if not isinstance(blocks, list):
            return None
        return Reply(
            text=spoken(blocks),
            finish=_FINISH.get(str(answer.get("stop_reason")), "other"),
            model=model_id(answer),
            usage=usage(answer.get("usage")),
            thoughts=any(inner(block, "type") == "thinking" for block in blocks),
            raw=raw,
        )

    def _open(self) -> "AsyncAnthropic":
        from anthropic import AsyncAnthropic

        if self._client is None:
            self._client = AsyncAnthropic(**self._options(), open_telemetry=False)  # traces may hold prompts
        client: AsyncAnthropic = self._client
        return client


def usage(counts: object) -> Usage | None:
    """Return the tokens of a call; `prompt` includes the cached tokens, which the provider reports separately.

    None if the server reports no counts, or impossible ones.
    """
    plain, output = count(counts, "input_tokens"), count(counts, "output_tokens")
    if plain is None or output is None:
        return None
    cached = count(counts, "cache_read_input_tokens") or 0
    written = count(counts, "cache_creation_input_tokens") or 0
    tokens = Usage(
        prompt=plain + max(cached, 0) + max(written, 0),
        cached=cached,
        written=written,
        output=output,
        reasoning=count(counts, "output_tokens_details", "thinking_tokens") or 0,
    )
    return None if plain < 0 else believed(tokens)


# Batches by the Anthropic SDK: one body of requests goes up, a stream of results comes down.

_PATH = "/v1/messages/batches"
_HEAD, _TAIL = b'{"requests":[', b"]}"
_STATUS: Mapping[object, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""What an item's error would have been online; any other may pass, as a 500 may."""


class AnthropicBatch(Batching, AnthropicProvider):
    """A model on a server that offers the Messages API and its batch API."""

    most_items: ClassVar[int] = 100_000
    most_bytes: ClassVar[int] = 240_000_000  # the vendor says 256 MB

    async def submit(self, items: BinaryIO, mark: str) -> str:  # noqa: ARG002 - there is no place for a mark
        """Send a file of items, and return the id of the batch."""
        from anthropic.types.messages import MessageBatch

        size = items.seek(0, os.SEEK_END)
        length = len(_HEAD) + size - 1 + len(_TAIL)
        try:
            async with self._bounded(size=size):
                batch = await self._open().post(
                    _PATH,
                    content=_body(items),
                    options={"headers": {"content-length": str(length)}},
                    cast_to=MessageBatch,
                )
                return batch.id
        except NoAnswer as error:
            raise ProviderError(
                f"{error}; the vendor may have taken the batch all the same: look for it in the vendor's console, and "
                "cancel it there before you start again, else it is paid twice",
                useless=True,
            ) from None

    async def orphans(self, mark: str, is_known: Callable[[str], bool]) -> Mapping[str, set[str]]:  # noqa: ARG002
        """Return no batches: this API stores no mark with a batch."""
        return {}

    async def poll(self, batch_id: str) -> BatchState:
        """Return the state of a batch; BatchGone if there is none of this id."""
        async with self._bounded(batch_id):
            batch = await self._open().messages.batches.retrieve(batch_id)
        word, counts = batch.processing_status, batch.request_counts
        completed = counts.succeeded + counts.errored + counts.canceled + counts.expired
        seconds = (batch.ended_at - batch.created_at).total_seconds() if batch.ended_at else None
        return BatchState(word == "ended", word, completed, seconds)

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to stop; what was answered before can still be collected, and is paid."""
        async with self._bounded(batch_id):
            await self._open().messages.batches.cancel(batch_id)

    def _item(self, key: str, body: dict[str, Json]) -> dict[str, Json]:
        return {"custom_id": key, "params": body}

    def _result(self, batch_id: str, row: Mapping[str, object]) -> Reply | ProviderError:
        kind, error = inner(row, "result", "type"), inner(row, "result", "error")
        if kind == "succeeded":
            return self._answered(inner(row, "result", "message"))
        if kind == "errored":
            return self._refused(_STATUS.get(inner(error, "error", "type"), 500), error)
        return self._unanswered(batch_id, str(kind))

    async def _bodies(self, batch_id: str) -> Sequence[AbstractAsyncContextManager[AsyncIterator[bytes]]]:
        return [self._results(batch_id)]

    @asynccontextmanager
    async def _results(self, batch_id: str) -> AsyncIterator[AsyncIterator[bytes]]:
        # The SDK would follow `results_url` to any host, and the key with it; the path is known without.
        import httpx2

        unread = {"X-Stainless-Raw-Response": "stream"}  # the SDK's own word for it
        path = f"{_PATH}/{batch_id}/results"
        reply = await self._open().get(path, options={"headers": unread}, cast_to=httpx2.Response)
        try:
            yield reply.aiter_bytes()
        finally:
            await reply.aclose()


async def _body(items: BinaryIO) -> AsyncIterator[bytes]:
    """Yield the lines of a file as one JSON object."""
    items.seek(0)
    prefix = _HEAD
    for line in items:
        yield prefix + line.rstrip(b"\n")
        prefix = b","
    yield _TAIL
