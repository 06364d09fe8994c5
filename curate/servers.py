"""A server of the user's own choice, whatever runs on it: its key, and how it is asked again."""

import datetime as dt
import os
import socket
from collections.abc import Callable, Mapping

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential_jitter

from curate import pauses
from curate.errors import AccessError, ConfigError, ProviderError

ADDRESS = r"^https?://[^/@?#]+[^@?#]*$"
"""An address without user, key or query, which would be written down with it."""
_DENIED = frozenset({401, 403})


def key(place: str, variable: str | None) -> str | None:
    """Return the key in the environment variable that the section `place` names; ConfigError if that holds none.

    None if it names no variable: a server without keys.
    """
    if variable is None:
        return None
    found = os.environ.get(variable, "").strip()
    if not found:
        raise ConfigError(f"{place}.key_env: no key in ${variable}; set it with: export {variable}=...")
    if not (found.isascii() and found.isprintable()):
        raise ConfigError(f"{place}.key_env: ${variable} holds characters that no key has; set it again")
    return found


def nameless(error: BaseException | None) -> bool:
    """Say whether a request failed because the host's name leads to no address."""
    while error is not None and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__
    return error is not None


def silent(place: str, address: str, error: BaseException, what: str, *, reached: bool = False) -> ProviderError:
    """Return the error for a request without a reply; `reached` says that there was one before."""
    if not nameless(error):
        return ProviderError(f"{place}: no answer from {address} ({what})")
    said = "the name of its host leads to no address; check the address and the network"
    return ProviderError(f"{place}: no answer from {address}: {said}", unresolved=not reached)


def again(attempts: int) -> Retrying:
    """Return what calls a function again, `attempts` times at most, while it raises a ProviderError that may pass."""
    return Retrying(
        stop=enough(attempts),
        wait=_wait,
        retry=retry_if_exception(lambda error: isinstance(error, ProviderError) and not error.fatal),
        reraise=True,
    )


def enough(attempts: int) -> Callable[[RetryCallState], bool]:
    """Return what ends the tries: `attempts`, or `pauses.NAMELESS` where the host's name leads to no address."""

    def ends(state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        lost = isinstance(error, ProviderError) and error.unresolved
        return state.attempt_number >= (min(attempts, pauses.NAMELESS) if lost else attempts)

    return ends


def _wait(state: RetryCallState) -> float:
    """Return the seconds the server asked for, 300 at most, else a random time that doubles with each attempt."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, ProviderError) else None
    return wait_exponential_jitter(multiplier=0.5, max=30)(state) if asked is None else min(asked, pauses.LONGEST_S)


def refused(
    place: str, address: str, status: int, headers: Mapping[str, str], variable: str | None, settings: str
) -> ProviderError:
    """Return the error for a reply that is no success, without the server's words, which may quote what was sent.

    `variable` is the environment variable of the key, None if none was sent; `settings` are what else may be wrong.
    """
    denied, fatal = status in _DENIED, not pauses.may_pass(status)
    remedy = f"; {_remedy(variable) if denied else f'check {settings}'}" if fatal else ""
    kind, wait = AccessError if denied else ProviderError, pauses.asked(headers, dt.datetime.now(dt.UTC))
    return kind(f"{place}: {address} answered HTTP {status}{remedy}", fatal=fatal, retry_after=wait)


def _remedy(variable: str | None) -> str:
    return f"check the key in ${variable}" if variable else "it wants a key: name its environment variable with key_env"
