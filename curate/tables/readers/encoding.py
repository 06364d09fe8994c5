"""Text files: detect their encoding, read their lines, and decompress `.gz`, `.zst` and `.bz2` as a stream."""

import codecs
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal

from curate.core.errors import DataError
from curate.core.scripts import common
from curate.tables.readers import Problem

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""File extension -> pyarrow's name of the codec."""
_BLOCK = 1 << 16
_INFLATED = 1 << 26
"""Size of an archive's content from which its ratio counts."""


def ending(path: Path) -> tuple[str, str]:
    """Return the extensions of a file's format and of its compression, in lower case: `.csv` and `.gz` for a.csv.GZ."""
    last = path.suffix.lower()
    return (Path(path.stem).suffix.lower(), last) if last in COMPRESSIONS else (last, "")


def stem(path: Path) -> str:
    """Return a file's name without the extensions of its compression and its format."""
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSIONS else path.stem


class _Archive(io.RawIOBase):
    """Raw stream of the decompressed bytes of a file; DataError if the file is damaged."""

    def __init__(self, path: Path, stream: BinaryIO, bounds: "Bounds") -> None:
        import pyarrow as pa

        self._packed, self._bounds, self._size = stream, bounds, 0
        self._path, self._codec = path, COMPRESSIONS[path.suffix.lower()]
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
        self._size += len(chunk)
        if self._size > _INFLATED and self._size > self._bounds.ratio * self._packed.tell():
            raise DataError(
                f"{self._path}: found an archive whose content is more than {self._bounds.ratio:,} times its size, "
                f"expected less; {self._bounds.remedy('ratio')}"
            )
        return len(chunk)


class Unpacked(io.BufferedReader):
    """Decompressed bytes of a file; `consumed` returns the number of compressed bytes read so far."""

    def __init__(self, path: Path, stream: BinaryIO, bounds: "Bounds") -> None:
        super().__init__(_Archive(path, stream, bounds), _BLOCK)
        self._packed = stream

    def consumed(self) -> int:
        """Return the number of bytes read from the compressed file."""
        return self._packed.tell()


@contextmanager
def opened(path: Path, bounds: "Bounds | None" = None) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; a file with the extension of a compression is decompressed."""
    with path.open("rb") as stream:
        yield Unpacked(path, stream, bounds or BOUNDS) if path.suffix.lower() in COMPRESSIONS else stream


# Text files of unknown encoding: which one it is, and their lines.

Encoding = Literal["utf-8", "utf-16", "gb18030", "big5"]
SAMPLE = 1_000
"""Maximum number of lines with non-ASCII bytes from which the encoding is detected."""

CODECS: dict[Encoding, tuple[str, ...]] = {
    "utf-8": ("utf-8",),
    "gb18030": ("gb18030",),
    "big5": ("cp950", "big5hkscs"),  # what Windows writes, then what Hong Kong adds
}
"""Encoding whose lines end at the byte of a line feed -> codecs that may decode a line, tried in order."""
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CHUNK = 1 << 16
_SAMPLE_BYTES = 1 << 20
_WIDE = bytes(range(128, 256))
_SHARE = 0.05
"""Minimum share of frequent Chinese characters in Chinese text."""
_FIRST: dict[Encoding, tuple[str, int, int]] = {"gb18030": ("gb2312", 0xB0, 0xD7), "big5": ("big5", 0xA4, 0xC6)}
"""Encoding -> its older standard, and the range of first bytes of the common characters there; rarer ones follow."""
_RARER = 0.5
"""Weight of a rare character relative to a common one."""

OLD_MAC = (
    "found lines that end with carriage returns alone, expected line feeds; save the file again, as CSV UTF-8 or with "
    "line ends of Unix or Windows"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text file."""

    number: int
    """From 1."""
    text: str | None
    """None if its bytes are not valid in the file's encoding, or if it is longer than the bound."""
    at: int
    """Number of bytes of the file on disk read so far, including this line."""
    too_long: bool = False


@dataclass(frozen=True)
class Bounds:
    """How large a source may be."""

    record: int = 1 << 26
    """Bytes of a record: a line, an element of a JSON list, a cell."""
    ratio: int = 200
    """Size of an archive's content relative to the archive, from 64 MB on."""
    columns: int = 1 << 14
    setting: str = "ingest.bounds"
    """Section of the settings that lift the bounds; empty where `ingest` does not read the source."""

    def remedy(self, name: str) -> str:
        """Return what to do where a bound is passed."""
        lifted = f", or lift the bound with --set {self.setting}.{name}=NUMBER" if self.setting else ""
        return f"give a smaller one{lifted}"


BOUNDS = Bounds()
FIXED = Bounds(setting="")
"""Bounds that no setting lifts."""


@dataclass(frozen=True)
class TextFile:
    """A text file with its encoding, read line by line within bounds."""

    path: Path
    encoding: Encoding
    bounds: Bounds = BOUNDS

    def lines(self) -> Iterator[Line]:
        """Yield the lines; see `lines`."""
        with opened(self.path, self.bounds) as stream:
            yield from lines(stream, self.encoding, self.bounds.record)

    def chunks(self) -> Iterator[tuple[str, int]]:
        """Yield (text, number of bytes on disk read so far) part by part; DataError for bytes of another encoding."""
        codec = "utf-8-sig" if self.encoding == "utf-8" else CODECS.get(self.encoding, (self.encoding,))[0]
        decoder, position = codecs.getincrementaldecoder(codec)(), 0
        with opened(self.path, self.bounds) as stream:
            try:
                for raw in iter(lambda: stream.read(_CHUNK), b""):
                    position = stream.consumed() if isinstance(stream, Unpacked) else position + len(raw)
                    if text := decoder.decode(raw):
                        yield text, position
                yield decoder.decode(b"", final=True), position
            except UnicodeDecodeError as error:
                raise DataError(f"{self.path}: {self._no_text}") from error

    @property
    def _no_text(self) -> str:
        found = f"found bytes that are not {self.encoding.upper()}, expected text in one encoding"
        return f"{found}; {self._save}"

    @property
    def _save(self) -> str:
        return "save the file as UTF-8" + (", or name it with ingest.encoding" if self.bounds.setting else "")

    def unread(self, line: Line) -> Problem:
        """Return the problem of a line without a text."""
        if line.too_long:
            return self.too_long(line.number)
        problem = f"bytes that are not {self.encoding.upper()}"
        return Problem(line.number, problem, "text in one encoding", self._save)

    def too_long(self, number: int) -> Problem:
        """Return the problem of a record that is longer than the bound."""
        most = f"at most {self.bounds.record:,} bytes"
        return Problem(number, "a longer record", most, self.bounds.remedy("record"))


def detect(path: Path, option: str | None, bounds: Bounds = BOUNDS) -> Encoding:
    """Return the detected encoding of a text file; see `guess`."""
    with opened(path, bounds) as stream:
        return guess(stream, str(path), option)


def guess(stream: BinaryIO, path: str, option: str | None) -> Encoding:
    """Return the detected encoding of a stream, from its byte order mark, its valid UTF-8, or its characters.

    Without byte order mark it is UTF-8 if at least half of the lines with non-ASCII bytes are valid. Otherwise a sample
    is decoded as GB18030 and as Big5, and the encoding with the larger share of frequent Chinese characters is chosen.
    If that share is too small, as in a table whose only Chinese texts are names or headings, the encoding is chosen by
    the share of characters that its older standard (GB 2312 or Big5) contains. DataError if none of the three encodings
    fits, if there are zero bytes without a byte order mark, or if lines end with carriage returns only; the message
    names `option`, the setting of the encoding, if given.
    """
    remedy = f"save the file as UTF-8{f', or name its encoding with {option}' if option else ''}"
    head = stream.read(4096)
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head and b"\0" not in head:
        raise DataError(f"{path}: {OLD_MAC}")
    for bom, name in _BOMS:
        if head.startswith(bom):
            return "utf-16" if name == "utf-16" else "utf-8"
    if b"\0" in head:
        raise DataError(f"{path}: found zero bytes, expected text (UTF-16 needs its byte order mark); {remedy}")
    sample = _sample(chain([io.BytesIO(head + stream.readline(_SAMPLE_BYTES)), stream]))
    scores: dict[Encoding, float] = {name: _plausible(sample, name) for name in ("gb18030", "big5")}
    best: Encoding = "big5" if scores["big5"] > scores["gb18030"] else "gb18030"
    valid = [text for line in sample if (text := _decode(line, "utf-8")) is not None]
    if 2 * len(valid) >= len(sample) and (scores[best] < 0.5 or any(max(text) >= "\u0800" for text in valid)):
        return "utf-8"  # 头痛 in GB18030 is valid UTF-8 too, but makes two-byte letters
    if scores[best] < _SHARE:
        usual: dict[Encoding, float] = {name: _usual(sample, name) for name in ("gb18030", "big5")}
        likely: Encoding = "big5" if usual["big5"] > usual["gb18030"] else "gb18030"
        if usual[likely] >= 0.5:
            return likely
    if scores[best] <= 0:
        raise DataError(f"{path}: found no text in UTF-8, GB18030 or Big5, expected one of them; {remedy}")
    return best


def _sample(streams: Iterable[BinaryIO]) -> list[bytes]:
    """Return the first lines that hold bytes above 127, at most `SAMPLE` of them or about a megabyte.

    A line that is longer than a megabyte is cut behind a character.
    """
    sample: list[bytes] = []
    size = 0
    pieces = (piece for stream in streams for piece in iter(partial(stream.readline, _SAMPLE_BYTES), b""))
    for piece in pieces:
        line = piece if piece.endswith(b"\n") or len(piece) < _SAMPLE_BYTES else piece.rstrip(_WIDE)
        if not line.isascii():
            sample.append(line)
            size += len(line)
        if len(sample) == SAMPLE or size > _SAMPLE_BYTES:
            break
    return sample


def _plausible(sample: list[bytes], encoding: Encoding) -> float:
    """Return the share of frequent characters among all that are not ASCII; 0 if too many lines do not decode."""
    texts = [text for line in sample if (text := _decode(line, encoding)) is not None]
    frequent, wide = common(texts)
    if 10 * len(texts) < 9 * len(sample) or wide == 0:
        return 0.0
    share = frequent / wide
    return share if share >= _SHARE or wide < 50 else 0.0


def _usual(sample: list[bytes], encoding: Encoding) -> float:
    """Return the weighted share of non-ASCII characters in the older standard of an encoding; rare ones weigh `_RARER`.

    The share is 0 if a line cannot be decoded.
    """
    older, low, high = _FIRST[encoding]
    texts = [_decode(line, encoding) for line in sample]
    wide = [character for text in texts for character in text or "" if not character.isascii()]
    if None in texts or not wide:
        return 0.0
    first = [character.encode(older, "replace")[0] for character in wide]
    return sum(_RARER if byte > high else float(byte >= low) for byte in first) / len(wide)


def _decode(line: bytes, encoding: Encoding) -> str | None:
    for codec in CODECS[encoding]:
        try:
            return line.decode(codec)
        except UnicodeDecodeError:
            continue
    return None


def lines(stream: BinaryIO, encoding: Encoding, longest: int = Bounds.record) -> Iterator[Line]:
    """Yield the lines of an open file without byte order mark; a carriage return alone does not end a line.

    The text of a line that cannot be decoded or is longer than `longest` bytes is None; reading continues after it.
    """
    bytewise = ((_decode(line, encoding), length, length > longest) for line, length in _raw_lines(stream, longest))
    position = 0
    for number, (text, length, too_long) in enumerate(
        _utf16(stream, longest) if encoding == "utf-16" else bytewise, start=1
    ):
        position = stream.consumed() if isinstance(stream, Unpacked) else position + length
        if too_long:
            yield Line(number, None, position, too_long=True)
        else:
            yield Line(number, text.removeprefix("\ufeff") if number == 1 and text else text, position)


def _raw_lines(stream: BinaryIO, longest: int) -> Iterator[tuple[bytes, int]]:
    """Yield the bytes of each line and its length; of one that is too long nothing is kept but the length."""
    while line := stream.readline(longest + 1):
        length = len(line)
        if length > longest and not line.endswith(b"\n"):
            line = b""
            while rest := stream.readline(_CHUNK):
                length += len(rest)
                if rest.endswith(b"\n"):
                    break
        yield line, length


def _utf16(stream: BinaryIO, longest: int) -> Iterator[tuple[str | None, int, bool]]:
    """Yield the lines of a UTF-16 stream with their lengths in bytes, and whether they are too long.

    A line feed has two bytes.
    """
    decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
    remainder, skipped = "", 0
    for chunk in iter(lambda: stream.read(_CHUNK), b""):
        *complete, remainder = (remainder + decoder.decode(chunk)).split("\n")
        for line in complete:
            length = 2 * (skipped + len(line)) + 2
            yield None if "\ufffd" in line else f"{line}\n", length, length > longest
            skipped = 0
        if 2 * len(remainder) > longest:
            skipped, remainder = skipped + len(remainder), ""
    remainder += decoder.decode(b"", final=True)
    if remainder or skipped:
        length = 2 * (skipped + len(remainder))
        yield None if "\ufffd" in remainder else remainder, length, length > longest
