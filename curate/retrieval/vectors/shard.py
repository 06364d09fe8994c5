"""One file of embeddings: rows that can be mapped into memory, in groups with a checksum each, and their keys.

Float32 rows come first; then, for every group, the number of its rows and a checksum of their bytes, then all keys,
then `TRAILER`. The file is named by a digest of all that follows the rows: equal files have one name, and any damage is
detected.
"""

import hashlib
import os
import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from curate.core.protocols import Vectors

KEY = 16
"""Bytes of a key, a prefix of a SHA-256: no collision in a billion texts."""
TRAILER = struct.Struct("<8sIIQ")
"""Magic, dimensions, groups, rows; integers and rows of a file are little-endian."""
MAGIC = b"curate.2"
ENDING = ".rows"
NEW = ".new"

Keys = npt.NDArray[np.bytes_]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """Description of a file without its rows."""

    path: Path
    dim: int
    edges: Places
    """First row of every group, and last the number of rows."""
    checks: Keys
    """Checksum of every group's rows."""

    def __len__(self) -> int:
        return int(self.edges[-1])

    def groups(self, keys: Keys) -> Iterator[tuple[Keys, Vectors]]:
        """Yield keys and rows of every undamaged group."""
        with self.path.open("rb") as stream:
            for first, last, check in zip(self.edges[:-1], self.edges[1:], self.checks, strict=True):
                stream.seek(int(first) * self.dim * 4)
                row_bytes = stream.read(int(last - first) * self.dim * 4)
                if checksum(row_bytes) == check:
                    yield keys[first:last], np.frombuffer(row_bytes, "<f4").reshape(-1, self.dim)


def checksum(content: bytes | memoryview) -> bytes:
    """Return a checksum of 16 bytes, without trailing zeros, which numpy strips too."""
    return hashlib.sha256(content).digest()[:KEY].rstrip(b"\0")


def write(folder: Path, groups: Iterable[tuple[Keys, Vectors]]) -> Path | None:
    """Write groups of keys and rows into one file, atomically; return it, None for no group.

    A kill leaves a hidden file with the ending `.new`.
    """
    hidden_path = folder / f".{uuid.uuid4().hex}{NEW}"
    counts, checks, keys, dim = [], [], [], 0
    try:
        with hidden_path.open("xb") as stream:
            for group_keys, rows in groups:
                row_bytes = np.ascontiguousarray(rows, dtype="<f4").data
                stream.write(row_bytes)
                counts.append(len(group_keys))
                checks.append(checksum(row_bytes))
                keys.append(group_keys)
                dim = rows.shape[1]
            table = np.array(counts, "<u4").tobytes() + np.array(checks, f"S{KEY}").tobytes()
            tail = table + b"".join(key.tobytes() for key in keys)
            tail += TRAILER.pack(MAGIC, dim, len(counts), sum(counts))
            stream.write(tail)
            stream.flush()
            os.fsync(stream.fileno())  # what it replaces is deleted next
        return hidden_path.replace(folder / _name(tail)) if counts else None
    finally:
        hidden_path.unlink(missing_ok=True)


def read(path: Path) -> tuple[Shard, Keys] | None:
    """Return a file's description and keys; None if it is gone, or damaged elsewhere than in its rows."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size < TRAILER.size:
                return None
            stream.seek(size - TRAILER.size)
            magic, dim, groups, rows = TRAILER.unpack(stream.read())
            length = groups * (4 + KEY) + rows * KEY + TRAILER.size
            if magic != MAGIC or size != rows * dim * 4 + length:
                return None
            stream.seek(size - length)
            tail = stream.read()
    except FileNotFoundError:  # another process has merged it
        return None
    if _name(tail) != path.name:
        return None
    counts = np.frombuffer(tail, "<u4", groups)
    checks = np.frombuffer(tail, f"S{KEY}", groups, groups * 4)
    keys = np.frombuffer(tail, f"S{KEY}", rows, groups * (4 + KEY))
    return Shard(path, dim, np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), checks), keys


def _name(tail: bytes) -> str:
    return f"{hashlib.sha256(tail).hexdigest()[:32]}{ENDING}"
