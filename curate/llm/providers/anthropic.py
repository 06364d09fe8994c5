"""Provider that uses the Anthropic SDK; the system text is marked for prompt caching."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from curate.core.config import Json
from curate.core.messages import Reply, Request, Usage
from curate.llm.cost import believed
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
