"""Chat completions by the OpenAI SDK: OpenAI itself and every vendor or server that speaks the same API."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from curate.config import Json
from curate.cost import believed
from curate.protocols import Reply, Request, Usage
from curate.providers.sdk import JSON, NO_KEY, Rejected, SdkProvider, Unreachable, count, inner, merged, model_id

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_FINISH: Mapping[object, Literal["stop", "length", "refusal"]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
}


class OpenAIProvider(SdkProvider):
    """One model behind a chat completions address."""

    address: ClassVar[str] = "https://api.openai.com/v1"
    usual_key: ClassVar[str] = "OPENAI_API_KEY"
    _client: "AsyncOpenAI | None" = None

    def body(self, request: Request) -> dict[str, Json]:
        """Return the JSON that is sent for a request."""
        config = self.config
        body: dict[str, Json] = {
            "model": config.model,
            "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
            config.token_field: request.max_tokens,
        }
        if config.temperature is not None:
            body["temperature"] = config.temperature
        if request.schema is not None and config.json_mode == "schema":
            form: Json = {"name": "reply", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif request.schema is not None and config.json_mode == "object":
            body["response_format"] = {"type": "json_object"}
        return merged(body, config.extra_body)

    @staticmethod
    def read(data: Mapping[str, object], raw: str) -> Reply | None:
        """Return the reply in a vendor's JSON, None if there is none in it.

        A null content stays None even if `reasoning_content` holds text: thoughts are no answer. They remain in `raw`.
        """
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(inner(choice, "message"), Mapping):
            return None
        content = inner(choice, "message", "content")
        refusal = inner(choice, "message", "refusal")
        return Reply(
            text=content if isinstance(content, str) else None,
            finish="refusal" if refusal else _FINISH.get(str(inner(choice, "finish_reason")), "other"),
            model=model_id(data),
            usage=usage(data.get("usage")),
            thoughts=bool(inner(choice, "message", "reasoning_content") or inner(choice, "message", "reasoning")),
            raw=raw,
        )

    async def close(self) -> None:
        """Give the connections back; the next answer opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _post(self, body: bytes) -> str:
        import httpx2
        import openai

        place = f"{self.base_url}/chat/completions"  # the SDK takes longer to join a path than to read an address
        try:
            response = await self._open().post(place, content=body, options=JSON, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            raise Rejected(error.status_code, error.response.headers, error.response.text) from error
        except openai.APIError as error:
            raise Unreachable(error) from error
        return response.text

    def _open(self) -> "AsyncOpenAI":
        # Built at the first call, so that its connections belong to the event loop which uses them.
        from openai import AsyncOpenAI

        from curate.providers.transport import Client

        if self._client is None:
            self._client = AsyncOpenAI(
                api_key=self._key or NO_KEY,
                base_url=self.base_url,
                timeout=None,  # `answer` bounds the whole call
                max_retries=0,
                http_client=Client(self.base_url, self.config.concurrency, self.config.reply_bytes),
            )
        return self._client


def usage(data: object) -> Usage | None:
    """Return the tokens of a call; prompt counts include cached ones here.

    None where the server sends none, or what cannot be.
    """
    prompt, output = count(data, "prompt_tokens"), count(data, "completion_tokens")
    if prompt is None or output is None:
        return None
    cached = count(data, "prompt_tokens_details", "cached_tokens")
    if cached is None:  # DeepSeek's word for it
        cached = count(data, "prompt_cache_hit_tokens") or 0
    found = Usage(
        prompt=prompt,
        cached=min(cached, prompt),
        written=min(count(data, "prompt_tokens_details", "cache_write_tokens") or 0, prompt - min(cached, prompt)),
        output=output,
        reasoning=count(data, "completion_tokens_details", "reasoning_tokens") or 0,
    )
    return believed(found)
