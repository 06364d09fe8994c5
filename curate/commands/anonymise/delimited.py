"""Masking of CSV and TSV: only cells whose text changes are rewritten; quoting and line ends stay."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from curate.commands.anonymise.pieces import Fields, Piece, RawText
from curate.pii.masking import Masked
from curate.tables.readers import Problem
from curate.tables.readers.text_rows import CsvRow, Dialect, dialect_of, records


@dataclass(frozen=True)
class Cells(Piece):
    """A row of a CSV or TSV file, which may have several lines, and its columns of texts."""

    row: CsvRow
    columns: Sequence[tuple[int, str]]
    """(index, name) per column."""
    dialect: Dialect

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return (name, cell) of every column of texts."""
        return [(name, self.row.cells[index]) for index, name in self.columns]

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the bytes of the row with masked cells; a cell is quoted if it was, or if its new text requires it."""
        text = "".join(line.text or "" for line in self.row.lines)
        new = {index: cell.text for (index, _), cell in zip(self.columns, masked, strict=True)}
        pieces, copied = [], 0
        for index, (start, end) in enumerate(self._extents(text)):
            old = self.row.cells[index]
            if (cell := new.get(index, old)) != old:
                was_quoted = text[start:end] != old
                if was_quoted or (self.dialect.quoted and cell.startswith('"')) or self.dialect.delimiter in cell:
                    cell = '"' + cell.replace('"', '""') + '"'
                pieces += [text[copied:start], cell]
                copied = end
        return self.text.encoded("".join([*pieces, text[copied:]]), self.line)

    def _extents(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of each cell in the row's text, quotes included."""
        plain = rf"[^{re.escape(self.dialect.delimiter)}\r\n]*"
        pattern = re.compile(rf'"(?:[^"]|"")*"|{plain}' if self.dialect.quoted else plain)
        position = 0
        for _ in self.row.cells:
            match = pattern.match(text, position)
            assert match is not None  # it matches the empty text
            yield match.span()
            position = match.end() + 1


def pieces(text: RawText, fields: Fields, kind: Literal["csv", "tsv"]) -> Iterator[Piece | Problem]:
    """Yield the header and every row; DataError if the header lacks a field."""
    dialect = dialect_of(text.sample, kind)
    columns: list[tuple[int, str]] = []
    for row in records(text.file, dialect):
        if isinstance(row, Problem):
            yield row
            continue
        raw = b"".join(line.raw for line in row.lines)
        if columns and row.cells:
            yield Cells(text, row.number, raw, row, columns, dialect)
            continue
        if row.cells:
            names = [name.strip() for name in row.cells]
            chosen = fields.columns(names, f"{text.file.path}:{row.number}")
            columns = [(index, name) for index, name in enumerate(names) if name in chosen]
        yield Piece(text, row.number, raw)
