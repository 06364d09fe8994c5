"""Rows of an .xlsx sheet: every cell as the text that a CSV of it would have, formulas by their stored values."""

import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from itertools import islice, repeat, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curate.core.errors import ConfigError, DataError, suggestion
from curate.tables.readers import Problem, Row
from curate.tables.readers.text_rows import FIX, column_names, numbered

if TYPE_CHECKING:
    from openpyxl import Workbook

_FORMULA = (b"<f>", b"<f ")
_DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, SyntaxError, OSError)
_CHUNK = 1 << 20
ERRORS = frozenset({"#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"})
"""What a spreadsheet shows in place of a value; #N/A is not among them, for people type it where there is none."""
LOOKED = 200
"""First rows of a sheet without a header by which its columns are counted."""
Cells = list[str]


@dataclass(frozen=True)
class Worksheet:
    """One sheet of a file: the one that is named, else the only one with data, else the one named like the table."""

    path: Path
    wanted: str | None
    option: str
    """What names a sheet, for an error."""
    usual: Sequence[str] = ()
    """Names that decide where several sheets have data."""
    header: bool = True

    @property
    def name(self) -> str:
        """Return the name of the sheet; DataError if there is no data, ConfigError if several sheets may be meant."""
        return self._facts[0]

    def columns(self) -> list[str]:
        """Return the names of the columns: the cells of the first row that is not blank, or numbered ones."""
        return self._facts[1]

    def size(self) -> int:
        """Return the number of rows that the file says to have, at least 1."""
        return self._facts[2]

    @cached_property
    def _facts(self) -> tuple[str, list[str], int]:
        """Return name, columns and size, for which the file is opened once: that takes as long as reading it."""
        with _opened(self.path) as (book, formulas):
            name = self._chosen(book, formulas)
            size = int(book[name].max_row or 1)
            first = [*islice(_read(book, formulas, name), 1 if self.header else LOOKED)]
        known = numbered(max((len(cells) for _, cells, _ in first), default=0))
        if not (self.header and first):
            return name, known, size
        line, cells, _ = first[0]
        names = [cell.strip() or number for cell, number in zip(cells, known, strict=True)]
        return name, column_names(names, str(self.path), line), size

    def _chosen(self, book: "Workbook", formulas: "Workbook | None") -> str:
        if self.wanted is not None:
            return _same(self.wanted, [str(page.title) for page in book.worksheets], self.path)
        names = [str(page.title) for page in book.worksheets if page.sheet_state == "visible"]
        full = [name for name in names if any(True for _ in _read(book, formulas, name))]
        known = [name for name in full if name.strip().casefold() in self.usual]
        if len(full) > 1 and len(known) != 1:
            raise ConfigError(
                f"{self.path}: found data in the sheets {', '.join(full)}, expected to be told which; name one with "
                f"{self.option}",
                choices=full,
            )
        if not full:
            raise DataError(f"{self.path}: found no sheet with data, expected one; check the file")
        return known[0] if len(full) > 1 else full[0]

    def rows(self) -> Iterator[Row | Problem]:
        """Yield every row that is not blank, by its number in the sheet; cells beyond the last column are not read."""
        names, first = self.columns(), self.header
        with _opened(self.path) as (book, formulas):
            for number, cells, lost in _read(book, formulas, self.name):
                if first:
                    first = False
                else:
                    values = dict(zip_longest(names, cells[: len(names)], fillvalue=""))
                    yield _problem(number, cells, names, lost) or Row(number, values, number)


def _same(wanted: str, names: Sequence[str], path: Path) -> str:
    """Return the sheet of a name, in any case if no other differs in that alone; ConfigError if there is none."""
    alike = [name for name in names if name.casefold() == wanted.casefold()]
    if wanted in names or len(alike) == 1:
        return wanted if wanted in names else alike[0]
    raise ConfigError(f"{path}: found no sheet {wanted!r}, expected it; {suggestion(wanted, names)}")


def _problem(number: int, cells: Cells, names: Sequence[str], lost: int | None) -> Problem | None:
    """Return what is wrong with a row: a formula whose value is not stored, or an error in place of a value."""
    if lost is not None and lost < len(names):
        found = f"a formula without a stored value in the column {names[lost]}"
        return Problem(number, found, "its value", "open the file in a spreadsheet program and save it")
    error = next((cell for cell in cells if cell in ERRORS), None)
    return Problem(number, f"the error {error}", "a value", FIX) if error else None


@contextmanager
def _opened(path: Path) -> Iterator[tuple["Workbook", "Workbook | None"]]:
    """Give a workbook with its stored values, and again with its formulas if there are any."""
    from openpyxl import load_workbook

    books: list[Any] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # styles and extensions that openpyxl does not know
            kinds = (True, False) if _calculates(path) else (True,)
            books.extend(load_workbook(path, read_only=True, data_only=values) for values in kinds)
        yield books[0], books[1] if len(books) > 1 else None
    except _DAMAGED as error:
        raise DataError(
            f"{path}: found no sound .xlsx file, expected one; save it again (.xls and .ods: save as .xlsx)"
        ) from error
    finally:
        for book in books:
            book.close()


def _calculates(path: Path) -> bool:
    """Say whether there is a formula in any sheet."""
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
    """Yield number and cells of every row that is not blank, and which of them is a formula without a stored value.

    Empty cells at the end of a row are left out.
    """
    written = _cells(formulas[name]) if formulas else repeat(())
    for number, (values, sources) in enumerate(zip(_cells(book[name]), written, strict=False), start=1):
        lost = (at for at, (value, source) in enumerate(zip(values, sources, strict=False)) if value is None and source)
        cells, missing = [text(value) for value in values], next(lost, None)
        while cells and not cells[-1].strip():
            cells.pop()
        if cells or missing is not None:
            yield number, cells, missing


def _cells(page: Any) -> Iterator[tuple[object, ...]]:  # noqa: ANN401 - openpyxl has no types
    page.reset_dimensions()  # what a file says of its own size is not always true
    return iter(page.iter_rows(values_only=True))


def text(value: object) -> str:
    """Return a cell as a CSV has it: whole numbers without a point, dates by ISO 8601, empty for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date | time) else _length(value)


def _length(value: object) -> str:
    return str(value.total_seconds()) if isinstance(value, timedelta) else str(value)
