"""Names of processes that share a ledger, so that others can tell whether one has ended."""

import os
import socket
import uuid
from functools import cache
from pathlib import Path


def owner() -> str:
    """Return a name that no other process has."""
    return f"{_machine()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def gone(name: str) -> bool:
    """Return whether a process of this machine has ended, by its name."""
    machine, _, process = name.rpartition(":")[0].rpartition(":")
    return machine == _machine() and process.isdecimal() and not _alive(int(process))


@cache
def _machine() -> str:
    """Return a name of the process-id namespace, since containers may share a host name.

    Without /proc it is the host name.
    """
    host, boot = socket.gethostname(), Path("/proc/sys/kernel/random/boot_id")
    try:
        return f"{host}/{boot.read_text(encoding='ascii').strip()}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return host


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        return True
    return True
