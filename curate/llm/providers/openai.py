"""Chat completions by the OpenAI SDK, online and in batches: OpenAI itself, and every server with the same API."""

import asyncio
import datetime as dt
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal

from curate.core.config import Json
from curate.core.errors import BatchGone, ProviderError
from curate.core.messages import BatchState, Reply, Request, Usage
from curate.llm.cost import believed
from curate.llm.providers.batch import Batching, NoAnswer
from curate.llm.providers.errors import as_status, hidden
from curate.llm.providers.sdk import MOST_SAID, TEXTS, SdkProvider, count, inner, merged, model_id, spoken

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_FINISH: Mapping[object, Literal["stop", "length", "refusal"]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
}


class OpenAIProvider(SdkProvider):
    """A model on a server that offers the chat completions API."""

    sdk: ClassVar[str] = "openai"
    address: ClassVar[str] = "https://api.openai.com/v1"
    path: ClassVar[str] = "/chat/completions"
    usual_key: ClassVar[str] = "OPENAI_API_KEY"

    def body(self, request: Request) -> dict[str, Json]:
        """Return the JSON that is sent for a request."""
        config = self.config
        body: dict[str, Json] = {
            "model": config.model,
            "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
            config.token_field: request.max_tokens,
        }
        if config.base_url is None and config.price is not None and config.price.written is not None:
            body |= _cached_prefix(request)
        if config.temperature is not None:
            body["temperature"] = config.temperature
        if request.schema is not None and config.json_mode == "schema":
            form: Json = {"name": "reply", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif request.schema is not None and config.json_mode == "object":
            body["response_format"] = {"type": "json_object"}
        return merged(body, config.extra_body)

    @staticmethod
    def read(answer: Mapping[str, object], raw: str) -> Reply | None:
        """Return the reply in a provider's JSON, None if there is none in it.

        A null content stays None even if `reasoning_content` holds text: thoughts are no answer. They remain in `raw`.
        """
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if answer.get("error") or inner(choice, "error") or not isinstance(inner(choice, "message"), Mapping):
            return None  # a text beside an error is half of one
        content = inner(choice, "message", "content")
        blocks = content if isinstance(content, list) else []
        thoughts = [inner(block, "type") not in TEXTS for block in blocks]
        refusal = inner(choice, "message", "refusal")
        return Reply(
            text=content if isinstance(content, str) else spoken(blocks),
            finish="refusal" if refusal else _FINISH.get(str(inner(choice, "finish_reason")), "other"),
            model=model_id(answer),
            usage=usage(answer.get("usage")),
            thoughts=any(
                (*thoughts, inner(choice, "message", "reasoning_content"), inner(choice, "message", "reasoning"))
            ),
            raw=raw,
        )

    def _open(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI

        if self._client is None:
            self._client = AsyncOpenAI(**self._options())
        client: AsyncOpenAI = self._client
        return client


def _cached_prefix(request: Request) -> dict[str, Json]:
    """Return the fields that make OpenAI cache the system text alone; empty for a prompt without one.

    By default it caches each prompt as a whole, although no other prompt has the same passages; models that bill cache
    writes charge 1.25 x the price for them. Older models refuse the option, and bill no writes.
    """
    turns: list[Json] = [{"role": turn.role, "content": turn.content} for turn in request.messages]
    first = request.messages[0] if request.messages else None
    if first is None or first.role != "system":
        return {}
    text: Json = {"type": "text", "text": first.content, "prompt_cache_breakpoint": {"mode": "explicit"}}
    return {
        "messages": [{"role": "system", "content": [text]}, *turns[1:]],
        "prompt_cache_options": {"mode": "explicit"},
    }


def usage(counts: object) -> Usage | None:
    """Return the tokens of a call; prompt counts include cached ones here.

    None if the server sends none, or impossible counts.
    """
    prompt, output = count(counts, "prompt_tokens"), count(counts, "completion_tokens")
    if prompt is None or output is None:
        return None
    cached = count(counts, "prompt_tokens_details", "cached_tokens")
    if cached is None:  # DeepSeek's word for it
        cached = count(counts, "prompt_cache_hit_tokens") or 0
    tokens = Usage(
        prompt=prompt,
        cached=min(cached, prompt),
        written=min(count(counts, "prompt_tokens_details", "cache_write_tokens") or 0, prompt - min(cached, prompt)),
        output=output,
        reasoning=count(counts, "completion_tokens_details", "reasoning_tokens") or 0,
    )
    return believed(tokens)


# Batches by the OpenAI SDK: a file of requests goes up, files of results and of errors come down.

if TYPE_CHECKING:
    from openai.types import Batch

_PATH: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_KEPT_S = 30 * 86400
"""How long the vendor keeps results: an orphan that is older has none."""
_LISTED = 1000
"""Batches that are looked through for orphans, newest first."""
_REGISTERED_S = 1.0
"""Time for a batch to appear in the list after its creation was not confirmed."""


class OpenAIBatch(Batching, OpenAIProvider):
    """A model on a server that offers the APIs of chat completions, files and batches."""

    most_items: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 190_000_000  # the vendor says 200 MB

    async def submit(self, items: BinaryIO, mark: str) -> str:
        """Send a file of items, and return the id of the batch.

        A batch whose creation is not confirmed is looked for by its file, so that it is not sent again.
        """
        client = self._open()
        async with self._bounded(size=items.seek(0, os.SEEK_END)):
            items.seek(0)
            file = await client.files.create(file=("batch.jsonl", items), purpose="batch")
        try:
            async with self._bounded():
                batch = await client.batches.create(
                    input_file_id=file.id,
                    endpoint=_PATH,
                    completion_window="24h",
                    metadata={"curate": mark},
                )
                return batch.id
        except NoAnswer as error:
            created = await self._created(file.id, error)
            if created is None:
                raise
            return created

    async def orphans(self, mark: str, is_known: Callable[[str], bool]) -> Mapping[str, set[str]]:
        """Return the batches with a mark that are not known -> keys of their items.

        Empty if the provider cannot list batches, or on a fatal error, which the next step raises.
        """
        try:
            listed = await self._listed()
        except ProviderError as error:
            if error.fatal or error.useless:
                return {}
            raise
        keys_by_batch: dict[str, set[str]] = {}
        for batch in listed:
            ours = (batch.metadata or {}).get("curate") == mark and batch.status != "failed"
            if ours and not is_known(batch.id):
                rows = self._rows(batch.id, self._content(batch.input_file_id))
                with suppress(BatchGone):  # its file was deleted
                    keys_by_batch[batch.id] = {
                        key async for row in rows if isinstance(key := row.get("custom_id"), str)
                    }
        return keys_by_batch

    async def poll(self, batch_id: str) -> BatchState:
        """Return the state of a batch; BatchGone if there is none of this id."""
        async with self._bounded(batch_id):
            batch = await self._open().batches.retrieve(batch_id)
        counts, errors = batch.request_counts, (batch.errors.data if batch.errors else None) or []
        fault = ", ".join(sorted({error.code or "no code" for error in errors}))
        words = " ".join(dict.fromkeys(error.message for error in errors if error.message))
        end = batch.completed_at or batch.expired_at or batch.cancelled_at
        return BatchState(
            ended=batch.status in _ENDED,
            word=batch.status,
            done=counts.completed + counts.failed if counts else None,
            seconds=end - batch.created_at if end else None,
            fault=fault or "no reason" if batch.status == "failed" else "",
            said=hidden(words, self._secrets)[:MOST_SAID],
        )

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to stop; what was answered before can still be collected, and is paid."""
        async with self._bounded(batch_id):
            await self._open().batches.cancel(batch_id)

    def _item(self, key: str, body: dict[str, Json]) -> dict[str, Json]:
        return {"custom_id": key, "method": "POST", "url": _PATH, "body": body}

    def _result(self, batch_id: str, row: Mapping[str, object]) -> Reply | ProviderError:
        status, body = inner(row, "response", "status_code"), inner(row, "response", "body")
        status = as_status(status)
        if status is None:
            return self._unanswered(batch_id, str(inner(row, "error", "code") or "no reason"))
        return self._answered(body) if status == 200 else self._refused(status, body)

    async def _bodies(self, batch_id: str) -> Sequence[AbstractAsyncContextManager[AsyncIterator[bytes]]]:
        async with self._bounded(batch_id):
            batch = await self._open().batches.retrieve(batch_id)
        return [self._content(file) for file in (batch.output_file_id, batch.error_file_id) if file]

    @asynccontextmanager
    async def _content(self, file_id: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._open().files.with_streaming_response.content(file_id) as reply:
            yield reply.iter_bytes()

    async def _created(self, file_id: str, error: NoAnswer) -> str | None:
        """Return the batch that was made of a file in spite of an error; a useless error if that is unknown."""
        await asyncio.sleep(_REGISTERED_S)
        try:
            return next((batch.id for batch in await self._listed() if batch.input_file_id == file_id), None)
        except ProviderError:
            unsure = "the vendor may have taken the batch all the same, and the same command looks for it first"
            raise ProviderError(f"{error}; {unsure}", useless=True) from None

    async def _listed(self) -> "list[Batch]":
        """Return the batches whose results can still be there, newest first."""
        oldest = dt.datetime.now(dt.UTC).timestamp() - _KEPT_S
        listed: list[Batch] = []
        async with self._bounded():
            async for batch in self._open().batches.list(limit=100):
                if batch.created_at < oldest or len(listed) == _LISTED:
                    break
                listed.append(batch)
        return listed
