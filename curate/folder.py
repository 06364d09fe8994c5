"""A run folder: held by one process at a time, on a disk that may be full."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from curate.errors import UserError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep every other process out of a run folder; UserError names the one that is in it."""
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror}); choose another with --run") from error
    lock, owner = FileLock(folder / ".lock"), folder / ".owner"
    try:
        with lock.acquire(timeout=0):
            owner.write_text(str(os.getpid()), encoding="ascii")
            yield
    except Timeout as error:
        process = owner.read_text(encoding="ascii") if owner.exists() else "unknown"
        raise UserError(
            f"{folder}: in use by process {process}; wait for it, or give another folder with --run"
        ) from error


@contextmanager
def enough_space(folder: Path) -> Iterator[None]:
    """Turn a full disk into a sentence; what was finished before it was full is kept."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise UserError(
            f"{folder}: no space left on the disk ({error.strerror}); free some, or set CURATE_HOME and --run to "
            "another disk, and give the same command again: what is finished is kept"
        ) from error
