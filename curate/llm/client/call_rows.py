"""Rows of `calls` for replies and failures, the same online and in batches."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from curate.core.config import canonical
from curate.core.errors import ProviderError
from curate.core.messages import Reply
from curate.ledger import Call
from curate.ledger.records import LOST
from curate.llm.client.requests import Account, ReplyResult
from curate.llm.cost import EstimatedUsage, Price, cost


class SentRequest(Protocol):
    """A request without its text: a task, or an item of a batch."""

    @property
    def key(self) -> str:
        """Return the digest of the request."""
        ...

    @property
    def query_digest(self) -> str:
        """Return the digest of the query."""
        ...

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the digests of the passages, in the order of the prompt."""
        ...


def reply_row(
    task: SentRequest,
    account: Account,
    reply: Reply,
    reading: ReplyResult,
    price: Price | None,
    most: float,
    seconds: float,
    guess: EstimatedUsage | None,
) -> Call:
    """Return the row of a reply; its cost is `most` without usage, None without a price."""
    usage, raw = reply.usage, reply.raw if reading.kept is None else reading.kept
    return replace(
        _row(task, account, reading.form, seconds, reply.model, reply.finish, raw),
        prompt_tokens=usage.prompt if usage else None,
        cached_tokens=usage.cached if usage else None,
        written_tokens=usage.written if usage else None,
        output_tokens=usage.output if usage else None,
        reasoning_tokens=usage.reasoning if usage else None,
        cost=cost(usage, price) if usage else most if price else None,
        currency=price.currency if price else None,
        foreign_labels=reading.foreign_labels,
        repeated_labels=reading.repeated_labels,
        estimated_tokens=guess.prompt if guess else None,
    )


def failure_row(task: SentRequest, account: Account, form: str, error: ProviderError, seconds: float) -> Call:
    """Return the row of a request without a reply; it holds the reason instead."""
    divisible = error.too_long or error.refused  # older ledgers have only too_long, hence the name
    reason = canonical({"error": error.cause if divisible else str(error), "too_long": divisible})
    return _row(task, account, form, seconds, model="", finish="error", raw=reason)


def lost_row(
    task: SentRequest, account: Account, error: BaseException, price: Price | None, most: float, seconds: float
) -> Call:
    """Return the row of an attempt with unknown outcome; its cost is the upper bound `most`."""
    provider_error = error if isinstance(error, ProviderError) else None
    reason = f"{provider_error or type(error).__name__}"  # any other error's words may repeat the prompt
    raw = canonical({"error": reason, "too_long": False, "said": provider_error.said if provider_error else ""})
    row = _row(task, account, LOST, seconds, model="", finish="error", raw=raw)
    return replace(row, cost=most, currency=price.currency) if price else row


def read(
    reader: Callable[[Reply], ReplyResult], reply: Reply, *, private: bool = False
) -> tuple[ReplyResult, Exception | None]:
    """Return the result of a reply; a bug in the reader is returned, so that the paid reply is written first.

    The text of a `private` reply is then not stored.
    """
    try:
        return reader(reply), None
    except Exception as error:  # noqa: BLE001 - raised once the reply is written
        return ReplyResult(form="broken", fruitful=False, kept="" if private else None), error


def _row(task: SentRequest, account: Account, form: str, seconds: float, model: str, finish: str, raw: str) -> Call:
    return Call(
        **vars(account),
        request_digest=task.key,
        model=model,
        finish=finish,
        form=form,
        raw=raw,
        latency_s=round(seconds, 3),
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        query_digest=task.query_digest,
        slots=canonical(task.slots),
    )
