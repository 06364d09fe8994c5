"""Whether a request was sent: an unsent one costs nothing, any other may be billed."""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Way:
    """One request on its way to a vendor."""

    sent: bool = True
    """Whether any of it may have arrived; only the transport can rule that out."""


SENDING: ContextVar[Way | None] = ContextVar("SENDING", default=None)
"""The request that the current task sends, for the transport."""


class TooLarge(Exception):
    """The body of a reply exceeds its limit."""
