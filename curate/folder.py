"""A run folder: held by one process at a time, on a disk that may be full."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from curate.errors import UserError
from curate.files import remove, replace_folder

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_LOCK, _OWNER = ".lock", ".held"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep every other process out of a run folder; UserError names the one that is in it.

    A folder that was made for it and in which nothing was put is removed again, with the parents that were made.
    """
    from filelock import FileLock, Timeout

    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror}); choose another with --run") from error
    lock, owner = FileLock(folder / _LOCK), folder / _OWNER
    try:
        with lock.acquire(timeout=0):
            try:
                owner.unlink(missing_ok=True)  # it may be a link
                owner.write_text(str(os.getpid()), encoding="ascii")
                yield
            finally:
                owner.unlink(missing_ok=True)
                _remove(new)
    except Timeout as error:
        process = owner.read_text(encoding="ascii") if owner.exists() else "unknown"
        raise UserError(
            f"{folder}: in use by process {process}; wait for it, or give another folder with --run"
        ) from error


def _remove(made: list[Path]) -> None:
    """Remove folders that were made, innermost first, if the innermost holds its lock alone."""
    if made and [each.name for each in made[0].iterdir()] == [_LOCK]:
        (made[0] / _LOCK).unlink()
        for each in made:
            if any(each.iterdir()):
                return
            each.rmdir()


class Made:
    """Stages that are made and wait beside the finished ones, hidden, until they take their places together."""

    def __init__(self, run: Path, stages: Sequence[str]) -> None:
        self.run, self.stages = run, stages
        self.waiting: dict[str, Path] = {}
        """Stage -> folder, in the order in which they were finished."""

    def place(self, stage: str) -> Path:
        """Return the folder of a stage: the one that waits, else the one in the run."""
        return self.waiting.get(stage, self.run / stage)

    def begin(self, stage: str, *, private: bool) -> Path:
        """Return a new folder for a stage to write into."""
        folder = self.run / f".{stage}.new"
        remove(folder)
        folder.mkdir(mode=0o700 if private else 0o755)
        return folder

    def settle(self) -> list[str]:
        """Put every stage that waits into the place of the old one; return their names."""
        names = list(self.waiting)
        for name in names:
            replace_folder(self.waiting.pop(name), self.run / name)
        return names

    def drop(self) -> None:
        """Remove what waits, and what a killed process left half done; it may hold raw texts."""
        self.waiting.clear()
        for stage in self.stages:
            for ending in ("new", "old"):
                remove(self.run / f".{stage}.{ending}")


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
