"""HTTP requests to servers of the user's choice: API keys, errors, and retries with the pause that a reply requests."""

import datetime as dt
import math
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception, wait_exponential_jitter

from curate.core.errors import AccessError, ConfigError, ProviderError

LONGEST_S = 300.0
"""Maximum pause in seconds that a server may request; callers shorten longer ones, or give up."""
NAMELESS = 3
"""Maximum attempts for a host whose name does not resolve, since a misspelt name never will."""
_PASSING = frozenset({408, 409, 425, 429, 499})
_NOT_IMPLEMENTED = 501


def may_pass(status: int) -> bool:
    """Return whether the same request may succeed later, after a reply with this HTTP status."""
    return status in _PASSING or (status >= 500 and status != _NOT_IMPLEMENTED)


def asked(headers: Mapping[str, str], now: dt.datetime) -> float | None:
    """Return the pause in seconds that a reply requests, 0 or more: retry-after-ms, else Retry-After (seconds or date).

    None if it requests none. Pauses of hours are returned unchanged. `headers` is looked up by lower-case names; `now`
    needs a time zone, and a date without one is UTC.
    """
    milliseconds, text = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    seconds = _number(text) if milliseconds is None else milliseconds / 1000
    if seconds is None:
        seconds = _until(text, now)
    return None if seconds is None else max(seconds, 0.0)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(text: str, now: dt.datetime) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=dt.UTC)
    return (aware - now).total_seconds()


# HTTP servers of the user's choice: their key, and the errors of requests to them.

ADDRESS = r"^https?://[^/@?#]+[^@?#]*$"
"""Pattern of an address without user, key or query, which would be stored and logged with it."""
_DENIED = frozenset({401, 403})
CONNECT_S = 5.0
"""Maximum seconds that `listening` waits for a server to accept a connection."""


def key(section: str, variable: str | None) -> str | None:
    """Return the API key in the environment variable `variable`; ConfigError, naming `section`, if empty or invalid.

    None if `variable` is None, for a server without keys.
    """
    if variable is None:
        return None
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise ConfigError(f"{section}.key_env: no key in ${variable}; set it with: export {variable}=...")
    if not (secret.isascii() and secret.isprintable()):
        raise ConfigError(f"{section}.key_env: ${variable} holds characters that no key has; set it again")
    return secret


def nameless(error: BaseException | None) -> bool:
    """Return whether a request failed because the host's name does not resolve."""
    while error is not None and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__
    return error is not None


def listening(address: str) -> bool:
    """Return whether a server accepts connections at an address."""
    url = urlsplit(address)
    try:
        port = url.port or (443 if url.scheme == "https" else 80)
        with socket.create_connection((url.hostname or "", port), CONNECT_S):
            return True
    except OSError:
        return False


def silent(section: str, address: str, error: BaseException, what: str, *, reached: bool = False) -> ProviderError:
    """Return the error for a request without a reply.

    `what` is the reason to report, `reached` whether the server has replied before: then a host name that does not
    resolve is a passing fault.
    """
    if not nameless(error):
        return ProviderError(f"{section}: no answer from {address} ({what})")
    reason = "the name of its host leads to no address; check the address and the network"
    return ProviderError(f"{section}: no answer from {address}: {reason}", unresolved=not reached)


def refused(
    section: str, address: str, status: int, headers: Mapping[str, str], variable: str | None, settings: str
) -> ProviderError:
    """Return the error for a reply with an error status, without the server's message, which may quote the request.

    `variable` is the environment variable of the key, None if none was sent. `settings` names other settings that may
    be wrong.
    """
    denied, fatal = status in _DENIED, not may_pass(status)
    remedy = f"; {_remedy(variable) if denied else f'check {settings}'}" if fatal else ""
    kind, wait = AccessError if denied else ProviderError, asked(headers, dt.datetime.now(dt.UTC))
    return kind(f"{section}: {address} answered HTTP {status}{remedy}", fatal=fatal, retry_after=wait)


def _remedy(variable: str | None) -> str:
    return f"check the key in ${variable}" if variable else "it wants a key: name its environment variable with key_env"


# Retries by tenacity of requests with a transient ProviderError: after the pause named by the server, else backoff.

Result = TypeVar("Result")


def again(attempts: int) -> Retrying:
    """Return tenacity's retrying caller, with at most `attempts` calls as long as errors are transient."""
    return Retrying(stop=_enough(attempts), wait=_pause(0.5, 30.0, 1.0), retry=_PASSING_ERRORS, reraise=True)


async def insist(
    step: Callable[[], Awaitable[Result]],
    attempts: int,
    first_s: float,
    longest_s: float,
    sleep: Callable[[float], Awaitable[None]],
    *,
    jitter_s: float = 0.0,
) -> Result:
    """Return the result of `step`, tried at most `attempts` times as long as its errors are transient; else raise them.

    The first pause is `first_s` seconds; pauses double up to `longest_s`, plus a random part of up to `jitter_s`. A
    pause that the server requests replaces them, up to `LONGEST_S`. An error of `sleep` ends the retries. A host whose
    name does not resolve is tried at most `NAMELESS` times.
    """

    async def attempt() -> Result:  # tenacity awaits coroutine functions alone
        return await step()

    wait = _pause(first_s, longest_s, jitter_s)
    tries = AsyncRetrying(stop=_enough(attempts), wait=wait, retry=_PASSING_ERRORS, sleep=sleep, reraise=True)
    return await tries(attempt)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ProviderError) and not (error.fatal or error.useless)


_PASSING_ERRORS = retry_if_exception(_may_pass)


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
