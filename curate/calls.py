"""The ledger's row of a reply, the same whether it came online or out of a batch."""

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from curate.config import canonical
from curate.ledger import Call
from curate.protocols import Reply

if TYPE_CHECKING:
    from curate.ask import Account, Reading


def replied(
    account: "Account",
    key: str,
    query_digest: str,
    slots: Sequence[str],
    reply: Reply,
    reading: "Reading",
    seconds: float,
    cost: float | None,
) -> Call:
    """Return the row of a reply to the request of this digest; `cost` is None where it is unknown."""
    usage = reply.usage
    return Call(
        **vars(account),
        request_digest=key,
        model=reply.model,
        finish=reply.finish,
        raw=reply.raw,
        latency_s=round(seconds, 3),
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        prompt_tokens=usage.prompt if usage else None,
        cached_tokens=usage.cached if usage else None,
        written_tokens=usage.written if usage else None,
        output_tokens=usage.output if usage else None,
        reasoning_tokens=usage.reasoning if usage else None,
        cost=cost,
        foreign_labels=reading.foreign_labels,
        repeated_labels=reading.repeated_labels,
        query_digest=query_digest,
        slots=canonical(list(slots)),
    )
