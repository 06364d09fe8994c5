"""HTTP servers of the user's choice: their key, and the errors of requests to them."""

import datetime as dt
import os
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from curate.core.errors import AccessError, ConfigError, ProviderError
from curate.system import retry_after

ADDRESS = r"^https?://[^/@?#]+[^@?#]*$"
"""An address without user, key or query, which would be written down with it."""
_DENIED = frozenset({401, 403})
CONNECT_S = 5.0
"""Seconds in which a server on this machine has to take a connection."""


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


def listening(address: str) -> bool:
    """Return whether a server takes connections at an address."""
    parts = urlsplit(address)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), CONNECT_S):
            return True
    except OSError:
        return False


def silent(place: str, address: str, error: BaseException, what: str, *, reached: bool = False) -> ProviderError:
    """Return the error for a request without a reply; `reached` says that there was one before."""
    if not nameless(error):
        return ProviderError(f"{place}: no answer from {address} ({what})")
    said = "the name of its host leads to no address; check the address and the network"
    return ProviderError(f"{place}: no answer from {address}: {said}", unresolved=not reached)


def refused(
    place: str, address: str, status: int, headers: Mapping[str, str], variable: str | None, settings: str
) -> ProviderError:
    """Return the error for a reply that is no success, without the server's words, which may quote what was sent.

    `variable` is the environment variable of the key, None if none was sent; `settings` are what else may be wrong.
    """
    denied, fatal = status in _DENIED, not retry_after.may_pass(status)
    remedy = f"; {_remedy(variable) if denied else f'check {settings}'}" if fatal else ""
    kind, wait = AccessError if denied else ProviderError, retry_after.asked(headers, dt.datetime.now(dt.UTC))
    return kind(f"{place}: {address} answered HTTP {status}{remedy}", fatal=fatal, retry_after=wait)


def _remedy(variable: str | None) -> str:
    return f"check the key in ${variable}" if variable else "it wants a key: name its environment variable with key_env"
