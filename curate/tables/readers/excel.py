"""Rows of an .xlsx sheet: each cell as the text that a CSV export would contain; of formulas, the stored values."""

import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from io import SEEK_END
from itertools import islice, repeat, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.parsers.expat import ExpatError

from curate.core.errors import ConfigError, DataError, suggestion
from curate.tables.readers import Problem, Row
from curate.tables.readers.encoding import BOUNDS, Bounds
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
"""Number of first rows that determine the number of columns in a sheet without a header."""
Cells = list[str]


@dataclass(frozen=True)
class Worksheet:
    """One sheet of an Excel file.

    It is the sheet `wanted`, if given, else the only sheet with data, else the only sheet with data named in `usual`.
    """

    path: Path
    wanted: str | None
    option: str
    """Option or setting that names the sheet, for error messages."""
    usual: Sequence[str] = ()
    """Sheet names, in lower case, of which one decides if several sheets have data."""
    header: bool = True
    bounds: Bounds = BOUNDS

    @property
    def name(self) -> str:
        """Return the name of the sheet; DataError without data, ConfigError if the sheet is missing or ambiguous."""
        return self._facts[0]

    def columns(self) -> list[str]:
        """Return the names of the columns: the cells of the first non-blank row, or column_1, ... without a header."""
        return self._facts[1]

    def size(self) -> int:
        """Return the number of rows that the file declares, at least 1."""
        return self._facts[2]

    @cached_property
    def _facts(self) -> tuple[str, list[str], int]:
        """Return name, columns and size from one opening of the file, because opening takes as long as reading."""
        with _opened(self.path, self.bounds) as (book, formulas):
            name = self._chosen(book, formulas)
            size = int(book[name].max_row or 1)
            first = [*islice(_read(book, formulas, name), 1 if self.header else LOOKED)]
        default_names = numbered(max((len(cells) for _, cells, _ in first), default=0))
        if not (self.header and first):
            return name, default_names, size
        line, cells, _ = first[0]
        names = [cell.strip() or number for cell, number in zip(cells, default_names, strict=True)]
        return name, column_names(names, str(self.path), line), size

    def _chosen(self, book: "Workbook", formulas: "Workbook | None") -> str:
        if self.wanted is not None:
            return _sheet_of(self.wanted, [str(page.title) for page in book.worksheets], self.path)
        names = [str(page.title) for page in book.worksheets if page.sheet_state == "visible"]
        full = [name for name in names if any(True for _ in _read(book, formulas, name))]
        usual = [name for name in full if name.strip().casefold() in self.usual]
        if len(full) > 1 and len(usual) != 1:
            raise ConfigError(
                f"{self.path}: found data in the sheets {', '.join(full)}, expected to be told which; name one with "
                f"{self.option}",
                choices=full,
            )
        if not full:
            raise DataError(f"{self.path}: found no sheet with data, expected one; check the file")
        return usual[0] if len(full) > 1 else full[0]

    def rows(self) -> Iterator[Row | Problem]:
        """Yield each non-blank row below the header with its number in the sheet.

        Cells beyond the last column are ignored.
        """
        names, first = self.columns(), self.header
        with _opened(self.path, self.bounds) as (book, formulas):
            for number, cells, lost in _read(book, formulas, self.name):
                if first:
                    first = False
                else:
                    values = dict(zip_longest(names, cells[: len(names)], fillvalue=""))
                    yield _problem(number, cells, names, lost) or Row(number, values, number)


def _sheet_of(name: str, names: Sequence[str], path: Path) -> str:
    """Return the sheet with this name, or the only one that differs in case alone; ConfigError if there is none."""
    alike = [candidate for candidate in names if candidate.casefold() == name.casefold()]
    if name in names or len(alike) == 1:
        return name if name in names else alike[0]
    raise ConfigError(f"{path}: found no sheet {name!r}, expected it; {suggestion(name, names)}")


def _problem(number: int, cells: Cells, names: Sequence[str], lost: int | None) -> Problem | None:
    """Return the problem of a row: a formula without a stored value, or an error value; None if the row is valid."""
    if lost is not None and lost < len(names):
        problem = f"a formula without a stored value in the column {names[lost]}"
        return Problem(number, problem, "its value", "open the file in a spreadsheet program and save it")
    error = next((cell for cell in cells if cell in ERRORS), None)
    return Problem(number, f"the error {error}", "a value", FIX) if error else None


@contextmanager
def _opened(path: Path, bounds: Bounds) -> Iterator[tuple["Workbook", "Workbook | None"]]:
    """Yield the workbook with stored values, and a second one with formulas, or None if there are no formulas."""
    from openpyxl import load_workbook

    books: list[Any] = []
    try:
        with sound(path):
            with path.open("rb") as stream:
                need_small(stream, path, bounds)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # styles and extensions that openpyxl does not know
                kinds = (True, False) if _has_formulas(path) else (True,)
                books.extend(load_workbook(path, read_only=True, data_only=values) for values in kinds)
            yield books[0], books[1] if len(books) > 1 else None
    finally:
        for book in books:
            book.close()


@contextmanager
def sound(path: Path) -> Iterator[None]:
    """Raise DataError for errors of a damaged workbook."""
    try:
        yield
    except _DAMAGED as error:
        raise DataError(
            f"{path}: found no sound .xlsx file, expected one; save it again (.xls and .ods: save as .xlsx)"
        ) from error


def need_small(stream: BinaryIO, path: Path, bounds: Bounds) -> None:
    """Raise DataError for a workbook that inflates to more than an archive may, or that would fill the memory."""
    with zipfile.ZipFile(stream) as archive:
        inflated = sum(part.file_size for part in archive.infolist())
    most = max(_INFLATED, min(bounds.ratio * stream.seek(0, SEEK_END), _LARGEST * bounds.ratio // BOUNDS.ratio))
    if inflated > most:
        raise DataError(
            f"{path}: found a workbook of {inflated:,} bytes once unpacked, expected at most {most:,}; save it as CSV, "
            f"or {bounds.remedy('ratio')}"
        )


def _has_formulas(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(_has_formula(archive, name) for name in archive.namelist() if name.startswith("xl/worksheets/"))


def _has_formula(archive: zipfile.ZipFile, name: str) -> bool:
    end = b""
    with archive.open(name) as stream:
        while chunk := stream.read(_CHUNK):
            if any(mark in end + chunk for mark in _FORMULA):
                return True
            end = chunk[-2:]
    return False


def _read(book: "Workbook", formulas: "Workbook | None", name: str) -> Iterator[tuple[int, Cells, int | None]]:
    """Yield (row number, cells, index of the first formula without a stored value or None) of non-blank rows.

    Empty cells at the end of a row are left out.
    """
    written = _cells(formulas[name]) if formulas else repeat(())
    for number, (values, sources) in enumerate(zip(_cells(book[name]), written, strict=False), start=1):
        lost = (
            column
            for column, (content, source) in enumerate(zip(values, sources, strict=False))
            if content is None and source
        )
        cells, missing = [text(content) for content in values], next(lost, None)
        while cells and not cells[-1].strip():
            cells.pop()
        if cells or missing is not None:
            yield number, cells, missing


def _cells(page: Any) -> Iterator[tuple[object, ...]]:  # noqa: ANN401 - openpyxl has no types
    page.reset_dimensions()  # what a file says of its own size is not always true
    return iter(page.iter_rows(values_only=True))


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
