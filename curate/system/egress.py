"""Whether what a plugin is given may leave this house: one rule, by what is declared and never by a guess.

A server at an address of loopback may be a gateway that forwards (LiteLLM, one-api, an SSH tunnel, a model of Ollama's
cloud). So a kind of plugin that sends nothing says so in its class, `egress = "local"`; of an address only the user can
say that it keeps what it is sent, by `local: true` in the settings; and all else is remote.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from curate.core.errors import ConfigError

Egress = Literal["local", "remote"]
"""What a class of plugins says of itself; one that says nothing is remote."""


def declared(plugin: object) -> Egress:
    """Return what a plugin says of itself."""
    return "local" if getattr(plugin, "egress", None) == "local" else "remote"


def understood(plugin: object) -> bool:
    """Say whether what a plugin says of itself is one of the two words; a class that says nothing is remote."""
    return getattr(plugin, "egress", "remote") in get_args(Egress)


def beyond(who: str, plugin: object) -> str | None:
    """Return why texts that a plugin is given may leave; None if they stay. `who` is its place in the settings.

    A class that sends to an address which the user chose has a method `beyond(who)` of its own, by `forwarded`.
    """
    if declared(plugin) == "local":
        return None
    own = getattr(plugin, "beyond", None)
    if own is None:
        return f'the class of {who} does not say that it sends nothing; if so, its author writes egress = "local"'
    why: str | None = own(who)
    return why


def forwarded(who: str, address: str | None, *, local: bool) -> str | None:
    """Return why what is sent to an address may go further; None if the user says that it stays, and no proxy is there.

    None as an address is a vendor's own.
    """
    if not local:
        server = "a vendor's own address" if address is None else "a server, on this machine too, may pass texts on"
        return f"{server}; if this one keeps what it is sent, say so: {who}.local: true"
    return None if address is None else proxied(address)


def proxied(address: str) -> str | None:
    """Return that the environment sends what goes to an address through a proxy, which goes where it likes; or None."""
    host = urlsplit(address).hostname
    if proxy(address) is None:
        return None
    return f"the environment sends {host} through a proxy; add {host} to the variable no_proxy"


def outside(address: str) -> str | None:
    """Return why an address is not this machine's own; None for 127.0.0.0/8, ::1 and localhost without a proxy.

    Other spellings (0.0.0.0, ::ffff:127.0.0.1, 127.1) are not taken for it.
    """
    host = urlsplit(address).hostname or ""
    if not all(map(_loopback, _addresses(host))):
        return f"{host} is not this machine; expected 127.0.0.1, [::1] or localhost"
    return proxied(address)


def proxy(address: str) -> str | None:
    """Return the proxy that the environment names for an address, None for none; ConfigError unless it speaks HTTP."""
    parts, named = urlsplit(address), getproxies()
    found = named.get(parts.scheme) or named.get("all")
    if not found or proxy_bypass(parts.hostname or ""):
        return None
    if urlsplit(found).scheme not in ("http", "https"):
        raise ConfigError(
            f"{parts.scheme}_proxy: a proxy for {address} must be an http:// address; "
            "set that variable, or name the host in no_proxy"
        )
    return found


def _addresses(host: str) -> list[str]:
    """Return the addresses to check: for `localhost` those that the system resolves it to."""
    if host != "localhost":
        return [host]
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _loopback(host: str) -> bool:
    try:
        found: IPv4Address | IPv6Address = ip_address(host)
    except ValueError:
        return False
    return found.is_loopback if isinstance(found, IPv4Address) else host == "::1"
