"""Masking of CSV and TSV: only cells whose text changes are rewritten; quoting and line ends stay."""

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from curate.commands.anonymise.raw_lines import FIX, Fields, RawLine, Script
from curate.core.errors import DataError
from curate.pii.masking import Masked
from curate.tables.readers import Problem
from curate.tables.readers.encoding import OLD_MAC
from curate.tables.readers.text_rows import shown_names, unquoted

DELIMITERS = {"csv": (",", ";", "\t", "|"), "tsv": ("\t",)}
"""Format -> candidate delimiters; the first with which the header contains the fields is used."""
_LONGEST = 1 << 28
"""Maximum bytes of a row, since after an unclosed quote the rest of the file is one row."""


@dataclass(slots=True)
class Cells:
    """A row of a CSV or TSV file, which may have several lines, and its columns of texts."""

    script: Script
    line: int
    raw: bytes
    text: str
    cells: Sequence[str]
    columns: Sequence[tuple[int, str]] = ()
    """(index, name) per column; empty for the header and for blank rows."""
    delimiter: str = ","
    quotes: bool = True
    """Whether cells may be quoted, as in CSV."""
    numbers: int = 0

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return (name, cell) of every column of texts."""
        return [(name, self.cells[index]) for index, name in self.columns]

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the bytes of the row with masked cells; a cell is quoted if it was, or if its new text requires it."""
        new = {index: cell.text for (index, _), cell in zip(self.columns, masked, strict=True)}
        pieces, copied = [], 0
        for index, (start, end) in enumerate(self._extents()):
            if new.get(index, self.cells[index]) != self.cells[index]:
                cell, was_quoted = new[index], self.text[start:end] != self.cells[index]
                if was_quoted or (self.quotes and cell.startswith('"')) or self.delimiter in cell:
                    cell = '"' + cell.replace('"', '""') + '"'
                pieces += [self.text[copied:start], cell]
                copied = end
        return self.script.rewritten("".join([*pieces, self.text[copied:]]), self.line)

    def _extents(self) -> list[tuple[int, int]]:
        """Return (start, end) of each cell in the row's text, quotes included."""
        plain = rf"[^{re.escape(self.delimiter)}\r\n]*"
        pattern = re.compile(rf'"(?:[^"]|"")*"|{plain}' if self.quotes else plain)
        extents, position = [], 0
        for _ in self.cells:
            match = pattern.match(self.text, position)
            assert match is not None  # it matches the empty text
            extents.append(match.span())
            position = match.end() + 1
        return extents


class _Feed:
    """Line source of csv.reader that keeps the lines of the current row and can continue after an error."""

    def __init__(self, lines: Iterator[RawLine]) -> None:
        self.taken: list[RawLine] = []
        self._lines, self._size = lines, 0

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.taken.append(line)
        self._size += len(line.raw)
        if line.text is None:
            raise UnicodeError
        if self._size > _LONGEST:
            raise csv.Error
        return line.text

    def row(self) -> list[RawLine]:
        """Return the lines that csv.reader has read since the last call: those of the current row."""
        lines, self.taken, self._size = self.taken, [], 0
        return lines


def pieces(
    lines: Iterator[RawLine], script: Script, fields: Fields, kind: Literal["csv", "tsv"]
) -> Iterator[Cells | Problem]:
    """Yield the header and every row; DataError if the header lacks a field."""
    csv.field_size_limit(sys.maxsize)
    above: list[RawLine] = []
    for line in lines:
        above.append(line)
        if line.text is None or line.text.strip():
            break
    if not above or not (above[-1].text or "").strip():
        for line in above:
            text = line.text
            yield script.undecodable(line.number) if text is None else Cells(script, line.number, line.raw, text, ())
        return
    delimiter = _delimiter(above[-1], fields, kind, script.place)
    columns: list[tuple[int, str]] = []
    width = 0
    for row in _rows(_Feed(chain(above, lines)), script, delimiter, kind):
        if isinstance(row, Problem) or not any(cell.strip() for cell in row.cells):
            yield row
        elif not width:
            width = len(row.cells)
            columns = [(index, name.strip()) for index, name in enumerate(row.cells) if name.strip() in fields.names]
            yield row
        elif len(row.cells) != width:
            yield Problem(row.line, f"{len(row.cells)} cells", f"{width} as in the header", f"quote it, {FIX}")
        else:
            row.columns = columns
            yield row


def _delimiter(head: RawLine, fields: Fields, kind: Literal["csv", "tsv"], path: str) -> str:
    """Return the first delimiter with which the header contains the fields; DataError if there is none."""
    read: dict[str, list[str]] = {}
    if "\r" in (head.text or "").rstrip():
        raise DataError(f"{path}: {OLD_MAC}")
    for delimiter in DELIMITERS[kind]:
        cells = next(csv.reader([head.text or ""], delimiter=delimiter))
        read[delimiter] = [cell.strip() for cell in cells]
    needed = set(fields.names) - fields.optional
    for delimiter, names in read.items():
        if needed <= set(names) and set(names) & set(fields.names):
            return delimiter
    names = max(read.values(), key=len)
    lacking = ", ".join(sorted(needed - set(names)) or fields.names)
    raise DataError(
        f"{path}:{head.number}: found the columns {shown_names(names)}, expected {lacking}; name the column of "
        "the texts with --field"
    )


def _rows(feed: _Feed, script: Script, delimiter: str, kind: Literal["csv", "tsv"]) -> Iterator[Cells | Problem]:
    quoting: Literal[0, 3] = csv.QUOTE_NONE if kind == "tsv" else csv.QUOTE_MINIMAL
    reader = csv.reader(feed, delimiter=delimiter, quoting=quoting, strict=True)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except UnicodeError:
            yield script.undecodable(feed.row()[-1].number)
            continue
        except csv.Error:
            problem = "a quote that is not closed, or one inside a cell"
            yield Problem(feed.row()[0].number, problem, "quotes around a whole cell and doubled inside it", FIX)
            continue
        lines = feed.row()
        raw, text = b"".join(line.raw for line in lines), "".join(line.text or "" for line in lines)
        values = [unquoted(cell) for cell in cells] if kind == "tsv" else cells
        yield Cells(script, lines[0].number, raw, text, values, (), delimiter, quotes=kind == "csv")
