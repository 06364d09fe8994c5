"""Egress: whether texts given to a plugin may leave the user's control, by declarations only.

Nothing is inferred from an address: a server at a loopback address may be a gateway that forwards texts (LiteLLM,
one-api, an SSH tunnel, a model of Ollama's cloud). A plugin class that sends nothing declares `egress = "local"`. The
user declares by `local: true` in the settings that a server does not forward texts. Everything else is remote.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from curate.core.errors import ConfigError

Egress = Literal["local", "remote"]
"""Values of the class attribute `egress` of a plugin; without it a plugin is remote."""


def declared(plugin: object) -> Egress:
    """Return the declared egress of a plugin: "remote" unless its attribute `egress` is "local"."""
    return "local" if getattr(plugin, "egress", None) == "local" else "remote"


def understood(plugin: object) -> bool:
    """Return whether the attribute `egress` of a plugin is valid: "local", "remote" or missing."""
    return getattr(plugin, "egress", "remote") in get_args(Egress)


def beyond(who: str, plugin: object) -> str | None:
    """Return why texts given to a plugin may leave the user's control; None if they stay.

    `who` is the plugin's path in the settings. A class that sends texts to an address of the user's choice has a method
    `beyond(who)`, which calls `forwarded`.
    """
    if declared(plugin) == "local":
        return None
    method = getattr(plugin, "beyond", None)
    if method is None:
        return f'the class of {who} does not say that it sends nothing; if so, its author writes egress = "local"'
    why: str | None = method(who)
    return why


def forwarded(who: str, address: str | None, *, local: bool) -> str | None:
    """Return why texts sent to an address may leave the user's control; None if they stay.

    They stay if `local` is declared and the environment sets no proxy. `who` is the plugin's path in the settings.
    `address` is None for a provider's own server.
    """
    if not local:
        server = "a vendor's own address" if address is None else "a server, on this machine too, may pass texts on"
        return f"{server}; if this one keeps what it is sent, say so: {who}.local: true"
    return None if address is None else proxied(address)


def proxied(address: str) -> str | None:
    """Return a sentence on the proxy that the environment sets for an address; None if there is no proxy."""
    host = urlsplit(address).hostname
    if proxy(address) is None:
        return None
    return f"the environment sends {host} through a proxy; add {host} to the variable no_proxy"


def outside(address: str) -> str | None:
    """Return why requests to an address leave this machine; None for 127.0.0.0/8, ::1 and localhost without a proxy.

    Other spellings of loopback (0.0.0.0, ::ffff:127.0.0.1, 127.1) count as another machine.
    """
    host = urlsplit(address).hostname or ""
    if not all(map(_loopback, _addresses(host))):
        return f"{host} is not this machine; expected 127.0.0.1, [::1] or localhost"
    return proxied(address)


def proxy(address: str) -> str | None:
    """Return the URL of the proxy that the environment sets for an address; None without one.

    ConfigError if it is not an HTTP(S) proxy.
    """
    url, proxies = urlsplit(address), getproxies()
    proxy_url = proxies.get(url.scheme) or proxies.get("all")
    if not proxy_url or proxy_bypass(url.hostname or ""):
        return None
    if urlsplit(proxy_url).scheme not in ("http", "https"):
        raise ConfigError(
            f"{url.scheme}_proxy: a proxy for {address} must be an http:// address; "
            "set that variable, or name the host in no_proxy"
        )
    return proxy_url


def _addresses(host: str) -> list[str]:
    """Return the addresses to check for a host: those that `localhost` resolves to, or any other host unresolved."""
    if host != "localhost":
        return [host]
    return [str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _loopback(host: str) -> bool:
    try:
        parsed: IPv4Address | IPv6Address = ip_address(host)
    except ValueError:
        return False
    return parsed.is_loopback if isinstance(parsed, IPv4Address) else host == "::1"
