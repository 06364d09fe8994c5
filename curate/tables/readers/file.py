"""One file as a source of rows: JSON, CSV, TSV, Excel, Parquet, Arrow, TREC qrels, or a text per line."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from curate.core.config import digest
from curate.core.errors import ConfigError, DataError
from curate.system.files import sha256
from curate.tables.readers import Problem, Row, Table, packed, text_rows, trec, written_marks
from curate.tables.readers import text_rows as delimiter
from curate.tables.readers.encoding import Encoding, detect
from curate.tables.readers.excel import Worksheet
from curate.tables.readers.parquet import Columnar
from curate.tables.readers.text_rows import Dialect

Format = Literal["jsonl", "csv", "tsv", "xlsx", "parquet", "arrow", "trec", "txt"]
ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".xlsx": "xlsx",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".qrels": "trec",
    ".txt": "txt",
}
BINARY = frozenset({"xlsx", "parquet", "arrow"})
"""Formats that are compressed already and need random access."""
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_SAVED = {".xls": ".xlsx", ".xlsm": ".xlsx", ".ods": ".xlsx", ".xz": ".gz", ".zip": ".gz", ".7z": ".gz", ".rar": ".gz"}
"""Unsupported ending -> the one to save such a file with."""


def format_of(path: Path) -> Format:
    """Return the format of a file by its ending, without that of its compression; ConfigError if it is unknown."""
    ending, packing = packed.ending(path)
    format_ = ENDINGS.get(ending)
    if format_ is None or (packing and format_ in BINARY):
        save_as = f"save it as {_SAVED[ending]}, or " if ending in _SAVED else ""
        raise ConfigError(
            f"{path}: found the ending {f'{ending}{packing}' or 'none'!r}, expected one of {', '.join(ENDINGS)}, "
            f"those of text also with {', '.join(packed.CODECS)}; {save_as}"
            "name the format with ingest.queries.format, ingest.corpus.format or ingest.qrels.format"
        )
    return format_


@dataclass(frozen=True)
class File:
    """A file of rows."""

    path: Path
    format: Format
    encoding: Encoding | Literal["auto"] = "auto"
    delimiter: str | None = None
    """Delimiter of a CSV or TSV file; detected if None."""
    option: str | None = "ingest.encoding"
    """Setting that names the encoding, for errors; None if there is none."""
    has_header: bool = True
    """Whether the first row of a CSV, TSV or Excel file names its columns."""
    sheet: str | None = None
    """Of an Excel file."""
    table: Table | None = None
    """Table in the file; None for ratings."""
    part: str = ""
    """Prefix of the line number where that is the id: `2-` for the second of several files."""

    @property
    def place(self) -> str:
        """Return the path as it was given."""
        return str(self.path)

    @property
    def name(self) -> str:
        """Return the base name."""
        return self.path.name

    @cached_property
    def kind(self) -> Format:
        """Return the format, TREC's where qrels have no header though their ending is that of text."""
        plain = self.table == "qrels" and self.format in ("tsv", "txt") and self.has_header and not self.delimiter
        return "trec" if plain and trec.is_qrels(self.path, self.text_encoding) else self.format

    @cached_property
    def text_encoding(self) -> Encoding:
        """Return the encoding that was named, else the one that is detected."""
        return detect(self.path, self.option) if self.encoding == "auto" else self.encoding

    @cached_property
    def dialect(self) -> Dialect:
        """Return how the cells of a CSV or TSV file are divided."""
        usual = _DELIMITERS[self.format]
        sign = self.delimiter or delimiter.find(self.path, self.text_encoding, usual, header=self.has_header)
        return Dialect(sign, self.format == "csv" or sign != usual, self.has_header)

    @cached_property
    def workbook(self) -> Worksheet:
        """Return the sheet of an Excel file."""
        option = f"ingest.{self.table}.sheet" if self.table else "--sheet"
        return Worksheet(self.path, self.sheet, option, (self.table,) if self.table else (), self.has_header)

    @property
    def _columnar(self) -> Columnar | None:
        return Columnar(self.path, self.format) if self.format in ("parquet", "arrow") else None

    @property
    def _export(self) -> Path | None:
        return written_marks.beside(self.path) if self.table == "queries" else None

    def size(self) -> int:
        """Return the bytes of a text file, or the rows of a Parquet, Arrow or Excel file."""
        if self.format == "xlsx":
            return self.workbook.size()
        return self._columnar.size() if self._columnar else self.path.stat().st_size

    def header(self) -> list[str] | None:
        """Return the names of the columns; None for JSON."""
        if self._columnar:
            return self._columnar.columns()
        match self.kind:
            case "jsonl":
                return None
            case "txt":
                return [text_rows.COLUMN]
            case "trec":
                return [*trec.COLUMNS]
            case "xlsx":
                return self.workbook.columns()
            case _:
                return text_rows.header(self.path, self.text_encoding, self.dialect)

    def rows(self, wanted: Collection[str] = ()) -> Iterator[Row | Problem]:
        """Yield the rows in order; of a Parquet or Arrow file only the `wanted` columns, all if none is named."""
        rows = self._columnar.rows(wanted) if self._columnar else self._rows()
        if self._export:
            rows = written_marks.marked(rows, self._export)
        if not self.part:
            return rows
        return (replace(row, part=self.part) if isinstance(row, Row) else row for row in rows)

    def _rows(self) -> Iterator[Row | Problem]:
        match self.kind:
            case "jsonl":
                is_list = packed.ending(self.path)[0] == ".json" and text_rows.is_list(self.path, self.text_encoding)
                return (text_rows.json_list if is_list else text_rows.jsonl)(self.path, self.text_encoding)
            case "txt":
                return text_rows.plain(self.path, self.text_encoding)
            case "trec":
                return trec.rows(self.path, self.text_encoding)
            case "xlsx":
                return self.workbook.rows()
            case _:
                return text_rows.table(self.path, self.text_encoding, self.dialect)

    def digest(self) -> str:
        """Return the SHA-256 of the content; DataError if the file cannot be read."""
        try:
            state = self.path.stat()
            content = _digest(self.path, state.st_size, state.st_mtime_ns)
            return digest([content, sha256(self._export / written_marks.FILE)]) if self._export else content
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror}); check the path and its rights") from error


@lru_cache(maxsize=256)
def _digest(path: Path, _size: int, _changed: int) -> str:
    return sha256(path)
