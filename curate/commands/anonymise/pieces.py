"""Rows of a file of which only the masked texts are written anew: fields with texts, encodings, and plain text."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Literal

from curate.core.errors import DataError, TableError
from curate.pii.masking import Masked
from curate.pii.patterns import script
from curate.tables.readers import Problem, Table
from curate.tables.readers.encoding import Codec, Encoding, TextFile, guess
from curate.tables.readers.roles import plain_name, roles
from curate.tables.readers.text_rows import shown_names

HEAD = 1 << 24
"""Number of bytes from which the encoding is detected; a file of fewer bytes is masked by one process."""
_LONGEST = 1 << 20
"""Bytes by which the sample of the encoding is extended at most, to end with a whole line."""
_LOOKED = 1 << 16
"""Number of bytes from which the language is detected."""
_KEY = re.compile(r'"[^"\n]*"\s*:|\A.*\n')
"""Pattern of JSON keys and the first line, ignored in language detection since they are English in most files."""
_TABLES: tuple[Table, ...] = ("queries", "corpus", "notes")


@dataclass(frozen=True)
class Fields:
    """Names of the fields of a row with texts to mask."""

    names: tuple[str, ...] = ("text", "title")
    optional: frozenset[str] = frozenset({"title"})
    """Fields that a row need not have."""
    notify: Callable[[str], None] | None = None
    """Called with a notice if other fields are taken than the default ones; None if a user names the fields."""

    @classmethod
    def of(cls, names: tuple[str, ...], notify: Callable[[str], None], *, missing: bool) -> "Fields":
        """Return the fields that a user names, by default `text` and `title`; with `missing`, all are optional."""
        fields = cls(names, frozenset()) if names else cls(notify=notify)
        return replace(fields, optional=frozenset(fields.names)) if missing else fields

    def among(self, columns: Sequence[str], path: str) -> "Fields":
        """Return the fields, or columns named like texts and titles if the default ones are not among the columns."""
        if self.notify is None or set(self.names) & set(columns):
            return self
        titles = {*roles("corpus").names["title"]}
        texts = {name for table in _TABLES for name in roles(table).names["text"]} - titles
        names = tuple(dict.fromkeys(name for name in columns if plain_name(name) in texts | titles))
        if not any(plain_name(name) in texts for name in names):
            return self
        self.notify(f"{path}: no field {' or '.join(self.names)}; masking {', '.join(names)} (others: --field NAME)")
        return Fields(names, frozenset(names if set(self.names) <= self.optional else ()))

    def columns(self, columns: Sequence[str], path: str) -> list[str]:
        """Return the columns of a table to mask; DataError if one is missing."""
        fields = self.among(columns, path)
        absent = [name for name in fields.names if name not in {*columns, *fields.optional}]
        chosen = [name for name in fields.names if name in columns]
        if absent or not chosen:
            raise TableError.at(
                path,
                f"the columns {shown_names([*columns])}",
                ", ".join(absent or fields.names),
                "name the column of the texts with --field",
            )
        return chosen


@dataclass(frozen=True)
class RawText:
    """A text file that is read once, with its encoding and language."""

    file: TextFile
    sample: TextFile
    """The beginning of the file, which can be read repeatedly."""
    codec: Codec
    language: Literal["zh", "en"]
    """Language of the placeholders in texts without letters."""
    start: str
    """The first character that is no white space."""
    long: bool
    """Whether the file has at least `HEAD` bytes."""

    @classmethod
    def of(cls, stream: BinaryIO, encoding: Encoding | Literal["auto"], sample: TextFile) -> "RawText":
        """Return the text of a stream; `sample` has its name and its bounds."""
        head = stream.read(HEAD)
        long = len(head) == HEAD
        head += stream.readline(_LONGEST)
        path = str(sample.path)
        name = guess(io.BytesIO(head), path, "--set encoding=NAME") if encoding == "auto" else encoding
        codec = Codec.of(name, head)
        text = head[len(codec.bom) : _LOOKED].decode(codec.names[0], "ignore")
        language = script(_KEY.sub("", text)) or "zh"
        sample = replace(sample, encoding=name, source=lambda: io.BytesIO(head))
        file = replace(sample, source=lambda: io.BufferedReader(_Joined(head, stream)))
        return cls(file, sample, codec, language, text.lstrip()[:1], long)

    def encoded(self, text: str, line: int) -> bytes:
        """Return a masked line as bytes; DataError if the encoding lacks the characters of a placeholder."""
        try:
            return self.codec.encode(text)
        except UnicodeEncodeError as error:
            raise DataError(
                f"{self.file.path}:{line}: found no room in {self.file.encoding.upper()} for a placeholder's "
                "characters; take --set placeholders=en, or save the file as UTF-8"
            ) from error


class _Joined(io.RawIOBase):
    """The bytes that were read of a stream, then the others."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._streams: tuple[Any, ...] = (io.BytesIO(head), stream)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer, which has no type before Python 3.12
        return next((size for stream in self._streams if (size := stream.readinto(buffer))), 0)


@dataclass(frozen=True)
class Piece:
    """Some lines of a text file, such as a row of a table; without texts, as a blank line or a header."""

    text: RawText
    line: int
    """Number of the first line, from 1; of an element of a JSON document, its number."""
    raw: bytes
    """The original bytes."""

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return (field, text) of every text to mask."""
        return []

    @property
    def numbers(self) -> int:
        """Return the number of fields with a number instead of a text, which are not masked."""
        return 0

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the bytes with all texts masked."""
        assert not masked
        return self.raw


@dataclass(frozen=True)
class PlainLine(Piece):
    """A line of plain text."""

    body: str
    end: str

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return the line without its line end, as a field without a name."""
        return [("", self.body)]

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the masked line with its original line end."""
        return self.text.encoded(masked[0].text + self.end, self.line)


def plain_pieces(text: RawText) -> Iterator[Piece | Problem]:
    """Yield every line as a piece; a Problem for a line that cannot be read."""
    for line in text.file.lines():
        if line.text is None:
            yield text.file.unread(line)
        elif body := line.text.rstrip("\r\n"):
            yield PlainLine(text, line.number, line.raw, body, line.text[len(body) :])
        else:
            yield Piece(text, line.number, line.raw)
