"""One file of embeddings: rows that can be mapped into memory, in groups with a checksum each, and their keys.

Float32 rows stand first; behind them, for every group, the number of its rows and a checksum of their bytes, then all
keys, then `TRAILER`. The file is named by a digest of what follows the rows: equal files have one name, and damage
anywhere is found.
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
"""Bytes of a key: the begin of a SHA-256, so a billion texts share none."""
TRAILER = struct.Struct("<8sIIQ")
"""Magic, dimensions, groups, rows; integers and rows of a file are little-endian."""
MAGIC = b"curate.2"
ENDING = ".rows"
NEW = ".new"

Keys = npt.NDArray[np.bytes_]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """What is known of a file without reading its rows."""

    path: Path
    dim: int
    edges: Places
    """First row of every group, and the number of rows."""
    checks: Keys
    """Checksum of every group's rows."""

    def __len__(self) -> int:
        return int(self.edges[-1])

    def groups(self, keys: Keys) -> Iterator[tuple[Keys, Vectors]]:
        """Yield keys and rows of every group that is as it was written."""
        with self.path.open("rb") as stream:
            for first, last, check in zip(self.edges[:-1], self.edges[1:], self.checks, strict=True):
                stream.seek(int(first) * self.dim * 4)
                data = stream.read(int(last - first) * self.dim * 4)
                if checksum(data) == check:
                    yield keys[first:last], np.frombuffer(data, "<f4").reshape(-1, self.dim)


def checksum(data: bytes | memoryview) -> bytes:
    """Return 16 bytes that tell data from damaged data; without the zeros at the end, which numpy leaves out too."""
    return hashlib.sha256(data).digest()[:KEY].rstrip(b"\0")


def write(folder: Path, groups: Iterable[tuple[Keys, Vectors]]) -> Path | None:
    """Write groups of keys and rows into one file, which appears when it is whole; return it, None for no group.

    A kill leaves a hidden file with the ending `.new`.
    """
    beside = folder / f".{uuid.uuid4().hex}{NEW}"
    counts, checks, keys, dim = [], [], [], 0
    try:
        with beside.open("xb") as stream:
            for some, rows in groups:
                data = np.ascontiguousarray(rows, dtype="<f4").data
                stream.write(data)
                counts.append(len(some))
                checks.append(checksum(data))
                keys.append(some)
                dim = rows.shape[1]
            table = np.array(counts, "<u4").tobytes() + np.array(checks, f"S{KEY}").tobytes()
            tail = table + b"".join(key.tobytes() for key in keys)
            tail += TRAILER.pack(MAGIC, dim, len(counts), sum(counts))
            stream.write(tail)
            stream.flush()
            os.fsync(stream.fileno())  # what it replaces is deleted next
        return beside.replace(folder / _name(tail)) if counts else None
    finally:
        beside.unlink(missing_ok=True)


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
