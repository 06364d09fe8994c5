"""Lines of a text file with their raw bytes, so that unchanged lines are written byte for byte."""

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol

from curate.core.errors import DataError
from curate.pii.masking import Masked
from curate.pii.patterns import script
from curate.tables.readers import Problem
from curate.tables.readers.encoding import CODECS, Encoding, guess

HEAD = 1 << 24
"""Number of bytes from which the encoding is detected; a file of fewer bytes is masked by one process."""
FIX = "correct it, or leave such rows out with --on-error drop"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    ("\ufeff".encode("gb18030"), "gb18030"),
)
_CHUNK = 1 << 16
_LOOKED = 1 << 16
"""Number of bytes from which the language is detected."""
_KEY = re.compile(r'"[^"\n]*"\s*:|\A.*\n')
"""Pattern of JSON keys and the first line, ignored in language detection since they are English in most files."""


@dataclass(frozen=True, slots=True)
class RawLine:
    """One line of a text file, its end included."""

    number: int
    """From 1."""
    raw: bytes
    text: str | None
    """None if the bytes cannot be decoded in the file's encoding."""


class Piece(Protocol):
    """A row of a file, of one or more lines."""

    @property
    def line(self) -> int:
        """Return the number of the first line, from 1."""
        ...

    @property
    def raw(self) -> bytes:
        """Return the original bytes."""
        ...

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return (field, text) of every text to mask."""
        ...

    @property
    def numbers(self) -> int:
        """Return the number of fields with a number instead of a text, which are not masked."""
        ...

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the bytes with all texts masked."""
        ...


@dataclass(frozen=True)
class Script:
    """Encoding and language of a text file, and conversion of its lines."""

    codec: tuple[str, ...]
    """Codecs to try, in order."""
    bom: bytes
    encoding: str
    """Name of the encoding in messages."""
    place: str
    """Name of the file in error messages, before the line number."""
    language: str = "zh"
    """Language of the placeholders in texts without letters: zh or en, detected from the head of the file."""

    def decode(self, raw: bytes) -> str | None:
        """Return bytes as text; None if they cannot be decoded."""
        for codec in self.codec:
            try:
                return raw.decode(codec, _errors(codec))
            except UnicodeDecodeError:
                continue
        return None

    def encode(self, text: str) -> bytes:
        """Return text as bytes; UnicodeEncodeError if it has characters that the encoding lacks."""
        for codec in self.codec[:-1]:
            try:
                return text.encode(codec, _errors(codec))
            except UnicodeEncodeError:
                continue
        return text.encode(self.codec[-1], _errors(self.codec[-1]))

    def rewritten(self, text: str, line: int) -> bytes:
        """Return a masked line as bytes; DataError if the encoding lacks the characters of a placeholder."""
        try:
            return self.encode(text)
        except UnicodeEncodeError as error:
            raise DataError(
                f"{self.place}:{line}: found no room in {self.encoding.upper()} for a placeholder's characters; take "
                "--set placeholders=en, or save the file as UTF-8"
            ) from error

    def lines(self, stream: BinaryIO) -> Iterator[RawLine]:
        """Yield the lines after the byte order mark; only a line feed ends a line."""
        wide = self.codec[0].startswith("utf-16")
        for number, raw in enumerate(_wide(stream, self.codec[0]) if wide else stream, start=1):
            yield RawLine(number, raw, self.decode(raw))

    def undecodable(self, number: int) -> Problem:
        """Return the problem of a line whose bytes cannot be decoded."""
        problem = f"bytes that are not {self.encoding.upper()}"
        hint = "save the file as UTF-8, or name what it is, as in --set encoding=gb18030"
        return Problem(number, problem, "text in one encoding", f"{hint}; --on-error drop leaves such lines out")


def _errors(codec: str) -> str:
    return "surrogatepass" if codec.startswith("utf-16") else "strict"


def _wide(stream: BinaryIO, codec: str) -> Iterator[bytes]:
    """Yield the lines of UTF-16 bytes; a line feed is two bytes at an even offset."""
    feed, buffer = "\n".encode(codec), b""
    for chunk in iter(lambda: stream.read(_CHUNK), b""):
        begin, searched = 0, max(len(buffer) - 1, 0)
        buffer += chunk
        while (position := buffer.find(feed, searched)) >= 0:
            searched = position + 1
            if position % 2 == 0:
                yield buffer[begin : position + 2]
                begin = searched = position + 2
        buffer = buffer[begin:]
    if buffer:
        yield buffer


def opened(stream: BinaryIO, encoding: Encoding | Literal["auto"], path: str) -> tuple[Script, BinaryIO, bool]:
    """Return encoding and language of a stream, the stream after its byte order mark, and whether it is long.

    It is long from `HEAD` bytes on. `path` is its name in messages.
    """
    head = stream.read(HEAD)
    long = len(head) == HEAD
    head += stream.readline()  # the sample ends with a whole line
    name = guess(io.BytesIO(head), path, "--set encoding=NAME") if encoding == "auto" else encoding
    bom, codec = next(((bom, codec) for bom, codec in _BOMS if head.startswith(bom)), (b"", ""))
    if not codec.startswith(name):  # a mark of another encoding is text in this one
        bom, codec = b"", "utf-16-le" if name == "utf-16" else ""
    choices = (codec,) if codec else CODECS[name]
    spoken = script(_KEY.sub("", head[len(bom) : _LOOKED].decode(choices[0], "ignore"))) or "zh"
    return Script(choices, bom, name, path, spoken), _Chained([io.BytesIO(head[len(bom) :]), stream]), long


class _Chained(io.BufferedReader):
    """Concatenation of streams."""

    def __init__(self, streams: Iterable[BinaryIO]) -> None:
        super().__init__(_Raw(list(streams)), _CHUNK)


class _Raw(io.RawIOBase):
    def __init__(self, streams: list[BinaryIO]) -> None:
        self._streams = streams

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while self._streams:
            chunk = self._streams[0].read(len(buffer))
            if chunk:
                buffer[: len(chunk)] = chunk
                return len(chunk)
            self._streams.pop(0)
        return 0


# Fields of a row with texts to mask.

KEY, SPARE = "spans", "pii_spans"
"""Key of the spans in a JSONL row, and the key used instead in a row that already has the first one."""


@dataclass(frozen=True)
class Fields:
    """Names of the fields of a row with texts to mask."""

    names: tuple[str, ...] = ("text", "title")
    optional: frozenset[str] = frozenset({"title"})
    """Fields that a row need not have."""

    @classmethod
    def of(cls, names: tuple[str, ...], *, missing: bool) -> "Fields":
        """Return the fields that a user names, by default `text` and `title`; with `missing`, all are optional."""
        chosen = cls(names, frozenset()) if names else cls()
        return cls(chosen.names, frozenset(chosen.names)) if missing else chosen


# Plain text: every line is a text.

END = "\r\n"


@dataclass(frozen=True, slots=True)
class Text:
    """A line of plain text, split into text (empty if blank) and line end."""

    script: Script
    line: int
    raw: bytes
    body: str
    end: str
    numbers: int = 0

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return the line without its line end, as a field without a name."""
        return [("", self.body)] if self.body else []

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the masked line with its original line end."""
        return self.script.rewritten(masked[0].text + self.end, self.line)


def plain_pieces(lines: Iterable[RawLine], script: Script) -> Iterator[Text | Problem]:
    """Yield every line as a piece; a Problem for a line that cannot be decoded."""
    for line in lines:
        if line.text is None:
            yield script.undecodable(line.number)
            continue
        body = line.text.rstrip(END)
        yield Text(script, line.number, line.raw, body, line.text[len(body) :])
