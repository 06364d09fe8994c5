"""How far a request came: what was never sent costs nothing, and all else may be billed."""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Way:
    """One request on its way to a vendor."""

    sent: bool = True
    """Whether anything of it may have arrived; only who holds the connection can say that nothing has."""


SENDING: ContextVar[Way | None] = ContextVar("SENDING", default=None)
"""The request that this task sends just now, for the transport that holds the connection."""


class TooLarge(Exception):
    """The body of a reply is longer than it may be."""
