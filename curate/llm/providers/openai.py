"""Chat completions by the OpenAI SDK: OpenAI itself and every vendor or server that speaks the same API."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from curate.core.config import Json
from curate.core.messages import Reply, Request, Usage
from curate.llm.cost import believed
from curate.llm.providers.sdk import TEXTS, SdkProvider, count, inner, merged, model_id, spoken

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_FINISH: Mapping[object, Literal["stop", "length", "refusal"]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
}


class OpenAIProvider(SdkProvider):
    """One model behind a chat completions address."""

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
        """Return the reply in a vendor's JSON, None if there is none in it.

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
    """Return the fields by which OpenAI caches what prompts begin with, and nothing behind it; empty without that.

    Left to itself it writes each prompt to the cache as a whole, which models that bill writing apart do for 1.25 x the
    price, and no other prompt has the same passages. Older models refuse the option, and bill no writing.
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
