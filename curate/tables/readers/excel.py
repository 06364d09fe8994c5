"""Rows of an .xlsx sheet: each cell as the text that a CSV export would contain; of formulas, the stored values."""

import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property, lru_cache
from io import SEEK_END, BytesIO
from itertools import islice, repeat, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from xml.parsers.expat import ExpatError

from curate.core.errors import ConfigError, TableError, suggestion
from curate.tables.readers import Problem, Row
from curate.tables.readers.encoding import BOUNDS, Bounds
from curate.tables.readers.roles import names_question, names_table, plain_name, roles
from curate.tables.readers.text_rows import FIX, column_names, numbered

if TYPE_CHECKING:
    from openpyxl import Workbook

_FORMULA = (b"<f>", b"<f ")
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    ValueError,
    IndexError,
    TypeError,
    EOFError,
    SyntaxError,
    ExpatError,
    OSError,
)
_CHUNK = 1 << 20
_INFLATED = 1 << 26
"""Bytes that any workbook may unpack to."""
_LARGEST = 1 << 29
"""Bytes that a workbook may unpack to at most: openpyxl holds all its texts."""
ERRORS = frozenset({"#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"})
"""Error values of a spreadsheet; #N/A is not included, because people type it for a missing value."""
LOOKED = 200
"""Number of first rows in which the header is looked for, or the number of columns without one."""
_KEPT = 2 * LOOKED
"""Number of first rows that are kept, for all that looks at the first rows alone."""
UNSTORED = "a formula without a stored value"
SAVE = "open the file in a spreadsheet program and save it, or paste values over formulas"
_NUMBER = re.compile(r"[-+]?[\d.,:/ -]+%?")


class SheetRow(NamedTuple):
    """A row of a sheet as texts, without empty cells at its end."""

    number: int
    """Number of the row in the sheet, from 1."""
    cells: list[str]
    unstored: Mapping[int, str] = {}
    """Index -> address of a cell with a formula whose value is not in the file: `cell B7 of sheet 'Ratings'`."""


class OpenWorkbook(NamedTuple):
    """An opened workbook, with stored values, and again with formulas if it has any."""

    values: "Workbook"
    formulas: "Workbook | None"


@dataclass(frozen=True)
class Worksheet:
    """One sheet of an Excel file.

    It is the sheet `named_sheet`, if given, else the only sheet with data, else the only one of them named in `usual`.
    """

    path: Path
    named_sheet: str | None
    option: str
    """Option or setting that names the sheet, for error messages: `--set sheet=NAME` of a command, else of `ingest`."""
    usual: Sequence[str] = ()
    """Plain names of sheets, of which one decides if several sheets have data."""
    fits: Callable[[Sequence[str]], bool] = lambda _: False
    """Whether a row names columns of the table; else the only sheet with such a row among its first is taken."""
    header: bool = True
    bounds: Bounds = BOUNDS

    @property
    def name(self) -> str:
        """Return the name of the sheet; DataError without data, ConfigError if the sheet is missing or ambiguous."""
        return self._sheet.name

    def columns(self) -> list[str]:
        """Return the names of the columns: the cells of the header, or column_1, ... without one."""
        return self._columns[0]

    def size(self) -> int:
        """Return the number of rows that the file declares, at least 1."""
        return self._sheet.size

    @property
    def _sheets(self) -> "tuple[_Sheet, ...]":
        with sound(str(self.path)):
            state = self.path.stat()
        return _sheets(self.path, self.bounds, state.st_size, state.st_mtime_ns)

    @cached_property
    def _sheet(self) -> "_Sheet":
        if self.named_sheet is not None:
            name = _sheet_of(self.named_sheet, [sheet.name for sheet in self._sheets], self.path)
            return next(sheet for sheet in self._sheets if sheet.name == name)
        full = [sheet for sheet in self._sheets if sheet.visible and sheet.first]
        usual = [sheet for sheet in full if plain_name(sheet.name) in self.usual]
        usual = usual or self._fitting(full)
        if len(full) > 1 and len(usual) != 1:
            choices = _choices(full)
            alone = [name for name in choices if isinstance(name, str)]
            raise ConfigError(
                f"{self.path}: found data in the sheets {', '.join(sheet.name for sheet in full)}, expected to be told "
                f"which; name one with {self.option}",
                choices=choices,
                options=[["--set", f"sheet={name}"] for name in alone] if self.option.startswith("--set ") else (),
            )
        if not full:
            raise TableError.at(self.path, "no sheet with data", "a sheet with data", "check the file")
        return usual[0] if len(full) > 1 else full[0]

    @cached_property
    def _columns(self) -> tuple[list[str], int]:
        """Return the names of the columns and the number of the header's row, 0 without one."""
        first = self._sheet.first[:LOOKED]
        if not (self.header and first):
            return numbered(max((len(row.cells) for row in first), default=0)), 0
        header = first[_header(first)]
        if header.unstored:
            expected = f"the name of a column in {next(iter(header.unstored.values()))}"
            raise Problem(header.number, UNSTORED, expected, SAVE).error(str(self.path))
        names = [cell.strip() or number for cell, number in zip(header.cells, numbered(len(header.cells)), strict=True)]
        return column_names(names, str(self.path), header.number), header.number

    def fitting(self) -> str | None:
        """Return the only visible sheet that `fits`; None without one, and if there are several."""
        fitting = self._fitting([sheet for sheet in self._sheets if sheet.visible])
        return fitting[0].name if len(fitting) == 1 else None

    def _fitting(self, sheets: "Sequence[_Sheet]") -> "list[_Sheet]":
        return [sheet for sheet in sheets if sheet.first and self.fits(sheet.header.cells)]

    def rows(self) -> Iterator[Row | Problem]:
        """Yield each non-blank row below the header with its number in the sheet.

        Cells beyond the last column are ignored.
        """
        names, header = self._columns
        for row in self._rows():
            if row.number > header:
                values = dict(zip_longest(names, row.cells[: len(names)], fillvalue=""))
                yield _problem(row, names) or Row(row.number, values, row.number)

    def _rows(self) -> Iterator[SheetRow]:
        """Yield the rows of the sheet; the file is opened again only if more than the first are read."""
        yield from self._sheet.first
        if len(self._sheet.first) == _KEPT:
            with opened(self.path, str(self.path), self.bounds) as book:
                yield from islice(sheet_rows(book, self.name), _KEPT, None)


class _Sheet(NamedTuple):
    """A worksheet with its first rows."""

    name: str
    visible: bool
    size: int
    """Number of rows that the file declares, at least 1."""
    first: list[SheetRow]
    """The first `_KEPT` non-blank rows."""

    @property
    def header(self) -> SheetRow:
        """Return the row with the names of the columns."""
        return self.first[_header(self.first[:LOOKED])]


@lru_cache(maxsize=8)
def _sheets(path: Path, bounds: Bounds, _size: int, _changed: int) -> tuple[_Sheet, ...]:
    """Return all worksheets from one opening, which takes as long as reading all texts."""
    with opened(path, str(path), bounds) as book:
        return tuple(
            _Sheet(
                str(page.title),
                page.sheet_state == "visible",
                int(page.max_row or 1),
                [*islice(sheet_rows(book, page.title), _KEPT)],
            )
            for page in book.values.worksheets
        )


def _header(rows: Sequence[SheetRow]) -> int:
    """Return the index of the row with the names of the columns: the first, or one below titles.

    A title fills one cell. The names below it are the first row of two or more distinct texts that is as wide as most
    rows that follow; without such a row the first counts. So does one whose only cell is a usual name of a column,
    unless that row has one too.
    """
    first = _filled(rows[0])
    if len(first) != 1:
        return 0
    usual = {name for table in (roles("queries"), roles("corpus")) for names in table.names.values() for name in names}
    for index, row in enumerate(rows[:-1]):
        names = _filled(row)
        width = Counter(len(below.cells) for below in rows[index + 1 :]).most_common(1)[0][0]
        are_names = len(set(names)) == len(names) > max(width / 2, 1) and not any(map(_NUMBER.fullmatch, names))
        is_title = plain_name(first[0]) not in usual or not usual.isdisjoint(map(plain_name, names))
        if are_names and is_title and len(row.cells) >= width > 1:
            return index
    return 0


def _choices(sheets: Sequence[_Sheet]) -> list[str | list[str]]:
    """Return the sheets that are tables; if all have the same columns, of both queries and documents, also all."""
    headers = {sheet.name: tuple(sheet.header.cells) for sheet in sheets}
    tables = [name for name, cells in headers.items() if len(cells) > 1]
    (columns, *others) = {headers[name] for name in tables} or {()}
    has_both = len(columns) > 2 or (names_question(columns) is not None and names_table(columns, "corpus"))
    together = [tables] if len(tables) > 1 and not others and has_both else []
    return [*(tables or headers), *together]


def _filled(row: SheetRow) -> list[str]:
    return [*filter(None, map(str.strip, row.cells))]


def _sheet_of(name: str, names: Sequence[str], path: Path) -> str:
    """Return the sheet with this name, or the only one that differs in case alone; ConfigError if there is none."""
    alike = [candidate for candidate in names if candidate.casefold() == name.casefold()]
    if name in names or len(alike) == 1:
        return name if name in names else alike[0]
    raise ConfigError(f"{path}: found no sheet {name!r}, expected it; {suggestion(name, names)}")


def _problem(row: SheetRow, names: Sequence[str]) -> Problem | None:
    """Return the problem of a row: a formula without a stored value, or an error value; None if the row is valid."""
    for index, name in enumerate(names):
        if index in row.unstored:
            return Problem(row.number, UNSTORED, f"its value in {row.unstored[index]}", SAVE, name)
        if index < len(row.cells) and row.cells[index] in ERRORS:
            return Problem(row.number, f"the error {row.cells[index]}", "a value", FIX, name)
    return None


@contextmanager
def opened(file: Path | BytesIO, name: str, bounds: Bounds) -> Iterator[OpenWorkbook]:
    """Open a workbook; DataError, which calls it `name`, if it is damaged or too large."""
    from openpyxl import load_workbook

    books: list[Any] = []
    try:
        with sound(name):
            need_small(file, name, bounds)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # styles and extensions that openpyxl does not know
                kinds = (True, False) if _has_formulas(file) else (True,)
                books.extend(load_workbook(file, read_only=True, data_only=values) for values in kinds)
            yield OpenWorkbook(books[0], books[1] if len(books) > 1 else None)
    finally:
        for book in books:
            book.close()


@contextmanager
def sound(name: str) -> Iterator[None]:
    """Raise DataError for errors of a damaged workbook."""
    try:
        yield
    except _DAMAGED as error:
        raise TableError.at(
            name,
            "no sound .xlsx file",
            "a sound .xlsx file",
            "it is damaged, or a zip file of another kind: save it again (.xls and .ods: save as .xlsx)",
        ) from error


def need_small(file: Path | BinaryIO, name: str, bounds: Bounds) -> None:
    """Raise DataError for a workbook that inflates to more than an archive may, or that would fill the memory."""
    with zipfile.ZipFile(file) as archive:
        inflated = sum(member.file_size for member in archive.infolist())
    size = file.stat().st_size if isinstance(file, Path) else file.seek(0, SEEK_END)
    most = max(_INFLATED, min(bounds.ratio * size, _LARGEST * bounds.ratio // BOUNDS.ratio))
    if inflated > most:
        raise TableError.at(
            name,
            f"a workbook of {inflated:,} bytes once unpacked",
            f"at most {most:,}",
            f"save it as CSV, or {bounds.remedy('ratio')}",
        )


def _has_formulas(file: Path | BytesIO) -> bool:
    with zipfile.ZipFile(file) as archive:
        return any(_has_formula(archive, name) for name in archive.namelist() if name.startswith("xl/worksheets/"))


def _has_formula(archive: zipfile.ZipFile, name: str) -> bool:
    end = b""
    with archive.open(name) as stream:
        while chunk := stream.read(_CHUNK):
            if any(mark in end + chunk for mark in _FORMULA):
                return True
            end = chunk[-2:]
    return False


def sheet_rows(book: OpenWorkbook, name: str, convert: Callable[[object], str] | None = None) -> Iterator[SheetRow]:
    """Yield the non-blank rows of a sheet; `convert` makes a text of a cell, by default `text`."""
    from openpyxl.utils import get_column_letter

    formulas = _rows(book.formulas[name]) if book.formulas else repeat(())
    for number, (stored, sources) in enumerate(zip(_rows(book.values[name]), formulas, strict=False), start=1):
        unstored = {
            index: f"cell {get_column_letter(index + 1)}{number} of sheet {name!r}"
            for index, (cell, source) in enumerate(zip(stored, sources, strict=False))
            if source.value and cell.value is None and cell.data_type != "str"  # that is a stored empty text
        }
        cells = [(convert or text)(cell.value) for cell in stored]
        while cells and not cells[-1].strip():
            cells.pop()
        if cells or unstored:
            yield SheetRow(number, cells, unstored)


def _rows(page: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - openpyxl has no types
    page.reset_dimensions()  # what a file says of its own size is not always true
    return iter(page.iter_rows())


def text(cell: object) -> str:
    """Return a cell as in a CSV file: integers without a decimal point, dates in ISO 8601, empty for None."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(sep=" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell.total_seconds() if isinstance(cell, timedelta) else cell)
