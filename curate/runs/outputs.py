"""Checks of `--out`: it must be new, empty or written by the same command before, and outside of stages' files."""

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from curate.core.errors import UserError
from curate.pipeline.folder import is_run

BESIDE = ("checks", "evaluation", "paper", "reviews")
"""Folders of a run that no stage writes, in which `--out` may be."""
MANIFEST = "MANIFEST.json"
"""File in the folder of every export."""


def outside_runs(out: Path | None) -> None:
    """Raise UserError if `out` is inside a run folder, except in folders of `BESIDE`, or inside an export."""
    if out is None:
        return
    path = out.expanduser().absolute()
    for folder in (path, *path.parents):
        inside = path.relative_to(folder).parts[:1]
        if is_run(folder) and inside not in {(name,) for name in BESIDE}:
            raise UserError(f"--out {out}: inside the run folder {folder}, which holds what its stages wrote; {_OTHER}")
        if (folder / MANIFEST).is_file():
            raise UserError(f"--out {out}: inside the export {folder}, whose files are those of its manifest; {_OTHER}")


def free_place(out: Path, own: Collection[str] = (), *, file: bool = False) -> Path:
    """Return `out` if it may be written; else UserError.

    A folder that is not empty must contain one of the files `own`, by which a command recognises what it wrote. With
    `file`, `out` is a file, which must be new or empty.
    """
    outside_runs(out)
    path = out.expanduser().absolute()
    if file and path.is_dir():
        raise UserError(f"--out {out}: a folder, expected a file")
    if not file and path.is_file():
        raise UserError(f"--out {out}: a file, expected a folder")
    occupied = path.is_file() and path.stat().st_size > 0 if file else path.is_dir() and any(path.iterdir())
    if occupied and not any((path / name).exists() for name in own):
        raise UserError(f"--out {out}: not empty, and not written by this command; {_OTHER}")
    above = next(folder for folder in path.parents if folder.exists())
    try:
        TemporaryDirectory(dir=above).cleanup()
    except OSError as error:
        raise UserError(f"--out {out}: nothing can be written in {above} ({error.strerror}); {_OTHER}") from error
    return out


_OTHER = "give a new folder or file"
