"""Rows of JSONL, CSV and TSV files, and of files with a text a line."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from curate.config import kind_of
from curate.errors import DataError
from curate.readers import Problem, Row
from curate.readers.encoding import OLD_MAC, Encoding, Line, lines

FIX = "correct the line, or set ingest.on_error: drop"
COLUMN = "text"
"""The one column of a file with a text a line."""
_PLAIN_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-."


def jsonl(path: Path, encoding: Encoding) -> Iterator[Row | Problem]:
    """Return the objects of all lines that are not blank, as they are read."""
    return _each(path, encoding, lambda number, text, at: _object(number, text.rstrip(), at))


def _object(number: int, text: str, at: int) -> Row | Problem:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        found = f"a line that is not valid JSON ({error.msg}, column {error.colno})"
        return Problem(number, found, "one JSON object", FIX)
    except (ValueError, RecursionError):  # a number of thousands of digits; brackets nested without end
        return Problem(number, "a line that is not valid JSON", "one JSON object", FIX)
    if not isinstance(value, dict):
        return Problem(number, kind_of(value), "one JSON object", FIX)
    return Row(number, value, at)


def plain(path: Path, encoding: Encoding) -> Iterator[Row | Problem]:
    """Return the texts of all lines that are not blank, as they are read."""
    return _each(path, encoding, lambda number, text, at: Row(number, {COLUMN: text.strip()}, at))


def _each(path: Path, encoding: Encoding, made: Callable[[int, str, int], Row | Problem]) -> Iterator[Row | Problem]:
    with path.open("rb") as stream:
        for line in lines(stream, encoding):
            if line.text is None:
                yield undecodable(line.number, encoding)
            elif line.text.strip():
                yield made(line.number, line.text, line.at)


def undecodable(number: int, encoding: Encoding) -> Problem:
    """Return the problem of a line whose bytes are not text in the file's encoding."""
    found = f"bytes that are not {encoding.upper()}"
    return Problem(number, found, "text in one encoding", "save the file as UTF-8, or name it with ingest.encoding")


def header(path: Path, encoding: Encoding, delimiter: str) -> list[str]:
    """Return the names in the first row of a CSV or TSV file, without white space around them."""
    for row in _cells(path, encoding, delimiter):
        if isinstance(row, Problem):
            raise DataError(row.sentence(str(path)))
        names = [name.strip() for name in row[1]]
        if len(set(names)) < len(names):
            raise DataError(f"{path}:{row[0]}: found a column name twice, expected different ones; rename one of them")
        return names
    return []


def table(path: Path, encoding: Encoding, delimiter: str) -> Iterator[Row | Problem]:
    """Yield every row below the header; rows without any content are passed over."""
    names = header(path, encoding, delimiter)
    cells = _cells(path, encoding, delimiter)
    next(cells, None)
    opened = 0  # line of the last row but those in between that do not fit, if a quote is left open in it
    for row in cells:
        if isinstance(row, Problem):
            yield row
            continue
        fits = len(row[1]) == len(names)
        if fits or not opened:
            opened = row[0] if delimiter == "\t" and _left_open(row[1][-1]) else 0
        if fits:
            yield Row(row[0], dict(zip(names, row[1], strict=True)), row[2])
        else:
            yield _misfit(row[0], len(row[1]), len(names), delimiter, opened)


def _left_open(cell: str) -> bool:
    return cell.startswith('"') and cell.count('"') % 2 == 1


def _misfit(number: int, found: int, expected: int, delimiter: str, opened: int) -> Problem:
    """Return the problem of a row with too few or too many cells; most often a line break in a text made it."""
    header = f"{expected} as in the header"
    if opened:
        remedy = f"write the line breaks inside the quotes of line {opened} as spaces, or save the file as CSV"
        return Problem(number, f"{found} cells and a quote left open", f"{header}, a row in one line", remedy)
    if delimiter == ",":
        return Problem(number, f"{found} cells", header, f"quote cells that hold commas or line breaks ({FIX})")
    return Problem(number, f"{found} cells", header, FIX)


def shown_names(names: list[str]) -> str:
    """Return column names for an error; one that may be data of a file without header is shown as its length."""
    plain = [name if name and set(name) <= set(_PLAIN_NAME) else f"one of {len(name)} characters" for name in names]
    return ", ".join(plain) or "none"


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


def _cells(path: Path, encoding: Encoding, delimiter: str) -> Iterator[tuple[int, list[str], int] | Problem]:
    csv.field_size_limit(sys.maxsize)
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    with path.open("rb") as stream:
        feed = _Feed(lines(stream, encoding))
        reader = csv.reader(feed, delimiter=delimiter, quoting=quoting, strict=True)
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
                plain = [unquoted(cell) for cell in cells] if delimiter == "\t" else cells
                yield begin, plain, feed.line.at


def unquoted(cell: str) -> str:
    """Undo the quotes that a spreadsheet puts around a TSV cell; a cell that merely holds quotes stays as it is."""
    inner = cell[1:-1]
    quoted = len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell
