"""Reading of a filled-in sheet: detection of its file format, separator and columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from curate.core.errors import DataError
from curate.review.forms import Form
from curate.review.sheets import files
from curate.review.sheets.files import Record, canonical, fold

NEEDED = ("row_id", "answer")
_RESTORE = "put back the first row of the sheet as it was handed out"


@dataclass(frozen=True, slots=True)
class SheetLine:
    """One row of a sheet that is not blank."""

    number: int
    """Number of the row in the spreadsheet, from 1, counting the header."""
    cells: Mapping[str, str]
    """Column of the form -> cell; without columns that the file lacks."""
    surplus: int = 0
    """Number of non-empty cells beyond the header; if there are any, other cells may be shifted."""


@dataclass(frozen=True)
class Sheet:
    """A table that has the columns of a form."""

    headers: Mapping[str, str]
    """Column of the form -> its header in the file."""
    lines: Sequence[SheetLine]


def read(content: bytes, name: str, form: Form) -> Sheet:
    """Return the sheet in a file's content: xlsx, or delimited text in any usual encoding and with any usual separator.

    Columns may be in any order, with others between them, and headers in any language of the form. DataError, with a
    message that begins with `name`, if the file is not a sheet of this form.
    """
    if content.startswith(files.OLD):
        raise DataError(f"{name}: found an .xls or a file with a password, expected .xlsx or CSV; save it as .xlsx")
    if content.startswith(files.ZIP):
        tables = [iter(page) for page in files.pages(content, name)]
    else:
        decoded = files.decoded(content, name)
        tables = [files.records(decoded, separator, name) for separator in files.SEPARATORS]
    heads = [_head(table) for table in tables]
    if not any(cells for _, cells in heads):
        raise DataError(f"{name}: found no header in it, expected the sheet as it was handed out; choose another file")
    best = max(range(len(heads)), key=lambda index: (len(_columns(heads[index][1], form)), len(heads[index][1])))
    number, header = heads[best]
    columns = _checked(header, f"{name}, row {number}", form)
    width = None if content.startswith(files.ZIP) else len(header)
    lines = [_line(record, columns, width) for record in tables[best] if not _blank(record[1])]
    return Sheet({column: header[index].strip() for column, index in columns.items()}, lines)


def _head(table: Iterator[Record]) -> Record:
    """Return the first row that is not blank; (0, []) if there is none or if quotes are unbalanced."""
    try:
        return next((record for record in table if not _blank(record[1])), (0, []))
    except DataError:
        return 0, []


def _blank(cells: Sequence[str]) -> bool:
    return not any(map(canonical, cells))


def _columns(header: Sequence[str], form: Form) -> list[tuple[str, int]]:
    """Return (column of the form, index) for every matching header."""
    column_of = {_name(word): column for word, column in form.known.items()}
    return [(column_of[_name(word)], index) for index, word in enumerate(header) if _name(word) in column_of]


def _name(header: str) -> str:
    return fold(header).replace("_", "")


def _checked(header: Sequence[str], path: str, form: Form) -> dict[str, int]:
    columns = _columns(header, form)
    for column in form.columns:
        indices = [index for name_found, index in columns if name_found == column]
        if len(indices) > 1:
            raise DataError(
                f"{path}: found {form.headers[column]!r} in columns {indices[0] + 1} and {indices[1] + 1}, expected it "
                "once; delete one of them, or change its header"
            )
        if not indices and column in NEEDED:
            raise DataError(
                f"{path}: found no column {form.headers[column]!r} among {len(header)}, expected a header "
                f"with {', '.join(form.headers[name] for name in form.columns)}; {_RESTORE}"
            )
    return dict(columns)


def _line(record: Record, columns: Mapping[str, int], width: int | None) -> SheetLine:
    number, cells = record
    surplus = 0 if width is None else sum(bool(canonical(cell)) for cell in cells[width:])
    return SheetLine(
        number, {column: cells[index] if index < len(cells) else "" for column, index in columns.items()}, surplus
    )
