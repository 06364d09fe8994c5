"""A file as a source of rows: JSON, CSV, TSV, Excel, Parquet, Arrow, TREC qrels, or plain text (a text per line)."""

import codecs
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Literal

from curate.core.config import digest
from curate.core.errors import ConfigError, DataError
from curate.system.files import read_table, sha256
from curate.tables.readers import Problem, Row, Table, forms, tagged, text_rows
from curate.tables.readers import encoding as packed
from curate.tables.readers.encoding import BOUNDS, Bounds, Encoding, TextFile, detect
from curate.tables.readers.excel import Worksheet
from curate.tables.readers.items import NAMES, integer_form, reached
from curate.tables.readers.parquet import Columnar
from curate.tables.readers.roles import names_table, roles
from curate.tables.readers.text_rows import FIX, Dialect, each

MARKS = "sources.parquet"
_MANIFEST = "MANIFEST.json"


def beside(queries: Path) -> Path | None:
    """Return the folder of the export that contains a queries file; None if it has no table `sources.parquet`."""
    folders = (queries.parent, queries.parent.parent)  # of BEIR, of a task of MTEB
    return next((folder for folder in folders if (folder / _MANIFEST).is_file() and (folder / MARKS).is_file()), None)


def marked(rows: Iterable[Row | Problem], export: Path) -> Iterator[Row | Problem]:
    """Yield the rows of queries with the query's author, as recorded in the export, in the column `source`.

    A row without a record is unchanged.
    """
    marks = dict(read_table(export, Path(MARKS).stem).select("query_id", "source").iter_rows())
    for row in rows:
        cells = () if isinstance(row, Problem) else (reached(row.values, name) for name in NAMES["queries"]["id"])
        mark = next((marks[query_id] for values in cells for query_id in values if query_id in marks), None)
        yield replace(row, values={**row.values, "source": mark}) if mark and isinstance(row, Row) else row


# Qrels as TREC writes them: query, iteration, document and grade, with white space between and without a header.

COLUMNS = ("query-id", "iteration", "corpus-id", "score")
_BLANK = 100


def is_qrels(file: TextFile) -> bool:
    """Return whether the first non-blank line is a line of TREC qrels: four words, the last a whole number or `1.0`."""
    words = ((line.text or "").split() for line in islice(file.lines(), _BLANK))
    first = next(filter(None, words), [])
    return len(first) == len(COLUMNS) and integer_form(first[-1].lstrip("+-")).isdecimal()


def qrels_rows(file: TextFile) -> Iterator[Row | Problem]:
    """Yield each non-blank line of TREC qrels, or its Problem."""

    def converted(number: int, text: str, position: int) -> Row | Problem:
        words = text.split()
        if len(words) == len(COLUMNS):
            return Row(number, dict(zip(COLUMNS, words, strict=True)), position)
        return Problem(number, f"{len(words)} words", "four as in TREC qrels: query 0 document grade", FIX)

    return each(file, converted)


# One file as a source of rows: JSON, CSV, TSV, Excel, Parquet, Arrow, TREC qrels, or a text per line.

Format = Literal["jsonl", "csv", "tsv", "xlsx", "parquet", "arrow", "trec", "tagged", "txt"]
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
    ".trectext": "tagged",
    ".trec": "tagged",
    ".sgml": "tagged",
    ".sgm": "tagged",
    ".xml": "tagged",
    ".txt": "txt",
}
BINARY = frozenset({"xlsx", "parquet", "arrow"})
"""Formats that need random access to the file, so that a compressed file of them is not read."""
_SAVED = {".xls": ".xlsx", ".xlsm": ".xlsx", ".ods": ".xlsx", ".xz": ".gz", ".zip": ".gz", ".7z": ".gz", ".rar": ".gz"}
"""Unsupported file extension -> extension to suggest instead."""


def format_of(path: Path) -> Format:
    """Return the format of a file by its extension, ignoring that of a compression, else by its content.

    ConfigError if neither tells it.
    """
    ending, packing = packed.ending(path)
    format_ = ENDINGS.get(ending) or (_by_content(path) if path.is_file() and ending not in _SAVED else None)
    if format_ is None or (packing and format_ in BINARY):
        save_as = f"save it as {_SAVED[ending]}, or " if ending in _SAVED else ""
        raise ConfigError(
            f"{path}: found the ending {f'{ending}{packing}' or 'none'!r}, expected one of {', '.join(ENDINGS)}, "
            f"those of text also with {', '.join(packed.COMPRESSIONS)}; {save_as}"
            "name the format with ingest.queries.format, ingest.corpus.format or ingest.qrels.format"
        )
    return format_


_MAGIC: Mapping[bytes, Format] = {b"PAR1": "parquet", b"ARROW1": "arrow"}


def _by_content(path: Path) -> Format | None:
    """Return the format of a file without a known extension; None for prose, and for bytes that are no text."""
    with packed.opened(path) as stream:
        head = stream.read(1 << 12)
    if format_ := next((format_ for magic, format_ in _MAGIC.items() if head.startswith(magic)), None):
        return format_
    if b"\0" in head and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    text = TextFile(path, detect(path, None))
    first = next((line.text.strip() for line in text.lines() if line.text and line.text.strip()), "")
    if first.startswith("<"):
        return "tagged" if tagged.block(text) else None
    rows = list(islice(text_rows.jsonl(text), _BLANK))
    if rows and all(isinstance(row, Row) for row in rows):
        return "jsonl"
    return "csv" if text_rows.is_regular(text) else None


@dataclass(frozen=True)
class File:
    """A file as a source of rows of one table."""

    path: Path
    format: Format
    encoding: Encoding | Literal["auto"] = "auto"
    delimiter: str | None = None
    """Delimiter of a CSV or TSV file; detected if None."""
    option: str | None = "ingest.encoding"
    """Setting that names the encoding, for error messages; None if there is none."""
    has_header: bool = True
    """Whether the first row of a CSV, TSV or Excel file names its columns."""
    sheet: str | None = None
    """Name of the sheet of an Excel file; None to choose it."""
    table: Table | None = None
    """Table that the file holds; None for ratings."""
    bounds: Bounds = BOUNDS
    chat: forms.Chat | None = None
    """Columns of a file with a row per utterance."""
    both: bool = False
    """Whether the file was given for queries and for documents."""
    line_prefix: str = ""
    """Prefix of the line number if line numbers serve as ids: `2-` for the second of several files."""

    @property
    def location(self) -> str:
        """Return the path as given."""
        return str(self.path)

    @property
    def name(self) -> str:
        """Return the base name."""
        return self.path.name

    @cached_property
    def kind(self) -> Format:
        """Return the format; TREC for qrels without a header, even if the extension is that of a text file."""
        plain = self.table == "qrels" and self.format in ("tsv", "txt") and self.has_header and not self.delimiter
        if plain and is_qrels(self.text):
            return "trec"
        return "tagged" if self.format == "txt" and self.block else self.format

    @cached_property
    def block(self) -> str | None:
        """Return the tag of a record in a tagged file; None if there is none."""
        return tagged.block(self.text) if self.format in ("txt", "tagged") else None

    @cached_property
    def form(self) -> forms.RecordForm | None:
        """Return the form of a file whose rows are no items, by its first rows."""
        if self.chat is not None and self.both:
            return self.chat.form()
        if self.kind not in ("jsonl", "parquet", "arrow") and not (self.kind == "csv" and self.both):
            return None
        form = forms.recognised(self.raw(()), self.table, both=self.both)
        return form if form and (self.table or "ratings") in form.tables else None

    @cached_property
    def text_encoding(self) -> Encoding:
        """Return the configured encoding, else the detected one."""
        return detect(self.path, self.option, self.bounds) if self.encoding == "auto" else self.encoding

    @cached_property
    def text(self) -> TextFile:
        """Return the file as a text."""
        name_encoding = TextFile.name_encoding if self.bounds.setting else ""
        return TextFile(self.path, self.text_encoding, self.bounds, name_encoding=name_encoding)

    @cached_property
    def dialect(self) -> Dialect:
        """Return delimiter, quoting and header of a CSV or TSV file."""
        assert self.format in ("csv", "tsv")
        return text_rows.dialect_of(self.text, self.format, self.delimiter, header=self.has_header)

    @cached_property
    def workbook(self) -> Worksheet:
        """Return the sheet of an Excel file."""
        if self.table is None:
            return Worksheet(self.path, self.sheet, "--set sheet=NAME", (), header=self.has_header, bounds=self.bounds)
        fits, option = partial(names_table, table=self.table), f"ingest.{self.table}.sheet"
        names = roles(self.table).names.get("score" if self.table == "qrels" else "text", ())
        return Worksheet(self.path, self.sheet, option, (self.table, *names), fits, self.has_header, self.bounds)

    @property
    def _columnar(self) -> Columnar | None:
        return Columnar(self.path, self.format, self.bounds) if self.format in ("parquet", "arrow") else None

    @property
    def _export(self) -> Path | None:
        return beside(self.path) if self.table == "queries" else None

    def size(self) -> int:
        """Return the size: bytes of a text file, number of rows of a Parquet, Arrow or Excel file."""
        if self.format == "xlsx":
            return self.workbook.size()
        return self._columnar.size() if self._columnar else self.path.stat().st_size

    def header(self) -> list[str] | None:
        """Return the names of the columns; None for JSON, whose rows have their own names."""
        if self.form or self.kind in ("jsonl", "tagged"):
            return None
        if self._columnar:
            return self._columnar.columns()
        match self.kind:
            case "txt":
                return [text_rows.COLUMN]
            case "trec":
                return [*COLUMNS]
            case "xlsx":
                return self.workbook.columns()
            case _:
                return text_rows.header(self.text, self.dialect)

    def rows(self, columns: Collection[str] = ()) -> Iterator[Row | Problem]:
        """Yield the rows in order; of a Parquet or Arrow file only the named columns, all if none is named."""
        convert = self.form.tables[self.table or "ratings"] if self.form else None
        rows = convert(self.raw(())) if convert else self.raw(columns)
        if self._export:
            rows = marked(rows, self._export)
        if not self.line_prefix:
            return rows
        return (replace(row, line_prefix=self.line_prefix) if isinstance(row, Row) else row for row in rows)

    def raw(self, columns: Collection[str] = ()) -> Iterator[Row | Problem]:
        """Yield the rows as they lie in the file."""
        return self._columnar.rows(columns) if self._columnar else self.bounds.within(self._rows(), self.location)

    def _rows(self) -> Iterator[Row | Problem]:
        match self.kind:
            case "jsonl":
                one = packed.ending(self.path)[0] == ".json" and text_rows.is_document(self.text)
                return (text_rows.document if one else text_rows.jsonl)(self.text)
            case "tagged":
                return tagged.rows(self.text, self.block or "")
            case "txt":
                return text_rows.plain(self.text)
            case "trec":
                return qrels_rows(self.text)
            case "xlsx":
                return self.workbook.rows()
            case _:
                return text_rows.table(self.text, self.dialect)

    def note(self) -> str:
        """Return a sentence on what the labels leave out of the file; empty if that is nothing."""
        left_out = self.form.note(self.raw(())) if self.form and self.table == "qrels" else ""
        return f"{self.location}: {left_out}; `curate agree {self.path}` measures their agreement" if left_out else ""

    def digest(self) -> str:
        """Return the SHA-256 of the content, combined with the export's `sources.parquet` if there is one.

        DataError if the file cannot be read.
        """
        try:
            state = self.path.stat()
            content = _digest(self.path, state.st_size, state.st_mtime_ns)
            return digest([content, sha256(self._export / MARKS)]) if self._export else content
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror}); check the path and its rights") from error


@lru_cache(maxsize=256)
def _digest(path: Path, _size: int, _changed: int) -> str:
    return sha256(path)
