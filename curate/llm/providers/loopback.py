"""Whether an address is this machine's own, so that what is sent to it stays here."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from curate.llm.providers.transport import proxy


def outside(address: str) -> str | None:
    """Return why what is sent to an address may leave this machine; None if it stays: 127.0.0.0/8, ::1, localhost.

    Other spellings (0.0.0.0, ::ffff:127.0.0.1, 127.1) are not taken for it, nor is any address with a proxy before it,
    which goes where it likes.
    """
    host = urlsplit(address).hostname or ""
    if not all(map(_loopback, _addresses(host))):
        return f"{host} is not this machine; expected 127.0.0.1, [::1] or localhost"
    if proxy(address) is not None:
        return f"the environment sends {host} through a proxy; add {host} to the variable no_proxy"
    return None


def _addresses(host: str) -> list[str]:
    """Return what is looked at: for `localhost` whatever the system takes it for."""
    if host != "localhost":
        return [host]
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _loopback(host: str) -> bool:
    try:
        found: IPv4Address | IPv6Address = ip_address(host)
    except ValueError:
        return False
    return found.is_loopback if isinstance(found, IPv4Address) else host == "::1"
