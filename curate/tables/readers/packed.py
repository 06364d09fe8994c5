"""Compressed text files, `.gz`, `.zst` and `.bz2`, decompressed as a stream without temporary files."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from curate.core.errors import DataError

CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""Ending -> pyarrow's name of the codec."""
_CHUNK = 1 << 16


def ending(path: Path) -> tuple[str, str]:
    """Return the ending of a file's format and that of its packing, in small letters: `.csv` and `.gz` of a.csv.GZ."""
    last = path.suffix.lower()
    return (Path(path.stem).suffix.lower(), last) if last in CODECS else (last, "")


def stem(path: Path) -> str:
    """Return a file's name without the ending of its packing, and without that of its format."""
    return Path(path.stem).stem if path.suffix.lower() in CODECS else path.stem


class _Archive(io.RawIOBase):
    """The unpacked bytes of a stream; DataError where it is broken."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        import pyarrow as pa

        self._path, self._codec = path, CODECS[path.suffix.lower()]
        self._bytes = pa.CompressedInputStream(pa.PythonFile(stream), self._codec)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer, which has no type before Python 3.12
        view = memoryview(buffer)
        try:
            chunk: bytes = self._bytes.read(len(view))
        except OSError as error:
            raise DataError(
                f"{self._path}: found a {self._codec} archive that is damaged or cut off ({error}), expected a whole "
                "one; copy it again, or unpack it and give the file inside"
            ) from error
        view[: len(chunk)] = chunk
        return len(chunk)


class Unpacked(io.BufferedReader):
    """Decompressed bytes of a file; `consumed` counts the compressed bytes read."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        super().__init__(_Archive(path, stream), _CHUNK)
        self._packed = stream

    def consumed(self) -> int:
        """Return how many bytes of the packed file were read."""
        return self._packed.tell()


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading its bytes, unpacked if its ending says that it is packed."""
    with path.open("rb") as stream:
        yield Unpacked(path, stream) if path.suffix.lower() in CODECS else stream
