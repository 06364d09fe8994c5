"""Files of an index, named by the number of vectors and a digest of their bytes; written atomically."""

import hashlib
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from curate.retrieval.engines.faiss_recipe import library
from curate.system.files import sha256

NEW = ".new"
_NAME = re.compile(r"(\d{12})-([0-9a-f]{32})\.faiss")
PIECE = 1 << 20
"""Bytes that FAISS hands over at once."""


def write(index: Any, folder: Path) -> Path:  # noqa: ANN401 - see `library`
    """Write an index, and delete files with fewer vectors.

    OSError for a full disk, which FAISS itself would not notice. A kill leaves a hidden file, which `sweep` deletes.
    """
    faiss = library()
    hidden_path, hashed = folder / f".{uuid.uuid4().hex}{NEW}", hashlib.sha256()
    try:
        with hidden_path.open("xb", buffering=PIECE) as stream:

            def keep(piece: bytes) -> None:
                hashed.update(piece)
                stream.write(piece)

            faiss.write_index(index, faiss.PyCallbackIOWriter(keep, PIECE))
            stream.flush()
            os.fsync(stream.fileno())
        complete_path = hidden_path.replace(folder / f"{index.ntotal:012}-{hashed.hexdigest()[:32]}.faiss")
    except OSError as error:
        error.filename = str(folder)  # the name that a user can find
        raise
    finally:
        hidden_path.unlink(missing_ok=True)
    for path in folder.glob("*.faiss"):
        if path != complete_path:
            path.unlink()
    return complete_path


def newest(folder: Path, fewest: int = 0) -> tuple[Path, int] | None:
    """Return the undamaged file with most vectors, and their number; None without one of at least `fewest`.

    Damaged files are deleted.
    """
    for path in sorted(folder.glob("*.faiss"), reverse=True):
        match = _NAME.fullmatch(path.name)
        if match is None or int(match[1]) < fewest:
            continue
        with suppress(FileNotFoundError):  # the process that builds it has a newer one
            if sha256(path).startswith(match[2]):
                return path, int(match[1])
            path.unlink()
    return None


def sweep(folder: Path) -> None:
    """Delete what killed processes left half-written; the caller holds the lock."""
    for path in folder.glob(f".*{NEW}"):
        path.unlink()
