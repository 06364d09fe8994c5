"""Reading of a filled-in sheet: detection of its file format, separator and columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from curate.core.errors import DataError, TableError
from curate.review.forms import Form
from curate.review.sheets import files
from curate.review.sheets.files import canonical
from curate.tables.readers.excel import SheetRow
from curate.tables.readers.roles import Roles, plain_name

NEEDED = ("row_id", "answer")
_TITLES = 20
"""Number of first rows among which the header is looked for, below titles."""


@dataclass(frozen=True, slots=True)
class SheetLine:
    """One row of a sheet that is not blank."""

    number: int
    """Number of the row in the spreadsheet, from 1, counting the header."""
    cells: Mapping[str, str]
    """Column of the form -> cell; without columns that the file lacks."""
    surplus: int = 0
    """Number of non-empty cells beyond the header; if there are any, other cells may be shifted."""
    unstored: Mapping[str, str] = field(default_factory=dict)
    """Column of the form -> address of a cell with a formula whose value is not in the file."""


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
        raise TableError.at(name, "an .xls or a file with a password", ".xlsx or CSV", "save it as .xlsx")
    if content.startswith(files.ZIP):
        tables = [iter(page) for page in files.pages(content, name)]
    else:
        decoded = files.decoded(content, name)
        tables = [files.records(decoded, separator, name) for separator in files.SEPARATORS]
    roles = _roles(form)
    heads = [_head(table, roles) for table in tables]
    if not any(head.cells for head in heads):
        raise TableError.at(name, "no header in it", "the sheet as it was handed out", "choose another file")
    best = max(range(len(heads)), key=lambda index: (len(_matches(heads[index], roles)), len(heads[index].cells)))
    head = heads[best]
    header_of = roles.resolve(f"{name}, row {head.number}", head.cells)
    columns = {column: header_of[title] for column, title in form.headers.items() if title in header_of}
    index_of = {column: head.cells.index(header) for column, header in columns.items()}
    width = None if content.startswith(files.ZIP) else len(head.cells)
    lines = [_line(row, index_of, width) for row in tables[best] if not _blank(row)]
    return Sheet({column: header.strip() for column, header in columns.items()}, lines)


def _roles(form: Form) -> Roles:
    """Return the columns of a form by their headers in its language, with their headers in any language."""
    headers = ", ".join(form.headers[column] for column in form.columns)
    return Roles(
        {
            form.headers[column]: [plain_name(word) for word, name in form.known.items() if name == column]
            for column in form.columns
        },
        needed=[form.headers[column] for column in NEEDED],
        remedy=f"put back the header of the sheet as it was handed out: {headers}",
        once=True,
        listed=lambda columns: str(len(columns)),  # where the header is missing they are texts of the corpus
    )


def _head(table: Iterator[SheetRow], roles: Roles) -> SheetRow:
    """Return the first row with all needed columns, else the first that is not blank.

    A row without cells if there is none or if quotes are unbalanced.
    """
    first = SheetRow(0, [])
    try:
        for row in islice((row for row in table if not _blank(row)), _TITLES):
            first = row if not first.cells else first
            if {*roles.needed} <= _matches(row, roles):
                return row
    except DataError:
        return first
    return first


def _matches(row: SheetRow, roles: Roles) -> set[str]:
    names = {*map(plain_name, row.cells)}
    return {role for role, choices in roles.names.items() if names & {*choices}}


def _blank(row: SheetRow) -> bool:
    return not row.unstored and not any(map(canonical, row.cells))


def _line(row: SheetRow, columns: Mapping[str, int], width: int | None) -> SheetLine:
    cells = row.cells
    return SheetLine(
        row.number,
        {column: cells[index] if index < len(cells) else "" for column, index in columns.items()},
        0 if width is None else sum(bool(canonical(cell)) for cell in cells[width:]),
        {column: row.unstored[index] for column, index in columns.items() if index in row.unstored},
    )
