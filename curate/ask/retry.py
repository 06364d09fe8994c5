"""Ask again: after the pause that a vendor names, or after pauses that grow, until the tries or the asking end."""

from collections.abc import Awaitable, Callable

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential_jitter

from curate.errors import ProviderError
from curate.pauses import LONGEST_S
from curate.protocols import Reply
from curate.servers import enough

LONGEST_PAUSE_S = 60.0
"""Longest pause of our own; a vendor may name a longer one, up to `pauses.LONGEST_S`."""


async def insist(
    send: Callable[[], Awaitable[Reply]],
    attempts: int,
    first_s: float,
    sleep: Callable[[float], Awaitable[None]],
) -> Reply:
    """Return the reply to a request that is sent at most `attempts` times; ProviderError is the last one's.

    The first pause is `first_s` seconds, and pauses double with jitter; one that the vendor names is kept to instead.
    A fatal or useless error ends the tries, and so does a named pause above `LONGEST_S`. What `sleep` raises ends them
    too. A host whose name leads to no address is tried `pauses.NAMELESS` times at most, and the error is fatal then.
    """

    async def answer() -> Reply:
        try:
            return await send()
        except ProviderError as error:
            raise (_too_patient(error) or error) from None

    try:
        return await answer()  # nearly all are answered at once, and need none of what follows
    except ProviderError as error:
        if error.fatal or error.useless:
            raise
        failed = [error]

    async def again() -> Reply:
        if failed:  # the first try was made above
            raise failed.pop()
        return await answer()

    tries = AsyncRetrying(
        stop=enough(attempts),
        wait=_pause(first_s),
        retry=retry_if_exception(lambda error: isinstance(error, ProviderError) and not (error.fatal or error.useless)),
        sleep=sleep,
        reraise=True,
    )
    try:
        return await tries(again)
    except ProviderError as error:
        if error.unresolved:
            raise ProviderError(str(error), fatal=True) from None
        raise


def _too_patient(error: ProviderError) -> ProviderError | None:
    """Return the error of a pause that is too long to be waited for, None of any other."""
    if error.fatal or error.retry_after is None or error.retry_after <= LONGEST_S:
        return None
    return ProviderError(
        f"{error}; it asks to wait {error.retry_after:,.0f} s, and nothing waits over {LONGEST_S:g} s",
        useless=True,
    )


def _pause(first_s: float) -> Callable[[RetryCallState], float]:
    backoff = wait_exponential_jitter(multiplier=first_s, max=LONGEST_PAUSE_S, jitter=first_s)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        named = error.retry_after if isinstance(error, ProviderError) else None
        return backoff(state) if named is None else named

    return wait
