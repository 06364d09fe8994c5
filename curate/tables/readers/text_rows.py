"""Rows of text files: CSV, TSV, JSON and plain text.

The delimiter of a CSV file is detected from its first lines: with it, the largest share of rows has as many cells as
the header. Delimiters inside quotes do not count. On a tie, as in `1;one, two`, the delimiter that is less often
followed by a space is chosen, because a space follows a comma in prose.
"""

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

from curate.core.errors import DataError, TableError
from curate.tables.readers import Problem, Row, json_kind
from curate.tables.readers.encoding import OLD_MAC, Line, TextFile
from curate.tables.readers.unwrapping import unwrapped

CANDIDATES = (",", ";", "\t", "|")
LOOKED = 200
"""Maximum number of first lines from which the delimiter is detected; they end after `_CHARACTERS` characters."""
_CHARACTERS = 1 << 18
_DECLARED = re.compile(r"sep=(.)\s*", re.IGNORECASE)
_WORDS = {"tab": "\t", "\\t": "\t"}


def named(text: str) -> str:
    """Return the delimiter that a user typed, one character or the word `tab`; ValueError for anything else."""
    sign = _WORDS.get(text.lower(), text)
    if len(sign) != 1 or sign in '"\r\n' or sign.isalnum():
        raise ValueError("expected one character such as ';', or tab")
    return sign


def declared(line: str) -> str | None:
    """Return the delimiter declared by a first line such as `sep=;`, which spreadsheets write; None for other lines."""
    declaration = _DECLARED.fullmatch(line)
    return declaration[1] if declaration else None


def find(file: TextFile, usual: str, *, header: bool) -> str:
    """Return the delimiter of a file: declared or detected, else `usual`."""
    sample = _sample(file)
    declared_sign = declared(sample[0]) if sample else None
    if declared_sign:
        return declared_sign
    scores = {sign: score for sign in CANDIDATES if (score := _score(sample, sign, header=header))}
    return max(scores, key=lambda sign: (*scores[sign], sign == usual), default=usual)


def is_regular(file: TextFile) -> bool:
    """Return whether a delimiter cuts all first rows, two at least, into equally many cells."""
    sample = _sample(file)
    scores = [score for sign in CANDIDATES if (score := _score(sample, sign, header=True))]
    return len(sample) > 1 and any(share == 1 for share, _ in scores)


def has_quoted_breaks(file: TextFile, sign: str) -> bool:
    """Return whether the first lines are rows of equal width only if quotes enclose delimiters and line breaks."""
    sample = _sample(file)
    unquoted_widths = {line.count(sign) for line in sample if line.strip()}
    if len(unquoted_widths) < 2:
        return False
    widths = [*_widths(sample, sign)]
    complete = widths[:-1] if len(sample) == LOOKED else widths  # the sample may end within a cell
    return len(complete) > 1 and widths[0] > 1 and len(set(complete)) == 1


def _sample(file: TextFile) -> list[str]:
    """Return the first lines; a line that cannot be decoded is empty."""
    texts: list[str] = []
    size = 0
    for line in islice(file.lines(), LOOKED):
        texts.append(line.text or "")
        size += len(texts[-1])
        if size > _CHARACTERS:
            break
    return texts


def _score(sample: Sequence[str], sign: str, *, header: bool) -> tuple[float, float] | None:
    """Return the share of rows with the expected number of cells, and that of delimiters without a space after them.

    The result is None if there is only one column.
    """
    widths = [*_widths(sample, sign)]
    if not widths:
        return None
    width = widths[0] if header else Counter(widths).most_common(1)[0][0]
    if width < 2:
        return None
    text = "".join(sample)
    return widths.count(width) / len(widths), 1 - text.count(f"{sign} ") / text.count(sign)


def _widths(sample: Sequence[str], sign: str) -> Iterator[int]:
    """Yield the number of cells of each non-blank row, up to the first row that is not valid CSV."""
    csv.field_size_limit(sys.maxsize)
    try:
        for row in csv.reader(sample, delimiter=sign):
            if any(cell.strip() for cell in row):
                yield len(row)
    except csv.Error:
        return


# Rows of JSON and JSONL files, and of files with a text per line.

FIX = "correct the line"
CORRECT = "correct it, or write the file as JSONL, an object per line"
COLUMN = "text"
"""Name of the only column of a plain text file."""
_PLAIN_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-."


def jsonl(file: TextFile) -> Iterator[Row | Problem]:
    """Yield the JSON object of each non-blank line."""

    def row(number: int, text: str, position: int) -> Row | Problem:
        if file.nests_too_deep(text):
            raise file.too_deep(number)
        record = json_object(number, text.rstrip())
        return record if isinstance(record, Problem) else Row(number, record, position)

    return each(file, row)


def is_document(file: TextFile) -> bool:
    """Return whether a file is one JSON list or object, also over several lines, and not an object per line."""
    start = next((text.lstrip() for text, _ in file.chunks() if text.strip()), "")
    if not start.startswith("{"):
        return start.startswith("[")
    texts = (line.text.strip() for line in file.lines() if line.text and line.text.strip())
    first, second = next(texts, ""), next(texts, "")
    return not second or first.endswith(("{", "[", ","))


def document(file: TextFile) -> Iterator[Row | Problem]:
    """Yield the records of a JSON document, numbered from 1; those of a list are read one after another.

    DataError if it is damaged, for nothing is known of what would follow.
    """
    buffer = JsonDocument(file)
    entries: Iterable[object] = buffer.entries()
    if buffer.peek() != "[":
        (record,) = entries
        records = unwrapped(record)
        entries = [record] if records is None else records
    for number, entry in enumerate(entries, start=1):
        yield _record(number, entry, buffer.position)


def _record(number: int, entry: object, position: int) -> Row | Problem:
    if isinstance(entry, list):
        entry = dict(zip(numbered(len(entry)), entry, strict=True))
    if isinstance(entry, dict):
        return Row(number, entry, position)
    return Problem(number, f"{json_kind(entry)} as an entry of the list", "one JSON object", FIX)


class JsonDocument:
    """Text of a JSON document, of which one value after the other is read and forgotten."""

    def __init__(self, file: TextFile, decoder: json.JSONDecoder | None = None) -> None:
        self._file, self._chunks, self._text, self._next, self._lines = file, file.chunks(), "", 0, 1
        self._decoder, self._number = decoder or _DECODER, 1
        self.position = 0
        self.separator = ""
        """Text between the last value and the one before it; in the end, that after the last value."""
        self.source = ""
        """Text of the last value."""

    def _broken(self, got: str, position: int = 0) -> DataError:
        line = self._lines + self._text.count("\n", 0, self._next + position)
        return Problem(line, got, "one list of objects", CORRECT).error(str(self._file.path))

    def peek(self) -> str:
        """Return the next character that is no white space; empty at the end."""
        while True:
            while self._next < len(self._text):
                if not self._text[self._next].isspace():
                    return self._text[self._next]
                self._pass()
            if not self._more():
                return ""

    def _pass(self) -> None:
        self.separator += self._text[self._next]
        self._next += 1

    def _more(self, size: int = 1) -> bool:
        """Append the next `size` characters of the file, or more; return whether there are any."""
        chunks = []
        while size > 0 and (chunk := next(self._chunks, None)):
            chunks.append(chunk[0])
            size, self.position = size - len(chunk[0]), chunk[1]
        self._lines += self._text.count("\n", 0, self._next)
        self._text, self._next = "".join([self._text[self._next :], *chunks]), 0
        return any(chunks)

    def _value(self) -> object:
        """Return the next value."""
        self.peek()
        while (parsed := self._parsed()) is None or (parsed[1] == len(self._text) and self._more()):
            pass  # a number may go on in the next part
        content, end = parsed
        self.source, self._next = self._text[self._next : end], end
        if len(self.source) > self._file.bounds.record:
            raise self._file.too_long(self._number)
        if self._file.nests_too_deep(self.source):
            raise self._file.too_deep(self._number)
        self._number += 1
        return content

    def _parsed(self) -> tuple[object, int] | None:
        """Return the next value and where it ends; None if it did not end, after reading more of the file.

        The text doubles, so that a long value is not parsed part by part.
        """
        try:
            return self._decoder.raw_decode(self._text, self._next)
        except json.JSONDecodeError as error:
            if len(self._text) - self._next > self._file.bounds.record:
                raise self._file.too_long(self._number) from None
            if not self._more(len(self._text) - self._next):
                raise self._broken(f"a file that is not valid JSON ({error.msg})", error.pos - self._next) from None
            return None
        except RecursionError:
            raise self._file.too_deep(self._number) from None
        except ValueError:  # a number of thousands of digits
            raise self._broken("a file that is not valid JSON") from None

    def entries(self) -> Iterator[object]:
        """Yield the elements of the list, or the document if it is no list."""
        if self.peek() != "[":
            yield self._value()
            self.separator = ""
        else:
            self._pass()
            while (sign := self.peek()) and sign != "]":
                yield self._value()
                self.separator = ""
                if self.peek() == ",":
                    self._pass()
            if not sign:
                raise self._broken("a list without an end")
            self._pass()
        if self.peek():
            raise self._broken("text after the end of the document")


_DECODER = json.JSONDecoder()


def json_object(number: int, text: str, decoder: json.JSONDecoder = _DECODER) -> dict[str, object] | Problem:
    """Return the object in a line of JSON that does not nest too deeply, or the problem why there is none."""
    try:
        record = decoder.decode(text)
    except json.JSONDecodeError as error:
        problem = f"a line that is not valid JSON ({error.msg}, column {error.colno})"
        return Problem(number, problem, "one JSON object", FIX)
    except ValueError:  # a number of thousands of digits
        return Problem(number, "a line that is not valid JSON", "one JSON object", FIX)
    return record if isinstance(record, dict) else Problem(number, json_kind(record), "one JSON object", FIX)


def plain(file: TextFile) -> Iterator[Row | Problem]:
    """Yield each non-blank line as a row with one text."""
    return each(file, lambda number, text, position: Row(number, {COLUMN: text.strip()}, position))


def each(file: TextFile, convert: Callable[[int, str, int], Row | Problem]) -> Iterator[Row | Problem]:
    """Yield `convert(number, text, position)` for each non-blank line; position is the line's end in bytes."""
    for line in file.lines():
        if line.text is None:
            yield file.unread(line)
        elif line.text.strip():
            yield convert(line.number, line.text, line.position)


def shown_names(names: list[str]) -> str:
    """Return column names for an error message.

    A name that may be data of a file without header is shown as its length.
    """
    plain = [name if name and set(name) <= set(_PLAIN_NAME) else f"one of {len(name)} characters" for name in names]
    return ", ".join(plain) or "none"


# Rows of CSV and TSV files: with any delimiter, with or without a header.


@dataclass(frozen=True)
class Dialect:
    """Delimiter, quoting and header of a CSV or TSV file."""

    delimiter: str
    quoted: bool = True
    """Whether quotes may enclose delimiters and line breaks; else only quotes around a complete cell are removed."""
    header: bool = True
    """Whether the first row contains the column names; else they are column_1, column_2, ..."""


def dialect_of(
    file: TextFile, format_: Literal["csv", "tsv"], delimiter: str | None = None, *, header: bool = True
) -> Dialect:
    """Return the dialect of a CSV or TSV file; without a `delimiter`, it is detected."""
    usual = {"csv": ",", "tsv": "\t"}[format_]
    sign = delimiter or find(file, usual, header=header)
    return Dialect(sign, format_ == "csv" or sign != usual or has_quoted_breaks(file, sign), header)


def numbered(width: int) -> list[str]:
    """Return the names of the columns of a table without a header."""
    return [f"column_{number}" for number in range(1, width + 1)]


def column_names(cells: Sequence[str], path: str, line: int) -> list[str]:
    """Return the column names in a header row, stripped of white space; DataError if one occurs twice."""
    names = [name.strip().strip("\ufeff").strip() for name in cells]
    if len(set(names)) < len(names):
        raise TableError.at(f"{path}:{line}", "a column name twice", "different names", "rename one of them")
    return names


@dataclass(frozen=True, slots=True)
class CsvRow:
    """Lines of a CSV or TSV file that are one row; it has no cells if it is blank, or declares the delimiter."""

    lines: Sequence[Line]
    cells: Sequence[str] = ()

    @property
    def number(self) -> int:
        """Return the number of the first line, from 1."""
        return self.lines[0].number


def header(file: TextFile, dialect: Dialect) -> list[str]:
    """Return the column names: of the first row, or numbered; [] for an empty file."""
    for row in records(file, dialect):
        if isinstance(row, Problem):
            raise row.error(str(file.path))
        if row.cells:
            names = column_names(row.cells, str(file.path), row.number)
            return names if dialect.header else numbered(len(names))
    return []


def table(file: TextFile, dialect: Dialect) -> Iterator[Row | Problem]:
    """Yield each row below the header, or its Problem; empty rows are skipped."""
    names = header(file, dialect)
    rows = (row for row in records(file, dialect) if isinstance(row, Problem) or row.cells)
    if dialect.header:
        next(rows, None)
    for row in rows:
        if isinstance(row, Problem):
            yield row
        else:
            yield Row(row.number, dict(zip(names, row.cells, strict=True)), row.lines[-1].position)


def records(file: TextFile, dialect: Dialect) -> Iterator[CsvRow | Problem]:
    """Yield every row with its lines, the header and blank ones too, or its Problem."""
    width = opened = 0  # line of the last row but those in between that do not fit, if a quote is left open in it
    for row in _cells(file, dialect):
        if isinstance(row, Problem) or not row.cells:
            yield row
            continue
        width = width or len(row.cells)
        fits = len(row.cells) == width
        if fits or not opened:
            last = row.cells[-1]
            opened = row.number if not dialect.quoted and last.startswith('"') and last.count('"') % 2 == 1 else 0
        yield row if fits else _misfit(row, width, dialect, opened)


def _misfit(row: CsvRow, expected: int, dialect: Dialect, opened: int) -> Problem:
    """Return the Problem of a row with too few or too many cells, usually caused by a line break in a text."""
    number, count = row.number, len(row.cells)
    header = f"{expected} as in the {'header' if dialect.header else 'first row'}"
    if opened:
        remedy = f"write the line breaks inside the quotes of line {opened} as spaces, or save the file as CSV"
        return Problem(number, f"{count} cells and a quote left open", f"{header}, a row in one line", remedy)
    if dialect.quoted:
        sign = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(dialect.delimiter, f"a {dialect.delimiter!r}")
        return Problem(number, f"{count} cells", header, f"quote cells that hold {sign} or line breaks")
    return Problem(number, f"{count} cells", header, FIX)


class _Feed:
    """Iterator of lines for csv.reader that keeps those of a row and, unlike a generator, continues after an error."""

    def __init__(self, source: Iterator[Line], longest: int) -> None:
        self.lines: list[Line] = []
        self._source, self._longest, self._size = source, longest, 0

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        line = next(self._source)
        self.lines.append(line)
        self._size += len(line.raw)
        if line.text is None:
            raise UnicodeError
        if self._size > self._longest:
            raise OverflowError
        return line.text

    def row(self) -> list[Line]:
        """Return the lines since the last call."""
        lines, self.lines, self._size = self.lines, [], 0
        return lines


def _cells(file: TextFile, dialect: Dialect) -> Iterator[CsvRow | Problem]:
    csv.field_size_limit(sys.maxsize)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE
    lines = file.lines()
    first = next(lines, None)
    if first and declared(first.text or ""):
        yield CsvRow([first])
        first = None
    feed = _Feed(chain([first] if first else [], lines), file.bounds.record)
    reader = csv.reader(feed, delimiter=dialect.delimiter, quoting=quoting, strict=True)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except UnicodeError:
            yield file.unread(feed.row()[-1])
            continue
        except OverflowError:  # as after a quote that is not closed
            raise file.too_long(feed.row()[0].number) from None
        except csv.Error:
            line = feed.row()[0]
            if line.number == 1 and "\r" in (line.text or "").rstrip():
                raise DataError(f"{file.path}: {OLD_MAC}") from None
            problem = "a quote that is not closed, or one inside a cell"
            yield Problem(line.number, problem, "quotes around a whole cell and doubled inside it", FIX)
            continue
        row = feed.row()
        if len(cells) > file.bounds.columns:
            raise TableError.at(
                f"{file.path}:{row[0].number}",
                f"{len(cells):,} columns",
                f"at most {file.bounds.columns:,}",
                file.bounds.remedy("columns"),
            )
        if not any(cell.strip() for cell in cells):
            cells = []
        yield CsvRow(row, cells if dialect.quoted else [unquoted(cell) for cell in cells])


def unquoted(cell: str) -> str:
    """Return a cell without the quotes that a spreadsheet puts around it; quotes within a cell are retained."""
    inner = cell[1:-1]
    quoted = len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell
