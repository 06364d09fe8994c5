"""One answer in the words of each protocol."""

from collections.abc import Mapping
from typing import Any

from tests.vendor.records import Answer


def worded(api: str, answer: Answer) -> dict[str, Any]:
    """Return the JSON of an answer, or of an error."""
    return openai(answer) if api == "openai" else anthropic(answer)


def openai(answer: Answer) -> dict[str, Any]:
    """Return a chat completion."""
    if answer.status != 200:
        return {"error": {"message": answer.message, "type": answer.code, "code": answer.code, "param": None}}
    message = {
        "role": "assistant",
        "content": answer.text,
        "refusal": "No." if answer.finish == "refusal" else None,
    }
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    finish = {"refusal": "stop", "filter": "content_filter"}.get(answer.finish, answer.finish)
    choice = {"index": 0, "finish_reason": finish, "message": message, "logprobs": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": answer.model}
    return {**head, "choices": [choice], "usage": answer.usage and _openai_usage(answer.usage)}


def anthropic(answer: Answer) -> dict[str, Any]:
    """Return a message."""
    if answer.status != 200:
        return {"type": "error", "error": {"type": answer.code, "message": answer.message}}
    thoughts = [] if answer.reasoning is None else [{"type": "thinking", "thinking": answer.reasoning, "signature": ""}]
    texts = [] if answer.text is None else [{"type": "text", "text": answer.text}]
    stops = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": answer.model, "stop_sequence": None}
    usage = answer.usage and _anthropic_usage(answer.usage)
    return {**head, "content": [*thoughts, *texts], "stop_reason": stops[answer.finish], "usage": usage}


def _openai_usage(usage: Mapping[str, int]) -> dict[str, Any]:
    return {
        "prompt_tokens": usage["prompt"],
        "completion_tokens": usage["output"],
        "total_tokens": usage["prompt"] + usage["output"],
        "prompt_tokens_details": {"cached_tokens": usage.get("cached", 0)},
        "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
    }


def _anthropic_usage(usage: Mapping[str, int]) -> dict[str, Any]:
    cached, written = usage.get("cached", 0), usage.get("written", 0)
    return {
        "input_tokens": usage["prompt"] - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": usage["output"],
        "output_tokens_details": {"thinking_tokens": usage.get("reasoning", 0)},
    }
