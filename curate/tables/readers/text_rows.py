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
from itertools import islice
from typing import Literal

from curate.core.config import kind_of
from curate.core.errors import DataError
from curate.tables.readers import Problem, Row
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
    return each(file, lambda number, text, position: _object(number, text.rstrip(), position))


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
    buffer = _Buffer(file)
    if buffer.peek() == "[":
        entries: Iterable[object] = buffer.elements()
    else:
        whole = buffer.value()
        records = unwrapped(whole)
        entries = [whole] if records is None else records
    for number, entry in enumerate(entries, start=1):
        yield _record(number, entry, buffer.at)


def _record(number: int, entry: object, position: int) -> Row | Problem:
    if isinstance(entry, list):
        entry = dict(zip(numbered(len(entry)), entry, strict=True))
    if isinstance(entry, dict):
        return Row(number, entry, position)
    return Problem(number, f"{kind_of(entry)} as an entry of the list", "one JSON object", FIX)


class _Buffer:
    """Text of a JSON document, of which one value after the other is read and forgotten."""

    def __init__(self, file: TextFile) -> None:
        self._file, self._chunks, self._text, self._next, self._lines = file, file.chunks(), "", 0, 1
        self.at = 0

    def _broken(self, found: str, position: int = 0) -> DataError:
        line = self._lines + self._text.count("\n", 0, self._next + position)
        return DataError(Problem(line, found, "one list of objects", CORRECT).sentence(str(self._file.path)))

    def peek(self) -> str:
        """Return the next character that is no white space; empty at the end."""
        while True:
            while self._next < len(self._text):
                if not self._text[self._next].isspace():
                    return self._text[self._next]
                self._next += 1
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Append the next part of the file; return whether there is one."""
        text, self.at = next(self._chunks, ("", self.at))
        self._lines += self._text.count("\n", 0, self._next)
        self._text, self._next = self._text[self._next :] + text, 0
        return bool(text)

    def value(self) -> object:
        """Return the next value."""
        self.peek()
        while True:
            try:
                content, end = _DECODER.raw_decode(self._text, self._next)
            except json.JSONDecodeError as error:
                # a value is tried again when the text has doubled, so that a long one is not parsed part by part
                size = 2 * (len(self._text) - self._next)
                more = self._more()
                while more and len(self._text) < size and self._more():
                    pass
                if len(self._text) > self._file.bounds.record:
                    raise DataError(self._file.too_long(self._lines).sentence(str(self._file.path))) from None
                if not more:
                    raise self._broken(f"a file that is not valid JSON ({error.msg})", error.pos - self._next) from None
            except (ValueError, RecursionError):  # a number of thousands of digits; brackets nested without end
                raise self._broken("a file that is not valid JSON") from None
            else:
                if end == len(self._text) and self._more():
                    continue  # a number may go on
                if end - self._next > self._file.bounds.record:
                    raise DataError(self._file.too_long(self._lines).sentence(str(self._file.path)))
                self._next = end
                return content

    def elements(self) -> Iterator[object]:
        """Yield the elements of a list."""
        self._next += 1
        while (sign := self.peek()) and sign != "]":
            yield self.value()
            if self.peek() == ",":
                self._next += 1
        if not sign:
            raise self._broken("a list without an end")


_DECODER = json.JSONDecoder()


def _object(number: int, text: str, position: int) -> Row | Problem:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"a line that is not valid JSON ({error.msg}, column {error.colno})"
        return Problem(number, problem, "one JSON object", FIX)
    except (ValueError, RecursionError):  # a number of thousands of digits; brackets nested without end
        return Problem(number, "a line that is not valid JSON", "one JSON object", FIX)
    if not isinstance(record, dict):
        return Problem(number, kind_of(record), "one JSON object", FIX)
    return Row(number, record, position)


def plain(file: TextFile) -> Iterator[Row | Problem]:
    """Yield each non-blank line as a row with one text."""
    return each(file, lambda number, text, position: Row(number, {COLUMN: text.strip()}, position))


def each(file: TextFile, convert: Callable[[int, str, int], Row | Problem]) -> Iterator[Row | Problem]:
    """Yield `convert(number, text, position)` for each non-blank line; position is the line's end in bytes."""
    for line in file.lines():
        if line.text is None:
            yield file.unread(line)
        elif line.text.strip():
            yield convert(line.number, line.text, line.at)


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


def numbered(width: int) -> list[str]:
    """Return the names of the columns of a table without a header."""
    return [f"column_{number}" for number in range(1, width + 1)]


def column_names(cells: Sequence[str], path: str, line: int) -> list[str]:
    """Return the column names in a header row, stripped of white space; DataError if one occurs twice."""
    names = [name.strip().strip("\ufeff").strip() for name in cells]
    if len(set(names)) < len(names):
        raise DataError(f"{path}:{line}: found a column name twice, expected different ones; rename one of them")
    return names


def header(file: TextFile, dialect: Dialect) -> list[str]:
    """Return the column names: of the first row, or numbered; [] for an empty file."""
    for row in _cells(file, dialect):
        if isinstance(row, Problem):
            raise DataError(row.sentence(str(file.path)))
        return column_names(row[1], str(file.path), row[0]) if dialect.header else numbered(len(row[1]))
    return []


def table(file: TextFile, dialect: Dialect) -> Iterator[Row | Problem]:
    """Yield each row below the header, or its Problem; empty rows are skipped."""
    names = header(file, dialect)
    cells = _cells(file, dialect)
    if dialect.header:
        next(cells, None)
    opened = 0  # line of the last row but those in between that do not fit, if a quote is left open in it
    for row in cells:
        if isinstance(row, Problem):
            yield row
            continue
        fits = len(row[1]) == len(names)
        if fits or not opened:
            last = row[1][-1]
            opened = row[0] if not dialect.quoted and last.startswith('"') and last.count('"') % 2 == 1 else 0
        if fits:
            yield Row(row[0], dict(zip(names, row[1], strict=True)), row[2])
        else:
            yield _misfit(row[0], len(row[1]), len(names), dialect, opened)


def _misfit(number: int, count: int, expected: int, dialect: Dialect, opened: int) -> Problem:
    """Return the Problem of a row with too few or too many cells, usually caused by a line break in a text."""
    header = f"{expected} as in the {'header' if dialect.header else 'first row'}"
    if opened:
        remedy = f"write the line breaks inside the quotes of line {opened} as spaces, or save the file as CSV"
        return Problem(number, f"{count} cells and a quote left open", f"{header}, a row in one line", remedy)
    if dialect.quoted:
        sign = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(dialect.delimiter, f"a {dialect.delimiter!r}")
        return Problem(number, f"{count} cells", header, f"quote cells that hold {sign} or line breaks")
    return Problem(number, f"{count} cells", header, FIX)


class _Feed:
    """Iterator of lines for csv.reader that, unlike a generator, can continue after an error."""

    def __init__(self, source: Iterator[Line]) -> None:
        self.line, self._source = Line(0, "", 0), source

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        self.line = next(self._source)
        if self.line.text is None:
            raise UnicodeError
        return self.line.text


def _cells(file: TextFile, dialect: Dialect) -> Iterator[tuple[int, list[str], int] | Problem]:
    csv.field_size_limit(sys.maxsize)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE
    feed = _Feed(line for line in file.lines() if line.number > 1 or not declared(line.text or ""))
    reader = csv.reader(feed, delimiter=dialect.delimiter, quoting=quoting, strict=True)
    while True:
        begin = feed.line.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except UnicodeError:
            yield file.unread(feed.line)
            continue
        except csv.Error:
            if feed.line.number == 1 and "\r" in (feed.line.text or "").rstrip():
                raise DataError(f"{file.path}: {OLD_MAC}") from None
            problem = "a quote that is not closed, or one inside a cell"
            yield Problem(begin, problem, "quotes around a whole cell and doubled inside it", FIX)
            continue
        if len(cells) > file.bounds.columns:
            raise DataError(
                f"{file.path}:{begin}: found {len(cells):,} columns, expected at most {file.bounds.columns:,}; "
                f"{file.bounds.remedy('columns')}"
            )
        if any(cell.strip() for cell in cells):
            yield begin, cells if dialect.quoted else [unquoted(cell) for cell in cells], feed.line.at


def unquoted(cell: str) -> str:
    """Return a cell without the quotes that a spreadsheet puts around it; quotes within a cell are retained."""
    inner = cell[1:-1]
    quoted = len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell
