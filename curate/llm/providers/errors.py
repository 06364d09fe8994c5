"""Convert rejected calls of a provider to one ProviderError that contains no secret."""

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from curate.core.errors import AccessError, ProviderError
from curate.core.messages import Request
from curate.system.http import asked, may_pass

_FATAL = frozenset({401, 402, 403, 404})
"""Key, money, permission, model or address: no other request will succeed either."""
_OF_NO_TEXT = frozenset({401, 402, 404, 408, 425, 429, 499})
"""Key, money, model or address, time or pace; the reason of any other refusal may be the text of the request."""
_OVERLOADED = frozenset({429, 503, 529})
_DENIED = frozenset({401, 403})
_UNKNOWN = frozenset({408, 499, 502, 504, 520, 524})
"""A gateway lost the connection to the provider, which may have answered, and may charge for it."""
_NO_MONEY = frozenset(
    {
        "billing_error",
        "billing_hard_limit_reached",
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "exceeded_current_quota_error",
        "insufficient_balance",
        "insufficient_quota",
        "linked_organization_spend_limit_reached",
    }
)
_FILTERED = frozenset({"content_filter", "content_policy_violation", "data_inspection_failed"})
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_TOO_LONG_WORDS = ("context length", "context limit", "input length", "prompt is too long", "token limit")
"""Most providers have no code for a prompt that exceeds the context, only a message."""
_REMEDIES = {
    400: "check json_mode, token_field, temperature, extra_body and the length of the passages",
    401: "check the key{}",
    402: "the account has no money left",
    403: "check what the key{} is allowed to do",
    404: "check model and base_url",
    413: "send fewer or shorter passages",
}
_LONGEST_MESSAGE = 300
_PLAIN_CODE = re.compile(r"[a-z_]{1,60}")
"""Codes that a message on a private request may repeat: letters only, so no number and no Chinese name."""
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_QUOTE = 12
_SHORTEST_SECRET = 8
"""A shorter key is a placeholder for a server without keys; it may be equal to a word in a reply."""


@dataclass(frozen=True)
class Rejection:
    """An HTTP reply with a status above 299."""

    status: int
    headers: Mapping[str, str]
    body: str = field(repr=False)


def rejected(name: str, reply: Rejection, request: Request | None, variable: str | None) -> ProviderError:
    """Return the error for a rejected call: fatal if all calls would be, else useless unless a later one may succeed.

    `variable` is the environment variable of the key, None if none was sent; a key without permission is AccessError.
    The provider's message is left out if it may quote the request, whose text is private, or if `request` is None.
    Keys must be removed from the body before.
    """
    code, message = said(reply.body)
    broke = code in _NO_MONEY
    may_succeed_later = may_pass(reply.status)
    is_withheld = request is None or quotes(message, [request])
    words = "" if is_withheld else message
    shown_code = code if request is None or not request.private or _PLAIN_CODE.fullmatch(code) else ""
    detail = ": ".join(text for text in (shown_code, words[:_LONGEST_MESSAGE]) if text)
    if broke:
        remedy = "the account may spend no more"
    elif reply.status in _DENIED and variable is None:
        remedy = "check the key: none was sent, so name its environment variable with key_env"
    else:
        remedy = _REMEDIES.get(reply.status, "").format(f" in the environment variable {variable}")
    cause = f"{name}: HTTP {reply.status}" + (f" ({detail})" if detail else "")
    says_too_long = code in _TOO_LONG or any(phrase in message.lower() for phrase in _TOO_LONG_WORDS)
    too_long = not broke and (reply.status == 413 or (reply.status == 400 and says_too_long))
    fatal = (broke and reply.status not in _OVERLOADED) or reply.status in _FATAL  # a throttle has such words, too
    kind = AccessError if reply.status in _DENIED and not broke else ProviderError
    return kind(
        f"{cause}; {remedy}" if remedy else cause,
        fatal=fatal,
        useless=not (fatal or may_succeed_later),
        too_long=too_long,
        broke=broke,
        refused=400 <= reply.status < 500 and not (broke or reply.status in _OF_NO_TEXT),
        overloaded=reply.status in _OVERLOADED and not fatal,
        retry_after=asked(reply.headers, dt.datetime.now(dt.UTC)),
        unknown=reply.status in _UNKNOWN,
        said=message[:_LONGEST_MESSAGE] if request is None and reply.status not in _UNKNOWN else "",
        cause=cause,
    )


def worded(error: ProviderError, requests: Sequence[Request]) -> ProviderError:
    """Return an error made without its request, with the provider's message added unless it quotes a request."""
    if error.said and requests and not quotes(error.said, requests):
        cause = f"{error.cause}: {error.said}"
        error.args, error.cause = (str(error).replace(error.cause, cause, 1),), cause
    return error


def filtered(reply: Rejection) -> bool:
    """Return whether a content filter refused this prompt, which counts as an answer."""
    return reply.status == 400 and said(reply.body)[0] in _FILTERED


def said(body: str) -> tuple[str, str]:
    """Return code (else type) and message of an error body; of an unknown form an empty code and all its text."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return "", " ".join(_TAG.sub(" ", body).split())
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    if not isinstance(error, dict):
        return "", error if isinstance(error, str) else _words(error)
    details, message = error.get("details"), error.get("message")
    codes = (details.get("error_code") if isinstance(details, dict) else None, error.get("code"), error.get("type"))
    code = next((code for code in codes if isinstance(code, str)), "")
    return code, message if isinstance(message, str) else _words(error)


def _words(content: object) -> str:
    """Return the texts in a value of JSON, in its order."""
    children = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return content if isinstance(content, str) else " ".join(filter(None, map(_words, children)))


def told_status(raw: str) -> int | None:
    """Return the status of an error in a reply with status 200; 502 if it names none, None without an error."""
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    choices = parsed.get("choices") if isinstance(parsed, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    error = next(
        (holder["error"] for holder in (parsed, choice) if isinstance(holder, dict) and holder.get("error")), None
    )
    if error is None:
        return None
    status = as_status(error.get("code") if isinstance(error, dict) else None)
    return status if status and 400 <= status < 600 else 502


def as_status(code: object) -> int | None:
    """Return an HTTP status, which may be a text of digits, as a number; else None."""
    return int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else None


def hidden(text: str, secrets: Sequence[str]) -> str:
    """Return the text with secrets, in each of JSON's spellings, replaced by three asterisks."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
                text = text.replace(form, "***")
    return text


def quotes(message: str, requests: Sequence[Request]) -> bool:
    """Return whether a message may quote a request: `_QUOTE` characters in common; of a private request always True."""
    texts = [turn.content for request in requests for turn in request.messages if turn.role != "system"]
    fragments = {message[start : start + _QUOTE] for start in range(len(message) - _QUOTE + 1)}
    return any(request.private for request in requests) or any(
        fragment in text for text in texts for fragment in fragments
    )
