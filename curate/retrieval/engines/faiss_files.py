"""Files of an index: each named by how many vectors it holds and by a digest of its bytes, whole or not there."""

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
    """Write an index with what it holds by now, and delete those that hold less; OSError for a full disk.

    FAISS itself would not notice a disk that is full when it closes a file. A kill leaves a hidden file, which
    `sweep` deletes.
    """
    faiss = library()
    beside, hashed = folder / f".{uuid.uuid4().hex}{NEW}", hashlib.sha256()
    try:
        with beside.open("xb", buffering=PIECE) as stream:

            def keep(piece: bytes) -> None:
                hashed.update(piece)
                stream.write(piece)

            faiss.write_index(index, faiss.PyCallbackIOWriter(keep, PIECE))
            stream.flush()
            os.fsync(stream.fileno())
        whole = beside.replace(folder / f"{index.ntotal:012}-{hashed.hexdigest()[:32]}.faiss")
    except OSError as error:
        error.filename = str(folder)  # the name that a user can find
        raise
    finally:
        beside.unlink(missing_ok=True)
    for path in folder.glob("*.faiss"):
        if path != whole:
            path.unlink()
    return whole


def newest(folder: Path, fewest: int = 0) -> tuple[Path, int] | None:
    """Return the whole file with most vectors, and how many these are; None if none is whole with `fewest` or more.

    What is damaged is deleted.
    """
    for path in sorted(folder.glob("*.faiss"), reverse=True):
        found = _NAME.fullmatch(path.name)
        if found is None or int(found[1]) < fewest:
            continue
        with suppress(FileNotFoundError):  # the process that builds it has a newer one
            if sha256(path).startswith(found[2]):
                return path, int(found[1])
            path.unlink()
    return None


def sweep(folder: Path) -> None:
    """Delete what killed processes left half-written; the caller holds the lock."""
    for path in folder.glob(f".*{NEW}"):
        path.unlink()
