"""Batches by the Anthropic SDK: one body of requests goes up, a stream of results comes down.

The vendor keeps no mark of ours on a batch. If this process dies in the moment between the vendor's reply and the
ledger's row, or the reply is lost, that one batch is paid and is not found again: its requests are sent once more.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import BinaryIO, ClassVar

from curate.core.config import Json
from curate.core.errors import ProviderError
from curate.core.messages import BatchState, Reply
from curate.llm.providers.anthropic import AnthropicProvider
from curate.llm.providers.batch import Batching, NoAnswer
from curate.llm.providers.sdk import inner

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
    """One model behind a messages address with the API of batches."""

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
        """Return nothing: batches bear no mark here."""
        return {}

    async def poll(self, batch_id: str) -> BatchState:
        """Return how far a batch is; BatchGone if there is none of this id."""
        async with self._bounded(batch_id):
            batch = await self._open().messages.batches.retrieve(batch_id)
        word, counts = batch.processing_status, batch.request_counts
        completed = counts.succeeded + counts.errored + counts.canceled + counts.expired
        seconds = (batch.ended_at - batch.created_at).total_seconds() if batch.ended_at else None
        return BatchState(word == "ended", word, completed, seconds)

    async def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop; what was answered before can still be collected, and is paid."""
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
