"""Where a command may write by `--out`: a new or empty place, or one that it wrote before; never a run's own."""

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from curate.core.errors import UserError
from curate.pipeline.foreign_files import is_run

BESIDE = ("checks", "evaluation", "paper", "reviews")
"""Folders of a run that no stage writes or reads as its input."""
MANIFEST = "MANIFEST.json"
"""A file of every exported data set."""


def outside_runs(out: Path | None) -> None:
    """Raise UserError for a place among what the stages of a run wrote, or the files of an export."""
    if out is None:
        return
    place = out.expanduser().absolute()
    for folder in (place, *place.parents):
        inside = place.relative_to(folder).parts[:1]
        if is_run(folder) and inside not in {(name,) for name in BESIDE}:
            raise UserError(f"--out {out}: inside the run folder {folder}, which holds what its stages wrote; {_OTHER}")
        if (folder / MANIFEST).is_file():
            raise UserError(f"--out {out}: inside the export {folder}, whose files are those of its manifest; {_OTHER}")


def free_place(out: Path, own: Collection[str] = (), *, file: bool = False) -> Path:
    """Return a place that may be written; UserError says why one may not.

    `own` are files by which a folder is known as the command's own from before; None of it is needed in a new one.
    """
    outside_runs(out)
    place = out.expanduser().absolute()
    if file and place.is_dir():
        raise UserError(f"--out {out}: a folder, expected a file")
    if not file and place.is_file():
        raise UserError(f"--out {out}: a file, expected a folder")
    taken = place.is_file() and place.stat().st_size > 0 if file else place.is_dir() and any(place.iterdir())
    if taken and not any((place / name).exists() for name in own):
        raise UserError(f"--out {out}: not empty, and not written by this command; {_OTHER}")
    above = next(folder for folder in place.parents if folder.exists())
    try:
        TemporaryDirectory(dir=above).cleanup()
    except OSError as error:
        raise UserError(f"--out {out}: nothing can be written in {above} ({error.strerror}); {_OTHER}") from error
    return out


_OTHER = "give a new folder or file"
