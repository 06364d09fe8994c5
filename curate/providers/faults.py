"""Turn what went wrong between us and a vendor into one ProviderError that gives no secret away."""

import datetime as dt
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from curate.errors import ProviderError
from curate.pauses import may_pass
from curate.protocols import Request

_FATAL = frozenset({401, 402, 403, 404})
"""Key, money, permission, model or address: no other request will pass either."""
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
"""Most vendors have no code for a prompt that exceeds the context, only words."""
_REMEDIES = {
    400: "check json_mode, token_field, temperature, extra_body and the length of the passages",
    401: "check the key",
    402: "the account has no money left",
    403: "check what the key is allowed to do",
    404: "check model and base_url",
    413: "send fewer or shorter passages",
}
_LONGEST_MESSAGE = 300
_QUOTE = 12


@dataclass(frozen=True)
class Rejection:
    """An HTTP reply with a status above 299."""

    status: int
    headers: Mapping[str, str]
    body: str = field(repr=False)


def rejected(name: str, reply: Rejection, request: Request | None) -> ProviderError:
    """Return the error for a refused call: fatal if any call would be, else useless unless this one may pass later.

    The vendor's words are left out where they quote the request, whose text is private, and where it is not at hand.
    The body holds no key any more.
    """
    code, message = said(reply.body)
    broke = code in _NO_MONEY
    passing = may_pass(reply.status)
    words = "" if request is None or _quotes(message, request) else message
    detail = ": ".join(part for part in (code, words[:_LONGEST_MESSAGE]) if part)
    remedy = "the account may spend no more" if broke else _REMEDIES.get(reply.status, "")
    sentence = f"{name}: HTTP {reply.status}" + (f" ({detail})" if detail else "") + (f"; {remedy}" if remedy else "")
    long = not broke and _too_long(reply.status, code, message)
    fatal = broke or reply.status in _FATAL
    return ProviderError(
        sentence, fatal=fatal, useless=not (fatal or passing), too_long=long, retry_after=wait(reply.headers)
    )


def filtered(reply: Rejection) -> bool:
    """Say whether a content filter refused this prompt: an answer of a kind, and no fault of ours."""
    return reply.status == 400 and said(reply.body)[0] in _FILTERED


def said(body: str) -> tuple[str, str]:
    """Return code (else type) and message of a vendor's error body, empty where there is none."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return "", ""
    error = data.get("error", data) if isinstance(data, dict) else None
    if not isinstance(error, dict):
        return "", error if isinstance(error, str) else ""
    details, message = error.get("details"), error.get("message")
    codes = (details.get("error_code") if isinstance(details, dict) else None, error.get("code"), error.get("type"))
    return next((code for code in codes if isinstance(code, str)), ""), message if isinstance(message, str) else ""


def wait(headers: Mapping[str, str], now: dt.datetime | None = None) -> float | None:
    """Return the seconds that a reply's headers ask to wait, from retry-after-ms or Retry-After (seconds or a date)."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=dt.UTC)
    return max((aware - (now or dt.datetime.now(dt.UTC))).total_seconds(), 0.0)


def hidden(text: str, secret: str | None) -> str:
    """Return the text with the key replaced by three asterisks."""
    return text.replace(secret, "***") if secret else text


def _too_long(status: int, code: str, message: str) -> bool:
    words = message.lower()
    return status == 413 or (status == 400 and (code in _TOO_LONG or any(each in words for each in _TOO_LONG_WORDS)))


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _quotes(message: str, request: Request) -> bool:
    private = "\n".join(turn.content for turn in request.messages if turn.role != "system")
    return any(message[start : start + _QUOTE] in private for start in range(max(len(message) - _QUOTE + 1, 0)))
