"""CSV: written as every spreadsheet opens it, and read as any of them may have saved it."""

import codecs
import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence

from curate.core.common_hanzi import common
from curate.core.errors import DataError
from curate.review.forms import Form
from curate.review.sheets.cells import defused

SEPARATORS = (",", ";", "\t")
Record = tuple[int, list[str]]
"""The number of a row as a spreadsheet counts, from 1 and apart from line breaks in cells, and its cells."""
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
    """Return a sheet for a person as CSV: UTF-8 with a byte order mark, CRLF, answers and notes empty.

    `said` is row_id -> what others said, for an adjudicator; without it the sheet is blind.
    """
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\r\n").writerows(table(form, assessor, rows, said))
    return codecs.BOM_UTF8 + stream.getvalue().encode()


def table(
    form: Form, assessor: str, rows: Mapping[str, Sequence[str]], said: Mapping[str, str] | None = None
) -> Iterator[list[str]]:
    """Yield the header and the rows of a sheet, no cell of which is more than a text."""
    yield form.header + ([] if said is None else [form.said])
    for row_id, texts in rows.items():
        beside = [] if said is None else [said[row_id]]
        yield [defused(cell) for cell in (row_id, *texts, "", "", assessor, *beside)]


def decoded(content: bytes, name: str) -> str:
    """Return the text of a file in UTF-8, UTF-16 with a byte order mark, or GB18030; DataError if it is in none.

    Bytes that are valid in both UTF-8 and GB18030 are the latter if only that makes Chinese of them.
    """
    for mark, encoding in _BOMS.items():
        if content.startswith(mark):
            text = _decode(content, encoding)
            break
    else:
        if b"\0" in content:
            raise DataError(f"{name}: found a file of another kind, expected CSV or .xlsx; {_SAVE}")
        text = _guessed(content)
    if text is None:
        raise DataError(f"{name}: found bytes that are not text in UTF-8, UTF-16 or GB18030, expected one; {_SAVE}")
    return text.lstrip("\ufeff")


def _guessed(content: bytes) -> str | None:
    text = _decode(content, "utf-8")
    if text is not None and (text.isascii() or max(text) >= "\u0800"):
        return text
    other = _decode(content, "gb18030")
    if text is None or other is None:
        return other if text is None else text
    frequent, wide = common([other])
    return other if 2 * frequent >= wide else text  # 头痛 in GB18030 is two Greek letters in UTF-8


def _decode(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def records(text: str, separator: str, name: str) -> Iterator[Record]:
    """Yield the rows of a file; DataError where its quotes do not fit, for a row could hide others.

    The `sep=;` that Excel may have before the header is no row: spreadsheets do not show it.
    """
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 0
    while True:
        begins = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise DataError(
                f"{name}, line {begins}: found a row with a quotation mark that is left open or stands alone, expected "
                f"them in pairs; {_SAVE} from a spreadsheet, not from an editor"
            ) from error
        if cells is None:
            return
        if begins > 1 or not "".join(cells).lower().startswith("sep="):
            number += 1
            yield number, cells
