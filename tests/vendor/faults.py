"""Everything that a vendor does wrong. A fault changes an answer, so faults combine: `slow(1)(no_usage(answer))`."""

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from email.utils import format_datetime

from tests.vendor.records import Answer, Fault, Sent

# Statuses


def error(
    status: int,
    code: str = "",
    message: str = "",
    retry_after: float | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Fault:
    """Refuse with an HTTP status, a vendor's code and message, and a Retry-After of seconds or a date."""
    told = {**(headers or {})} if retry_after is None else {**(headers or {}), "retry-after": str(retry_after)}
    return lambda answer: replace(answer, status=status, code=code, message=message, headers=told)


def limited(seconds: float, form: str = "seconds") -> Fault:
    """Refuse for the rate, and name the pause in `seconds`, as a `date` or in `milliseconds`."""

    def fault(answer: Answer) -> Answer:
        until = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
        headers = {
            "seconds": {"retry-after": f"{seconds:g}"},
            "date": {"retry-after": format_datetime(until, usegmt=True)},
            "milliseconds": {"retry-after-ms": f"{seconds * 1000:g}"},
        }
        return error(429, "rate_limit_exceeded", "Rate limit reached", headers=headers[form])(answer)

    return fault


unavailable = error(500, "server_error", "The server had an error while processing your request")
overloaded = error(529, "overloaded_error", "Overloaded")
no_money = error(429, "insufficient_quota", "You exceeded your current quota")
too_long = error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens")
filtered = error(400, "content_filter", "The prompt was filtered")


# The connection


def slow(seconds: float) -> Fault:
    """Answer after a while."""
    return lambda answer: replace(answer, delay=seconds)


def dribbled(seconds: float) -> Fault:
    """Send the body bit by bit, so that the last byte comes after a while."""
    return lambda answer: replace(answer, dribble=seconds)


def broken(sent: Sent) -> Fault:
    """Send only so much of the answer; but for `truncated` the connection is reset then, or closed at `half`."""
    return lambda answer: replace(answer, sent=sent)


drop = broken("half")
reset_before_head, reset_after_head, truncated = broken("nothing"), broken("head"), broken("truncated")


def page(body: str) -> Fault:
    """Send this body as it is, instead of the protocol's JSON."""
    return lambda answer: replace(answer, page=body)


# The text


def says(text: str | None, finish: str = "stop") -> Fault:
    """Answer with this text whatever was asked."""
    return lambda answer: replace(answer, text=text, finish=finish)


def reworded(change: Callable[[str], str]) -> Fault:
    """Answer with a changed text."""
    return lambda answer: replace(answer, text=change(answer.text or ""))


def cut(characters: int) -> Fault:
    """Stop at the length bound after so many characters of the answer."""
    return lambda answer: replace(answer, text=(answer.text or "")[:characters], finish="length")


def halved(answer: Answer) -> Answer:
    """Stop in the middle of the answer as if it were whole."""
    return replace(answer, text=(answer.text or "")[: len(answer.text or "") // 2])


def edit(change: Callable[[dict[str, str]], Mapping[str, str]]) -> Fault:
    """Answer with changed grades: drop labels, add foreign ones, write wrong letters."""
    return lambda answer: replace(answer, text=json.dumps(change(json.loads(answer.text or "{}"))))


def missing(*labels: str) -> Fault:
    """Leave these labels out."""
    return edit(lambda grades: {label: grade for label, grade in grades.items() if label not in labels})


def extra(label: str, grade: str = "S") -> Fault:
    """Grade a label that was not asked for."""
    return edit(lambda grades: {**grades, label: grade})


def wrong(label: str, letter: str) -> Fault:
    """Answer with something that is no grade."""
    return edit(lambda grades: {**grades, label: letter})


def repeated(label: str, grade: str | None = None) -> Fault:
    """Grade a label a second time, at the end, with the same grade or with another one."""

    def change(text: str) -> str:
        again = grade or json.loads(text).get(label, "S")
        return f"{text[:-1]}, {json.dumps(label)}: {json.dumps(again)}}}"

    return reworded(change)


fenced = reworded(lambda text: f"```json\n{text}\n```")
fenced_and_cut = reworded(lambda text: f"```json\n{text[: len(text) // 2]}")
chatty = reworded(lambda text: f"Here are the grades:\n{text}\nAnything else?")


def null_content(answer: Answer) -> Answer:
    """Put the whole answer into the thoughts and leave the content null."""
    return replace(answer, text=None, reasoning=answer.text)


def refusal(answer: Answer) -> Answer:
    """Refuse to answer."""
    return replace(answer, text=None, finish="refusal")


def filtered_midway(answer: Answer) -> Answer:
    """Stop in the middle because of a content filter."""
    return replace(halved(answer), finish="filter")


# Who answered, and for how much


def renamed(model: str) -> Fault:
    """Answer in the name of another model."""
    return lambda answer: replace(answer, model=model)


def no_usage(answer: Answer) -> Answer:
    """Answer without a word on tokens."""
    return replace(answer, usage=None)


def used(**usage: int) -> Fault:
    """Report these tokens: prompt, cached, written, output, reasoning."""
    return lambda answer: replace(answer, usage=usage)
