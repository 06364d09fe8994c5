"""Retries by tenacity of requests whose ProviderError may pass: after the pause that a server names, else backoff."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception, wait_exponential_jitter

from curate.core.errors import ProviderError
from curate.system.retry_after import LONGEST_S, NAMELESS

Result = TypeVar("Result")


def again(attempts: int) -> Retrying:
    """Return what calls a function again, `attempts` times at most, while its error may pass."""
    return Retrying(stop=_enough(attempts), wait=_pause(0.5, 30.0, 1.0), retry=_PASSING, reraise=True)


async def insist(
    step: Callable[[], Awaitable[Result]],
    attempts: int,
    first_s: float,
    longest_s: float,
    sleep: Callable[[float], Awaitable[None]],
    *,
    jitter_s: float = 0.0,
) -> Result:
    """Return what a step gives that is tried at most `attempts` times while its error may pass; else raise the last.

    The first pause is `first_s` seconds; pauses double up to `longest_s`, with a random part of up to `jitter_s`; one
    that the server names is kept to instead, up to `retry_after.LONGEST_S`. What `sleep` raises ends the tries. A host
    whose name leads to no address is tried `retry_after.NAMELESS` times at most.
    """

    async def attempt() -> Result:  # tenacity awaits coroutine functions alone
        return await step()

    wait = _pause(first_s, longest_s, jitter_s)
    tries = AsyncRetrying(stop=_enough(attempts), wait=wait, retry=_PASSING, sleep=sleep, reraise=True)
    return await tries(attempt)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ProviderError) and not (error.fatal or error.useless)


_PASSING = retry_if_exception(_may_pass)


def _failure(state: RetryCallState) -> ProviderError | None:
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, ProviderError) else None


def _enough(attempts: int) -> Callable[[RetryCallState], bool]:
    def ends(state: RetryCallState) -> bool:
        error = _failure(state)
        return state.attempt_number >= (min(attempts, NAMELESS) if error and error.unresolved else attempts)

    return ends


def _pause(first_s: float, longest_s: float, jitter_s: float) -> Callable[[RetryCallState], float]:
    backoff = wait_exponential_jitter(multiplier=first_s, max=longest_s, jitter=jitter_s)

    def wait(state: RetryCallState) -> float:
        error = _failure(state)
        named = error.retry_after if error else None
        return backoff(state) if named is None else min(named, LONGEST_S)

    return wait
