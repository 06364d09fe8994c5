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
"""Maximum seconds for a local server to accept a connection."""


def key(section: str, variable: str | None) -> str | None:
    """Return the API key from the environment variable `variable`; ConfigError, which names `section`, if it has none.

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
    """Return the error for a request without a reply; `reached` is true if the server has replied before."""
    if not nameless(error):
        return ProviderError(f"{section}: no answer from {address} ({what})")
    reason = "the name of its host leads to no address; check the address and the network"
    return ProviderError(f"{section}: no answer from {address}: {reason}", unresolved=not reached)


def refused(
    section: str, address: str, status: int, headers: Mapping[str, str], variable: str | None, settings: str
) -> ProviderError:
    """Return the error for an unsuccessful reply, without the server's message, which may quote the request.

    `variable` is the environment variable of the key, None if none was sent; `settings` are others that may be wrong.
    """
    denied, fatal = status in _DENIED, not retry_after.may_pass(status)
    remedy = f"; {_remedy(variable) if denied else f'check {settings}'}" if fatal else ""
    kind, wait = AccessError if denied else ProviderError, retry_after.asked(headers, dt.datetime.now(dt.UTC))
    return kind(f"{section}: {address} answered HTTP {status}{remedy}", fatal=fatal, retry_after=wait)


def _remedy(variable: str | None) -> str:
    return f"check the key in ${variable}" if variable else "it wants a key: name its environment variable with key_env"
