"""Keep every Python process whose PYTHONPATH has this folder on this machine: nothing but loopback can be reached."""

import errno
import ipaddress
import socket
from typing import Any

_connect, _look_up = socket.socket.connect, socket.getaddrinfo


def _here(host: Any) -> bool:
    try:
        return host in (None, "", "localhost", socket.gethostname()) or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _guarded(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6) and not _here(address[0]):
        raise OSError(errno.ENETUNREACH, "a test keeps this process on its machine")
    _connect(self, address)


def _guarded_look_up(host: Any, *more: Any, **settings: Any) -> Any:
    if not _here(host.decode() if isinstance(host, bytes) else host):
        raise socket.gaierror(socket.EAI_NONAME, "a test keeps this process on its machine")
    return _look_up(host, *more, **settings)


socket.socket.connect = _guarded  # type: ignore[assignment,method-assign]
socket.getaddrinfo = _guarded_look_up
