"""Writing into a run folder: lock against other processes, replacing of stage folders, error for a full disk."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from curate.core.errors import UserError
from curate.system.files import remove, replace_folder

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_LOCK, _OWNER = ".lock", ".held"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run folder against other processes within the block; UserError if another process has locked it.

    The folder is created if necessary; UserError if that is impossible. If it is new and remains empty, it is removed
    again, with the parents that were created for it.
    """
    from filelock import FileLock, Timeout

    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror}); choose another with --run") from error
    lock, owner = FileLock(folder / _LOCK), folder / _OWNER
    try:
        with lock.acquire(timeout=0):
            try:
                owner.unlink(missing_ok=True)  # a link would write to its target
                owner.write_text(str(os.getpid()), encoding="ascii")
                yield
            finally:
                owner.unlink(missing_ok=True)
                _remove(new_folders)
    except Timeout as error:
        process = owner.read_text(encoding="ascii") if owner.exists() else "unknown"
        raise UserError(
            f"{folder}: in use by process {process}; wait for it, or give another folder with --run"
        ) from error


def _remove(new_folders: list[Path]) -> None:
    # innermost first, and only if that one holds nothing but the lock
    if new_folders and [path.name for path in new_folders[0].iterdir()] == [_LOCK]:
        (new_folders[0] / _LOCK).unlink()
        for folder in new_folders:
            if any(folder.iterdir()):
                return
            folder.rmdir()


class PendingStages:
    """New stage folders, hidden in the run folder until `settle` replaces the old ones by them."""

    def __init__(self, run: Path, stages: Sequence[str]) -> None:
        self.run, self.stages = run, stages
        self.waiting: dict[str, Path] = {}
        """Completed stage -> its new folder, in the order of completion."""

    def place(self, stage: str) -> Path:
        """Return the folder of a stage: the hidden new one if it is completed, else `RUN/STAGE`."""
        return self.waiting.get(stage, self.run / stage)

    def begin(self, stage: str, *, private: bool) -> Path:
        """Return a new, empty, hidden folder for a stage to write to; with `private`, only the user may read it."""
        folder = self.run / f".{stage}.new"
        remove(folder)
        folder.mkdir(mode=0o700 if private else 0o755)
        return folder

    def settle(self) -> list[str]:
        """Replace the folders of all completed stages by their new ones; return the names of these stages."""
        names = list(self.waiting)
        for name in names:
            replace_folder(self.waiting.pop(name), self.run / name)
        return names

    def drop(self) -> None:
        """Remove all new folders, also those that a killed process left; they may contain raw texts."""
        self.waiting.clear()
        for stage in self.stages:
            for ending in ("new", "old"):
                remove(self.run / f".{stage}.{ending}")


@contextmanager
def enough_space(folder: Path) -> Iterator[None]:
    """Turn the OSError of a full disk into a UserError with a remedy; other errors are not changed."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise UserError(
            f"{folder}: no space left on the disk ({error.strerror}); free some, or set CURATE_HOME and --run to "
            "another disk, and give the same command again: what is finished is kept"
        ) from error
