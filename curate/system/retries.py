"""Retries by tenacity of requests with a transient ProviderError: after the pause named by the server, else backoff."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception, wait_exponential_jitter

from curate.core.errors import ProviderError
from curate.system.retry_after import LONGEST_S, NAMELESS

Result = TypeVar("Result")


def again(attempts: int) -> Retrying:
    """Return a retrying caller: at most `attempts` calls while the error is transient."""
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
    """Return the result of a step, tried at most `attempts` times while its error is transient; else raise the last.

    The first pause is `first_s` seconds; pauses double up to `longest_s`, with a random part of up to `jitter_s`; one
    that the server names is kept to instead, up to `retry_after.LONGEST_S`. An error of `sleep` ends the retries. A
    host whose name does not resolve is tried at most `retry_after.NAMELESS` times.
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
        requested_s = error.retry_after if error else None
        return backoff(state) if requested_s is None else min(requested_s, LONGEST_S)

    return wait
