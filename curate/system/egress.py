"""Egress: whether texts given to a plugin may leave the user's control, by declarations only.

Nothing is inferred from an address: a server at a loopback address may be a gateway that forwards texts (LiteLLM,
one-api, an SSH tunnel, a model of Ollama's cloud). A plugin class that sends nothing declares `egress = "local"`. The
user declares by `local: true` in the settings that a server does not forward texts. Everything else is remote. Beside
that, a list of hosts may name the only ones that are reached at all.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import Field, field_validator

from curate.core.config import Section
from curate.core.errors import ConfigError

Egress = Literal["local", "remote"]
"""Values of the class attribute `egress` of a plugin; without it a plugin is remote."""


class AllowedHosts(Section):
    """The only hosts that judges, encoders, indexes and writers may reach."""

    allow: tuple[str, ...] | None = Field(
        default=None,
        description="hosts, with a port or for any: api.openai.com, 10.0.0.7:8000, *.hospital.org; null: every host",
    )

    @field_validator("allow")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for host in hosts or ():
            try:
                readable = urlsplit(f"//{host}").netloc == host and bool(urlsplit(f"//{host}").hostname)
                _port = urlsplit(f"//{host}").port
            except ValueError:
                readable = False
            if not readable or "@" in host:
                raise ValueError(f"found {host!r}, expected a host such as api.openai.com or 10.0.0.7:8000")
        return hosts

    def refuse(self, who: str, addresses: Sequence[str] | None) -> None:
        """Raise ConfigError if one of the addresses of a plugin (see `addresses`) is none of these hosts', or unknown.

        `who` is the plugin's path in the settings. `*.example.org` stands for every host below example.org.
        """
        if self.allow is None:
            return
        if addresses is None:
            raise ConfigError(
                f"{who}: its class does not say where it sends texts, so that egress.allow cannot let it; its author "
                "gives it an attribute `address`"
            )
        for address in addresses:
            self._refuse(who, address, self.allow)

    def _refuse(self, who: str, address: str, hosts: Sequence[str]) -> None:
        url = urlsplit(address)
        host, port = (url.hostname or "").lower(), url.port or {"http": 80, "https": 443}.get(url.scheme)
        for entry in hosts:
            allowed = urlsplit(f"//{entry.lower()}")
            name = allowed.hostname or ""
            same = host.endswith(name[1:]) if name.startswith("*.") else host == name
            if same and allowed.port in (None, port):
                return
        raise ConfigError(
            f"{who}: found the host {url.netloc.rpartition('@')[2]}, which is none of egress.allow "
            f"({', '.join(hosts) or 'no host'}); nothing was sent to it; add it there if it may be reached"
        )


def declared(plugin: object) -> Egress:
    """Return the declared egress of a plugin: "remote" unless its attribute `egress` is "local"."""
    return "local" if getattr(plugin, "egress", None) == "local" else "remote"


def addresses(plugin: object) -> tuple[str, ...] | None:
    """Return the addresses that a plugin sends to, by its attributes `address` or `addresses`.

    Empty if it is local; None if its class does not tell.
    """
    if declared(plugin) == "local":
        return ()
    if (address := getattr(plugin, "address", None)) is not None:
        return (address,)
    several: tuple[str, ...] | None = getattr(plugin, "addresses", None)
    return several


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
