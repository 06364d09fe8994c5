"""Text files: detect their encoding, read their lines, and decompress `.gz`, `.zst` and `.bz2` as a stream."""

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from curate.core.errors import DataError, TableError
from curate.core.scripts import common
from curate.tables.readers import Problem

T = TypeVar("T")

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
            raise TableError.at(
                self._path,
                f"a {self._codec} archive that is damaged or cut off ({error})",
                "a whole archive",
                "copy it again, or unpack it and give the file inside",
            ) from error
        view[: len(chunk)] = chunk
        self._size += len(chunk)
        if self._size > _INFLATED and self._size > self._bounds.ratio * self._packed.tell():
            raise TableError.at(
                self._path,
                f"an archive whose content is more than {self._bounds.ratio:,} times its size",
                f"at most {self._bounds.ratio:,} times",
                self._bounds.remedy("ratio"),
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


@contextmanager
def packed(stream: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    """Yield the stream, or one that compresses into it if `path` has the extension of a compression."""
    import pyarrow as pa

    codec = COMPRESSIONS.get(path.suffix.lower())
    if codec is None:
        yield stream
    else:
        with pa.CompressedOutputStream(pa.PythonFile(stream, "w"), codec) as compressed:
            yield compressed


# Text files of unknown encoding: which one it is, and their lines.

Encoding = Literal["utf-8", "utf-16", "gb18030", "big5", "cp1252"]
SAMPLE = 1_000
"""Maximum number of lines with non-ASCII bytes from which the encoding is detected."""

CODECS: dict[Encoding, tuple[str, ...]] = {
    "utf-8": ("utf-8",),
    "gb18030": ("gb18030",),
    "big5": ("cp950", "big5hkscs"),  # what Windows writes, then what Hong Kong adds
    "cp1252": ("cp1252",),  # Excel in Western Europe and America; never guessed: any bytes are text in it
}
"""Encoding whose lines end at the byte of a line feed -> codecs that may decode a line, tried in order."""
_BOMS: tuple[tuple[bytes, Encoding, str], ...] = (
    (codecs.BOM_UTF8, "utf-8", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16-be"),
    ("\ufeff".encode("gb18030"), "gb18030", "gb18030"),
)
"""Byte order mark, its encoding, and its codec."""
_MARK = max(len(bom) for bom, _, _ in _BOMS)
_CHUNK = 1 << 16
_SAMPLE_BYTES = 1 << 20
_WIDE = bytes(range(128, 256))
_SHARE = 0.05
"""Minimum share of frequent Chinese characters in Chinese text."""
_FIRST: dict[Encoding, tuple[str, int, int]] = {"gb18030": ("gb2312", 0xB0, 0xD7), "big5": ("big5", 0xA4, 0xC6)}
"""Encoding -> its older standard, and the range of first bytes of the common characters there; rarer ones follow."""
_RARER = 0.5
"""Weight of a rare character relative to a common one."""

_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]')
"""Pattern of a string or a bracket of JSON."""
OLD_MAC = (
    "found lines that end with carriage returns alone, expected line feeds; save the file again, as CSV UTF-8 or with "
    "line ends of Unix or Windows"
)


@dataclass(frozen=True)
class Codec:
    """Byte order mark of a text file, and the codecs of its lines, of which the first that fits is used."""

    names: tuple[str, ...]
    bom: bytes = b""

    @classmethod
    def of(cls, encoding: Encoding, head: bytes) -> "Codec":
        """Return the codec of a file by its first bytes; a byte order mark of another encoding is text."""
        marks = ((bom, codec) for bom, name, codec in _BOMS if name == encoding and head.startswith(bom))
        bom, codec = next(marks, (b"", "utf-16-le"))
        return cls((codec,) if encoding == "utf-16" else CODECS[encoding], bom)

    def decode(self, raw: bytes) -> str | None:
        """Return bytes as text; None if they cannot be decoded."""
        for name in self.names:
            try:
                return raw.decode(name)
            except UnicodeDecodeError:
                continue
        return None

    def encode(self, text: str) -> bytes:
        """Return text as bytes; UnicodeEncodeError if it has characters that the encoding lacks."""
        for name in self.names[:-1]:
            try:
                return text.encode(name)
            except UnicodeEncodeError:
                continue
        return text.encode(self.names[-1])


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text file."""

    number: int
    """From 1."""
    text: str | None
    """None if its bytes are not valid in the file's encoding, or if it is longer than the bound."""
    position: int
    """Number of bytes of the file on disk read so far, including this line."""
    raw: bytes = b""
    """Its bytes, without a byte order mark; empty if it is too long."""
    too_long: bool = False


@dataclass(frozen=True)
class Bounds:
    """How large a source may be."""

    record: int = 1 << 26
    """Bytes of a record: a line, an element of a JSON list, a cell."""
    ratio: int = 200
    """Size of an archive's content relative to the archive, from 64 MB on."""
    rows: int = 10**8
    columns: int = 1 << 14
    depth: int = 100
    """Levels of lists and objects in a JSON record."""
    setting: str = "ingest.bounds."
    """Beginning of the names of the settings that lift the bounds; empty where there is none."""

    def remedy(self, name: str) -> str:
        """Return what to do where a bound is passed."""
        lifted = f", or lift the bound with --set {self.setting}{name}=NUMBER" if self.setting else ""
        return f"give a smaller one{lifted}"

    def within(self, rows: Iterable[T], path: str) -> Iterator[T]:
        """Yield the rows of a table; TableError for one more than a table may have."""
        for number, row in enumerate(rows, start=1):
            self.need_few(number, path)
            yield row

    def need_few(self, rows: int, path: str) -> None:
        """Raise TableError if a table with this number of rows has too many."""
        if rows > self.rows:
            raise TableError.at(path, "more rows", f"at most {self.rows:,}", self.remedy("rows"))


BOUNDS = Bounds()
OWN = Bounds(setting="max_")
"""Bounds of a table that a command reads, and lifts by settings of its own."""
FIXED = Bounds(setting="")
"""Bounds that no setting lifts."""


@dataclass(frozen=True)
class TextFile:
    """A text file with its encoding, read line by line within bounds."""

    path: Path
    encoding: Encoding
    bounds: Bounds = BOUNDS
    source: Callable[[], BinaryIO] | None = None
    """Function that returns the bytes, if they are not those of `path`, which then is their name in messages."""
    name_encoding: str = "name it with ingest.encoding"
    """How to name the encoding, for messages; empty if it cannot be named."""

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        return nullcontext(self.source()) if self.source else opened(self.path, self.bounds)

    def lines(self) -> Iterator[Line]:
        """Yield the lines; see `lines`."""
        with self._opened() as stream:
            yield from lines(stream, self.encoding, self.bounds.record)

    def chunks(self) -> Iterator[tuple[str, int]]:
        """Yield (text, number of bytes on disk read so far) part by part; DataError for bytes of another encoding."""
        with self._opened() as stream:
            codec, chunks = _begun(stream, self.encoding)
            decoder, position = codecs.getincrementaldecoder(codec.names[0])(), len(codec.bom)
            try:
                for raw in chunks:
                    position = stream.consumed() if isinstance(stream, Unpacked) else position + len(raw)
                    if text := decoder.decode(raw):
                        yield text, position
                yield decoder.decode(b"", final=True), position
            except UnicodeDecodeError as error:
                got = f"bytes that are not {self.encoding.upper()}, expected text in one encoding"
                raise DataError(f"{self.path}: found {got}; {self._save}") from error

    @property
    def _save(self) -> str:
        return "save the file as UTF-8" + (f", or {self.name_encoding}" if self.name_encoding else "")

    def unread(self, line: Line) -> Problem:
        """Return the problem of a line without a text; DataError if it is longer than a record may be."""
        if line.too_long:
            raise self.too_long(line.number)
        return Problem(line.number, f"bytes that are not {self.encoding.upper()}", "text in one encoding", self._save)

    def too_long(self, number: int) -> DataError:
        """Return the error of a record that is longer than the bound; what a file with one holds is not looked at."""
        most = f"at most {self.bounds.record:,} bytes"
        return Problem(number, "a longer record", most, self.bounds.remedy("record")).error(str(self.path))

    def deep_problem(self, number: int) -> Problem:
        """Return the problem of a record whose lists and objects are nested more deeply than the bound."""
        return Problem(number, "deeper nesting", f"at most {self.bounds.depth:,} levels", self.bounds.remedy("depth"))

    def too_deep(self, number: int) -> DataError:
        """Return `deep_problem` as an error."""
        return self.deep_problem(number).error(str(self.path))

    def nests_too_deep(self, text: str) -> bool:
        """Return whether lists and objects in a JSON text are nested more deeply than the bound."""
        if text.count("[") + text.count("{") <= self.bounds.depth:
            return False
        depth = 0
        for token in _BRACKET.finditer(text):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
            if depth > self.bounds.depth:
                return True
        return False


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
    for bom, name, _ in _BOMS:
        if head.startswith(bom):
            return name
    if b"\0" in head:
        raise TableError.at(path, "zero bytes", "text (UTF-16 needs its byte order mark)", remedy)
    sample = _sample(chain([io.BytesIO(head + stream.readline(_SAMPLE_BYTES)), stream]))
    scores: dict[Encoding, float] = {name: _plausible(sample, name) for name in ("gb18030", "big5")}
    best: Encoding = "big5" if scores["big5"] > scores["gb18030"] else "gb18030"
    valid = [text for line in sample if (text := Codec(CODECS["utf-8"]).decode(line)) is not None]
    if 2 * len(valid) >= len(sample) and (scores[best] < 0.5 or any(max(text) >= "\u0800" for text in valid)):
        return "utf-8"  # 头痛 in GB18030 is valid UTF-8 too, but makes two-byte letters
    if scores[best] < _SHARE:
        usual: dict[Encoding, float] = {name: _usual(sample, name) for name in ("gb18030", "big5")}
        likely: Encoding = "big5" if usual["big5"] > usual["gb18030"] else "gb18030"
        if usual[likely] >= 0.5:
            return likely
    if scores[best] <= 0:
        western = f"{remedy}, such as cp1252 (Windows, Western Europe and America)" if option else remedy
        raise TableError.at(path, "no text in UTF-8, GB18030 or Big5", "text in one of them", western)
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
    texts = [text for line in sample if (text := Codec(CODECS[encoding]).decode(line)) is not None]
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
    texts = [*map(Codec(CODECS[encoding]).decode, sample)]
    wide = [character for text in texts for character in text or "" if not character.isascii()]
    if None in texts or not wide:
        return 0.0
    first = [character.encode(older, "replace")[0] for character in wide]
    return sum(_RARER if byte > high else float(byte >= low) for byte in first) / len(wide)


def lines(stream: BinaryIO, encoding: Encoding, longest: int = Bounds.record) -> Iterator[Line]:
    """Yield the lines of an open file, without its byte order mark; a carriage return alone does not end a line.

    The text of a line that cannot be decoded or is longer than `longest` bytes is None; reading continues after it.
    """
    codec, chunks = _begun(stream, encoding)
    feed, position = codec.encode("\n"), len(codec.bom)
    for number, (raw, length) in enumerate(_raw_lines(chunks, feed, longest), start=1):
        position = stream.consumed() if isinstance(stream, Unpacked) else position + length
        too_long = length > longest
        yield Line(number, None if too_long else codec.decode(raw), position, raw, too_long)


def _begun(stream: BinaryIO, encoding: Encoding) -> tuple[Codec, Iterator[bytes]]:
    """Return the codec of a stream, and its bytes after the byte order mark, part by part."""
    head = stream.read(_MARK)
    codec = Codec.of(encoding, head)
    return codec, chain([head[len(codec.bom) :]], iter(partial(stream.read, _CHUNK), b""))


def _raw_lines(chunks: Iterable[bytes], feed: bytes, longest: int) -> Iterator[tuple[bytes, int]]:
    """Yield the bytes of each line and its length; of one that is too long nothing is kept but the length.

    A line feed of UTF-16 has two bytes and an even position, as all chunks have an even length.
    """
    pieces, length = list[bytes](), 0
    for chunk in chunks:
        begin = 0
        for match in re.finditer(feed, chunk):
            end = match.end()
            if end % len(feed):
                continue
            length += end - begin
            yield b"".join([*pieces, chunk[begin:end]]) if length <= longest else b"", length
            pieces, length, begin = [], 0, end
        length += len(chunk) - begin
        pieces = [*pieces, chunk[begin:]] if length <= longest else []
    if length:
        yield b"".join(pieces), length
