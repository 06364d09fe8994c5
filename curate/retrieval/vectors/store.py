"""Store of embeddings in a folder: files of rows in groups with checksums, and an index of keys in memory.

A file consists of float32 rows; for every group the number of its rows and a checksum of their bytes; all keys; and
`TRAILER`. It is named by a digest of everything after the rows, so that equal files have one name and damage is
detected. Small files are merged.
"""

import hashlib
import mmap
import os
import struct
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from filelock import FileLock, Timeout

from curate.core.errors import DataError
from curate.core.protocols import Vectors

KEY = 16
"""Bytes of a key, a prefix of a SHA-256; long enough for no collision in a billion texts."""
TRAILER = struct.Struct("<8sIIQ")
"""End of a file: magic bytes, numbers of dimensions, groups and rows; all numbers of a file are little-endian."""
MAGIC = b"curate.2"
ENDING = ".rows"
NEW = ".new"

Keys = npt.NDArray[np.bytes_]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """Description of a file, without its rows and keys."""

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
    """Write groups of keys and rows into one file, atomically, and return its path; None if there are no groups.

    A killed process leaves a hidden file with the ending `.new`.
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
    """Return a file's description and keys; None if it is missing or damaged, where damage of rows is not checked."""
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


def forget(folder: Path, keys: Keys) -> int:
    """Write the files of a folder without the rows of these keys, and return the number of such rows."""
    forgotten = 0
    for path in sorted(folder.glob(f"*{ENDING}")):
        content = read(path)
        if content is None or not (gone := int(np.isin(content[1], keys).sum())):
            continue
        shard, shard_keys = content
        kept = ((group, rows, ~np.isin(group, keys)) for group, rows in shard.groups(shard_keys))
        write(folder, ((group[stays], rows[stays]) for group, rows, stays in kept if stays.any()))
        path.unlink()
        forgotten += gone
    return forgotten


# A folder of embeddings: an index of keys in memory, rows on disk, small files merged into large ones.

MANY = 64
"""Number of files of one size class (see `SIZES`) from which they are merged into one."""
SIZES = (1 << 14, 1 << 20)
"""Minimum rows of a file of the next size class; a row is copied about once per class, and never out of the largest."""
ROWS = 4096
"""Number of rows copied at a time into a matrix on disk."""
ABANDONED_S = 24 * 3600
"""Age in seconds from which a half-written file counts as abandoned."""


class Lost(Exception):
    """Indexed rows are missing or damaged; they are removed from the index, so that they can be encoded again."""


class Store:
    """Store of rows by key, whose folder several processes may share: files never change but may be merged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._lock = folder, FileLock(folder / ".lock")
        self._fresh: list[Path] = []
        self.load()

    def load(self) -> None:
        """Read the index of every file again, after merging small ones; damaged files are deleted."""
        contents = self._read()
        if any(len(size) >= MANY for size in _sizes(contents)) and self._tidy(contents):
            contents = self._read()
        self._fresh, self._shards = [], [shard for shard, _ in contents]
        self._maps: dict[int, tuple[mmap.mmap, Vectors]] = {}
        self._sound: dict[int, npt.NDArray[np.bool_]] = {}
        if len(dims := {shard.dim for shard in self._shards}) > 1:
            raise DataError(f"{self.folder}: holds vectors of {len(dims)} lengths, expected one; delete the folder")
        self._keys, self._where = _index(contents)

    def outdated(self) -> bool:
        """Return whether other processes have added files, or merged some."""
        return {path.name for path in self._paths()} != {shard.path.name for shard in self._shards}

    @property
    def dim(self) -> int | None:
        """Return the length of a row; None without rows."""
        return self._shards[0].dim if self._shards else None

    def find(self, keys: Keys) -> Places:
        """Return the location of each key's row (index of the file << 32 | row), -1 for an unknown key."""
        if not len(self._keys):
            return np.full(len(keys), -1)
        positions = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[positions] == keys, self._where[positions], -1)

    @contextmanager
    def writing(self) -> Iterator[Callable[[Keys, Vectors], None]]:
        """Yield a function that writes one group of keys and rows; at the end of the block the index is updated."""
        try:
            yield self._write
        finally:
            self._settle()

    def _write(self, keys: Keys, rows: Vectors) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = write(self.folder, [(keys, rows)])
        assert path is not None
        self._fresh.append(path)

    def _settle(self) -> None:
        """Add the written files to the index; if there are many small ones, merge them and reload the index."""
        if len(self._fresh) + sum(len(shard) < SIZES[0] for shard in self._shards) >= MANY:
            self.load()
            return
        for content in map(read, self._fresh):
            if content:
                self._insert(*content)
        self._fresh = []

    def take(self, keys: Keys) -> Vectors:
        """Return one row per key; Lost if one of them is missing or damaged."""
        where = self.find(keys)
        if (where < 0).any() or self.dim is None:
            raise Lost
        numbers, rows = where >> 32, where & 0xFFFFFFFF
        matrix = np.empty((len(keys), self.dim), dtype=np.float32)
        for number in np.unique(numbers).tolist():
            in_file = numbers == number
            matrix[in_file] = self._rows(number, rows[in_file])
        return matrix

    def matrix(self, keys: Keys) -> Vectors:
        """Return one row per key as a read-only matrix mapped from disk; Lost as for `take`.

        Its file is anonymous: it is deleted with the matrix, or with the process.
        """
        with tempfile.TemporaryFile(dir=self.folder) as stream:
            for start in range(0, len(keys), ROWS):
                stream.write(self.take(keys[start : start + ROWS]).data)
                for mapped, _ in self._maps.values():
                    mapped.madvise(mmap.MADV_DONTNEED)  # else all that was read counts as this process's memory
            stream.flush()
            rows = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(rows, np.float32).reshape(len(keys), -1)

    def _rows(self, number: int, rows: Places) -> Vectors:
        shard = self._shards[number]
        try:
            matrix = self._map(number)
        except (FileNotFoundError, ValueError):  # another process has merged it, or it was cut
            self.load()
            raise Lost from None
        sound = self._sound.setdefault(number, np.zeros(len(shard.checks), bool))
        groups = np.unique(np.searchsorted(shard.edges, rows, side="right") - 1)
        for group in groups[~sound[groups]].tolist():
            if checksum(matrix[shard.edges[group] : shard.edges[group + 1]].data) != shard.checks[group]:
                with self._lock.acquire():
                    self._merge([shard.path])
                self.load()
                raise Lost
            sound[group] = True
        return matrix[rows]

    def _map(self, number: int) -> Vectors:
        if number not in self._maps:
            shard = self._shards[number]
            with shard.path.open("rb") as stream:
                mapped = mmap.mmap(stream.fileno(), len(shard) * shard.dim * 4, access=mmap.ACCESS_READ)
            self._maps[number] = mapped, np.frombuffer(mapped, "<f4").reshape(len(shard), shard.dim)
        return self._maps[number][1]

    def _paths(self) -> Iterator[Path]:
        return self.folder.glob(f"[!.]*{ENDING}")

    def _read(self) -> list[tuple[Shard, Keys]]:
        contents = []
        for path in sorted(self._paths()):
            if content := read(path):
                contents.append(content)
            else:
                path.unlink(missing_ok=True)
        return contents

    def _insert(self, shard: Shard, keys: Keys) -> None:
        order = np.argsort(keys)
        positions = np.searchsorted(self._keys, keys[order])
        self._keys = np.insert(self._keys, positions, keys[order])
        self._where = np.insert(self._where, positions, order + (len(self._shards) << 32))
        self._shards.append(shard)

    def _tidy(self, contents: Sequence[tuple[Shard, Keys]]) -> bool:
        """Merge the files of size classes with many files; return False if another process is merging."""
        try:
            with self._lock.acquire(timeout=0):
                for size in _sizes(contents):
                    if len(size) >= MANY:
                        self._merge(size)
                for path in self.folder.glob(f".*{NEW}"):
                    if time.time() - path.stat().st_mtime > ABANDONED_S:
                        path.unlink(missing_ok=True)
        except Timeout:
            return False
        return True

    def _merge(self, paths: Sequence[Path]) -> None:
        """Replace files by one with their groups, in order, without damaged groups; the caller must hold the lock."""
        contents = [content for path in paths if (content := read(path))]
        merged = write(self.folder, (group for shard, keys in contents for group in shard.groups(keys)))
        for path in paths:
            if path != merged:
                path.unlink(missing_ok=True)


def _sizes(contents: Sequence[tuple[Shard, Keys]]) -> list[list[Path]]:
    """Return the files of each size class except the largest."""
    edges = (0, *SIZES)
    return [[shard.path for shard, _ in contents if low <= len(shard) < high] for low, high in pairwise(edges)]


def _index(contents: Sequence[tuple[Shard, Keys]]) -> tuple[Keys, Places]:
    """Return the sorted distinct keys, and the location of each key's row: index of the file << 32 | row.

    If independent processes wrote several rows of a key, the one in the group with the lowest checksum counts; merging
    files does not change that choice.
    """
    if not contents:
        return np.empty(0, f"S{KEY}"), np.empty(0, np.int64)
    keys = np.concatenate([keys_of_file for _, keys_of_file in contents])
    where = np.concatenate([(number << 32) + np.arange(len(shard)) for number, (shard, _) in enumerate(contents)])
    checks = np.concatenate([np.repeat(shard.checks, np.diff(shard.edges)) for shard, _ in contents])
    order = np.lexsort((checks, keys))
    keys = keys[order]
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    return keys[first], where[order][first]
