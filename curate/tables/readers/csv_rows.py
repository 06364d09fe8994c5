"""Rows of CSV and TSV files: with any delimiter, with or without a header."""

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from curate.core.errors import DataError
from curate.tables.readers import Problem, Row
from curate.tables.readers.delimiter import declared
from curate.tables.readers.encoding import OLD_MAC, Encoding, Line, lines
from curate.tables.readers.packed import opened
from curate.tables.readers.text import FIX, undecodable


@dataclass(frozen=True)
class Dialect:
    """How the cells of a file are divided."""

    delimiter: str
    quoted: bool = True
    """Quotes enclose a cell, which may then hold line breaks; else they are text, but for those around a whole cell."""
    header: bool = True
    """The first row names the columns; else they are column_1, column_2, ..."""


def numbered(width: int) -> list[str]:
    """Return the names of the columns of a table without a header."""
    return [f"column_{number}" for number in range(1, width + 1)]


def column_names(cells: Sequence[str], place: str, line: int) -> list[str]:
    """Return the names in a header, without white space around them; DataError if one is there twice."""
    names = [name.strip().strip("\ufeff").strip() for name in cells]
    if len(set(names)) < len(names):
        raise DataError(f"{place}:{line}: found a column name twice, expected different ones; rename one of them")
    return names


def header(path: Path, encoding: Encoding, dialect: Dialect) -> list[str]:
    """Return the names of the columns."""
    for row in _cells(path, encoding, dialect):
        if isinstance(row, Problem):
            raise DataError(row.sentence(str(path)))
        return column_names(row[1], str(path), row[0]) if dialect.header else numbered(len(row[1]))
    return []


def table(path: Path, encoding: Encoding, dialect: Dialect) -> Iterator[Row | Problem]:
    """Yield every row below the header; rows without any content are passed over."""
    names = header(path, encoding, dialect)
    cells = _cells(path, encoding, dialect)
    if dialect.header:
        next(cells, None)
    opened = 0  # line of the last row but those in between that do not fit, if a quote is left open in it
    for row in cells:
        if isinstance(row, Problem):
            yield row
            continue
        fits = len(row[1]) == len(names)
        if fits or not opened:
            opened = row[0] if not dialect.quoted and _left_open(row[1][-1]) else 0
        if fits:
            yield Row(row[0], dict(zip(names, row[1], strict=True)), row[2])
        else:
            yield _misfit(row[0], len(row[1]), len(names), dialect, opened)


def _left_open(cell: str) -> bool:
    return cell.startswith('"') and cell.count('"') % 2 == 1


def _misfit(number: int, found: int, expected: int, dialect: Dialect, opened: int) -> Problem:
    """Return the problem of a row with too few or too many cells; most often a line break in a text made it."""
    header = f"{expected} as in the {'header' if dialect.header else 'first row'}"
    if opened:
        remedy = f"write the line breaks inside the quotes of line {opened} as spaces, or save the file as CSV"
        return Problem(number, f"{found} cells and a quote left open", f"{header}, a row in one line", remedy)
    if dialect.quoted:
        sign = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(dialect.delimiter, f"a {dialect.delimiter!r}")
        return Problem(number, f"{found} cells", header, f"quote cells that hold {sign} or line breaks ({FIX})")
    return Problem(number, f"{found} cells", header, FIX)


class _Feed:
    """What csv.reader takes lines from; unlike a generator it goes on after it has raised."""

    def __init__(self, source: Iterator[Line]) -> None:
        self.line, self._source = Line(0, "", 0), source

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        self.line = next(self._source)
        if self.line.text is None:
            raise UnicodeError
        return self.line.text


def _cells(path: Path, encoding: Encoding, dialect: Dialect) -> Iterator[tuple[int, list[str], int] | Problem]:
    csv.field_size_limit(sys.maxsize)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE
    with opened(path) as stream:
        read = lines(stream, encoding)
        feed = _Feed(line for line in read if line.number > 1 or not declared(line.text or ""))
        reader = csv.reader(feed, delimiter=dialect.delimiter, quoting=quoting, strict=True)
        while True:
            begin = feed.line.number + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except UnicodeError:
                yield undecodable(feed.line.number, encoding)
                continue
            except csv.Error:
                if feed.line.number == 1 and "\r" in (feed.line.text or "").rstrip():
                    raise DataError(f"{path}: {OLD_MAC}") from None
                found = "a quote that is not closed, or one inside a cell"
                yield Problem(begin, found, "quotes around a whole cell and doubled inside it", FIX)
                continue
            if any(cell.strip() for cell in cells):
                yield begin, cells if dialect.quoted else [unquoted(cell) for cell in cells], feed.line.at


def unquoted(cell: str) -> str:
    """Undo the quotes that a spreadsheet puts around a TSV cell; a cell that merely holds quotes stays as it is."""
    inner = cell[1:-1]
    quoted = len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell
