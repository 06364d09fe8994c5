"""xlsx by openpyxl: written with a list of the answers to choose from, and read back."""

import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import TYPE_CHECKING

from curate.core.errors import DataError
from curate.review.forms import Form
from curate.review.sheets.cells import escaped, plain
from curate.review.sheets.text import Record, table

if TYPE_CHECKING:
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

ZIP = b"PK\x03\x04"
OLD = b"\xd0\xcf\x11\xe0"
"""How an .xls begins, and an .xlsx with a password."""
_NARROW, _WIDE = 10, 80
_TIMES = re.compile(rb"<dcterms:(created|modified)[^>]*>[^<]*</dcterms:\1>")


def to_xlsx(form: Form, assessor: str, rows: Mapping[str, Sequence[str]]) -> bytes:
    """Return a sheet for a person as xlsx: every cell a text, the header frozen, the answers in a drop-down list."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Alignment, Font
    from openpyxl.writer.excel import ExcelWriter

    book = Workbook(write_only=True)
    page = book.create_sheet(_title(form.title))
    lines = [[escaped(cell) for cell in row] for row in table(form, assessor, rows)]
    _furnish(page, form, lines)
    cells = [WriteOnlyCell(page) for _ in form.columns]  # used again and again, for a style takes longer than a text
    for number, line in enumerate(lines):
        for cell, text in zip(cells, line, strict=True):
            cell.value = text or None
            cell.data_type = "s" if text else "n"
            if number < 2:
                cell.number_format, cell.alignment = "@", Alignment(wrap_text=True, vertical="top")
                cell.font = Font(bold=number == 0)
        page.append(cells)
    if form.meanings:
        _explain(book.create_sheet(_title(form.meaning)), form)
    stored = io.BytesIO()
    ExcelWriter(book, zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED)).save()
    return _timeless(stored)


def _furnish(page: "WriteOnlyWorksheet", form: Form, lines: Sequence[Sequence[str]]) -> None:
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    page.freeze_panes = "A2"
    for number, column in enumerate(form.columns, start=1):
        longest = max(len(line[number - 1]) for line in lines)
        width = _WIDE // 2 if column == "note" else min(_WIDE, max(_NARROW, 2 * longest))
        page.column_dimensions[get_column_letter(number)].width = width
    listed = f"'{_title(form.meaning)}'!$A$2:$A${1 + len(form.answers)}"  # a list in the rule ends at 255 letters
    choices = listed if form.meanings else f'"{",".join(form.answers)}"'
    choice = DataValidation("list", formula1=choices, allow_blank=True, errorStyle="warning")
    letter = get_column_letter(form.columns.index("answer") + 1)
    choice.add(f"{letter}2:{letter}{max(2, len(lines))}")
    page.data_validations.append(choice)


def _explain(page: "WriteOnlyWorksheet", form: Form) -> None:
    """Fill a page with the answers that may be given and what each means."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Alignment, Font

    page.column_dimensions["A"].width, page.column_dimensions["B"].width = _WIDE // 4, _WIDE
    meanings = [(answer, form.meanings.get(answer, "")) for answer in form.answers]
    lines = [(form.headers["answer"], form.meaning), *meanings]
    for number, line in enumerate(lines):
        cells = [WriteOnlyCell(page) for _ in line]
        for cell, text in zip(cells, line, strict=True):
            cell.value, cell.data_type, cell.number_format = escaped(plain(text)), "s", "@"
            cell.alignment, cell.font = Alignment(wrap_text=True, vertical="top"), Font(bold=number == 0)
        page.append(cells)


def _title(text: str) -> str:
    """Return the name of a page, without the signs that none may have."""
    return re.sub(r"[\[\]:*?/\\]", " ", text)[:31]


def _timeless(stored: io.BytesIO) -> bytes:
    """Return an xlsx file compressed, and without the times of its writing: the same input gives the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            content = _TIMES.sub(b"", part) if name == "docProps/core.xml" else part
            new.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def pages(content: bytes, name: str) -> list[list[Record]]:
    """Return the rows of every page of an xlsx file; DataError if it is damaged or of another kind."""
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # styles and extensions that openpyxl does not know; we read texts
        try:
            book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            return [_rows(page) for page in book.worksheets]
        except (
            zipfile.BadZipFile,
            zlib.error,
            KeyError,
            ValueError,
            TypeError,
            EOFError,
            SyntaxError,
            OSError,
        ) as error:
            raise DataError(
                f"{name}: found a zip file that is no .xlsx, or a damaged one, expected .xlsx; save it again"
            ) from error


def _rows(page: "ReadOnlyWorksheet") -> list[Record]:
    page.reset_dimensions()  # what a file says of its own size is not always true
    rows = page.iter_rows(values_only=True)
    return [(number, [_text(value) for value in row]) for number, row in enumerate(rows, start=1)]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and (value.year, value.month) == (1900, 1) and value.time() == time():
        return str(value.day)  # a small number in a cell that shows dates, which begin there with 1
    if value == time():
        return "0"
    return str(value)
