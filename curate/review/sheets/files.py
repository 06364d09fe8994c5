"""Spreadsheet files (CSV, xlsx): writing, reading, and comparison of texts that a spreadsheet may have altered."""

import codecs
import csv
import io
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time
from typing import TYPE_CHECKING
from unicodedata import normalize

from curate.core.errors import TableError
from curate.core.scripts import common
from curate.review.forms import Form
from curate.tables.readers.encoding import FIXED
from curate.tables.readers.excel import SheetRow, opened, sheet_rows

MARK = "'"
"""Prefix of a text that a spreadsheet would otherwise read as a formula, a number or a date."""
LIMIT = 32_767
"""Maximum length of an xlsx cell, in UTF-16 units."""

_LONG = LIMIT // 8
"""Length up to which a text fits into a cell even if every character needs two units and an escape."""

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Pattern of characters that are invalid in XML, and therefore in an xlsx cell."""
_UNSEEN = re.compile("[\xad\u200b\u200e\u200f\u2060\ufeff]")
"""Pattern of zero-width characters, except joiners, which would change the visible text."""
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
"""Pattern of xlsx's escape of a character that is invalid in XML."""
_LIKE_ESCAPE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_RISKY = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠﹦﹢﹣﹫']")
_VALUE = re.compile(
    r"(?=.*\d)(?:[\d\s.,:;/%‰$¥£€()+\-年月日号时時分秒上下午eaptz]|am|pm"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)+|true|false",
    re.IGNORECASE,
)
_VALUE_LENGTH = 40


def plain(text: str) -> str:
    """Return a text without characters that are invalid in a cell, with line feeds as line ends."""
    return _UNFIT.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def like_value(text: str) -> bool:
    """Return whether a spreadsheet could read a text as a number, a date or a truth value."""
    return len(text) <= _VALUE_LENGTH and _VALUE.fullmatch(normalize("NFKC", text).strip()) is not None


def defused(text: str) -> str:
    """Return a text that no spreadsheet reads as a formula or value, prefixed with `MARK` if needed."""
    text = plain(text)
    return MARK + text if _RISKY.match(text) or like_value(text) else text


def fold(text: str) -> str:
    """Return the normal form of an id, name, answer or header: NFKC, case-folded, no blanks, no zero-width marks."""
    return "".join(normalize("NFKC", seen(text)).casefold().split())


def seen(text: str) -> str:
    """Return a text without zero-width marks."""
    return _UNSEEN.sub("", plain(text))


def canonical(text: str) -> str:
    """Return the normal form of a text: NFC, every run of white space one blank, no zero-width marks."""
    while "_x" in text and _ESCAPE.search(text):  # once more, for some programs undo half of it
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    return " ".join(normalize("NFC", seen(text)).split())


def escaped(text: str) -> str:
    """Return a text for an xlsx cell, with literal escapes escaped, truncated to `LIMIT`."""
    text = _LIKE_ESCAPE.sub("_x005F_", text)
    return text if 2 * len(text) <= LIMIT else text.encode("utf-16-le")[: 2 * LIMIT].decode("utf-16-le", "ignore")


def difference(found: str, expected: str) -> int | None:
    """Return the first position, from 1, at which a cell differs from a text; None if they are equivalent.

    Line ends, the kind and number of blanks, zero-width characters, `MARK`, and characters that are invalid in a cell
    are ignored.
    """
    cell, text = canonical(found), canonical(expected)
    unmarked = canonical(cell.removeprefix(MARK))
    if text in (cell, unmarked):
        return None
    # a long text is compared with the part of it that fits into an xlsx cell
    if len(expected) > _LONG and unmarked == canonical(canonical(escaped(defused(expected))).removeprefix(MARK)):
        return None
    cell = unmarked if defused(expected).startswith(MARK) else cell
    pairs = enumerate(zip(cell, text, strict=False), start=1)
    return next(
        (position for position, (actual, intended) in pairs if actual != intended), min(len(cell), len(text)) + 1
    )


# CSV: written as every spreadsheet opens it, and read as any of them may have saved it.

SEPARATORS = (",", ";", "\t")
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    "\ufeff".encode("gb18030"): "gb18030",
}
_SAVE = "save the sheet as `CSV UTF-8` or as .xlsx"


def to_csv(
    form: Form, assessor: str, rows: Mapping[str, Sequence[str]], said: Mapping[str, str] | None = None
) -> bytes:
    """Return an assessor's sheet as CSV: UTF-8 with a byte order mark, CRLF, answers and notes empty.

    `said` is row_id -> others' answers, for an adjudicator; without it the sheet is blind.
    """
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\r\n").writerows(table(form, assessor, rows, said))
    return codecs.BOM_UTF8 + stream.getvalue().encode()


def table(
    form: Form, assessor: str, rows: Mapping[str, Sequence[str]], said: Mapping[str, str] | None = None
) -> Iterator[list[str]]:
    """Yield the header and the rows of a sheet; every cell is plain text."""
    yield form.header + ([] if said is None else [form.said])
    for row_id, texts in rows.items():
        opinion = [] if said is None else [said[row_id]]
        yield [defused(cell) for cell in (row_id, *texts, "", "", assessor, *opinion)]


def decoded(content: bytes, name: str) -> str:
    """Return the text of a file in UTF-8, UTF-16 with a byte order mark, or GB18030; DataError for other encodings.

    Bytes that are valid in both UTF-8 and GB18030 are read as GB18030 if only that yields Chinese.
    """
    for mark, encoding in _BOMS.items():
        if content.startswith(mark):
            text = _decode(content, encoding)
            break
    else:
        if b"\0" in content:
            raise TableError.at(name, "a file of another kind", "CSV or .xlsx", _SAVE)
        text = _guessed(content)
    if text is None:
        raise TableError.at(name, "bytes that are not text in UTF-8, UTF-16 or GB18030", "text in one of them", _SAVE)
    return text.lstrip("\ufeff")


def _guessed(content: bytes) -> str | None:
    text = _decode(content, "utf-8")
    if text is not None and (text.isascii() or max(text) >= "\u0800"):
        return text
    chinese = _decode(content, "gb18030")
    if text is None or chinese is None:
        return chinese if text is None else text
    frequent, wide = common([chinese])
    return chinese if 2 * frequent >= wide else text  # 头痛 in GB18030 is two Greek letters in UTF-8


def _decode(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def records(text: str, separator: str, name: str) -> Iterator[SheetRow]:
    """Yield the rows of a file, numbered as in a spreadsheet, regardless of line breaks in cells.

    DataError for unbalanced quotes, which could merge several rows into one.

    A line `sep=;` before the header, as Excel writes it, is not a row: spreadsheets do not show it.
    """
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 0
    while True:
        begins = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise TableError.at(
                f"{name}, line {begins}",
                "a row with a quotation mark that is left open or stands alone",
                "quotation marks in pairs",
                f"{_SAVE} from a spreadsheet, not from an editor",
            ) from error
        if cells is None:
            return
        if begins > 1 or not "".join(cells).lower().startswith("sep="):
            number += 1
            yield SheetRow(number, cells)


# xlsx by openpyxl: written with a list of the answers to choose from, and read back.

if TYPE_CHECKING:
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

ZIP = b"PK\x03\x04"
OLD = b"\xd0\xcf\x11\xe0"
"""First bytes of an .xls file, and of an .xlsx file with a password, which cannot be read."""
_NARROW, _WIDE = 10, 80
_TIMES = re.compile(rb"<dcterms:(created|modified)[^>]*>[^<]*</dcterms:\1>")


def to_xlsx(form: Form, assessor: str, rows: Mapping[str, Sequence[str]]) -> bytes:
    """Return an assessor's sheet as xlsx: text cells, frozen header, answers as a drop-down list."""
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
    """Fill a worksheet with the permitted answers and their meanings."""
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
    """Return a worksheet's name without the characters that Excel forbids, at most 31 long."""
    return re.sub(r"[\[\]:*?/\\]", " ", text)[:31]


def _timeless(stored: io.BytesIO) -> bytes:
    """Return an xlsx file compressed and without timestamps, so that equal input gives equal bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            stored_content = old.read(name)
            content = _TIMES.sub(b"", stored_content) if name == "docProps/core.xml" else stored_content
            new.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def pages(content: bytes, name: str) -> list[list[SheetRow]]:
    """Return the non-blank rows of every worksheet of an xlsx file; DataError if it is damaged or of another kind."""
    with opened(io.BytesIO(content), name, FIXED) as book:
        return [[*sheet_rows(book, page.title, _text)] for page in book.values.worksheets]


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and (cell.year, cell.month) == (1900, 1) and cell.time() == time():
        return str(cell.day)  # a small number in a date cell, whose day count starts at 1
    if cell == time():
        return "0"
    return str(cell)
