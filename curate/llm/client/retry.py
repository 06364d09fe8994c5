"""Retries of one request, up to a number of tries; a vendor that asks to wait for hours is not waited for."""

from collections.abc import Awaitable, Callable

from curate.core.errors import ProviderError
from curate.core.messages import Reply
from curate.system import retries
from curate.system.retry_after import LONGEST_S

LONGEST_PAUSE_S = 60.0
"""Longest pause of our own; a vendor may name a longer one, up to `retry_after.LONGEST_S`."""


async def insist(
    send: Callable[[], Awaitable[Reply]],
    attempts: int,
    first_s: float,
    sleep: Callable[[float], Awaitable[None]],
) -> Reply:
    """Return the reply to a request that is sent at most `attempts` times, as `retries.insist` does it.

    A named pause above `LONGEST_S` makes the error useless; that of a host whose name leads to no address is fatal.
    """

    async def answer() -> Reply:
        try:
            return await send()
        except ProviderError as error:
            if error.fatal or error.retry_after is None or error.retry_after <= LONGEST_S:
                raise
            wait = f"it asks to wait {error.retry_after:,.0f} s, and nothing waits over {LONGEST_S:g} s"
            raise ProviderError(f"{error}; {wait}", useless=True) from None

    try:
        return await retries.insist(answer, attempts, first_s, LONGEST_PAUSE_S, sleep, jitter_s=first_s)
    except ProviderError as error:
        if error.unresolved:
            raise ProviderError(str(error), fatal=True) from None
        raise
