"""Sheets as people and spreadsheets give them back: nasty texts, legal damage, and the grades that were typed."""

import csv
import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import strategies as st

from curate.review.forms import form
from curate.review.sheets import to_csv

ZH, EN = form("relevance", "zh"), form("relevance", "en")
GRADES = "SABCD"
Rows = Mapping[str, tuple[str, str]]

# fmt: off
PIECES = st.sampled_from([
    "糖尿病", "头痛", "怎么办", "𠮷", "é", "e\u0301", "😀", "👩\u200d⚕️", '"', '""', "'", ",", ";", "\t", "\n", "\r\n",
    "\r", "\n\n", "\u2028", "\x85", "\xa0", "\u3000", " ", "  ", "=", "+", "-", "@", "＝", "＋", "－", "＠", "1",
    "12/8", "3月5日", "1E5", "TRUE", "_x000D_", "_x005F_", "_x0041_", "\x00", "\x0b", "\x1c", "\x7f", "\ufeff",
    "\u200b", "\ud800", "\uffff", "sep=;", '=HYPERLINK("http://x","y")', "' '", "&amp;", "<b>", "a", "Z",
    "_x005F_x0041_",
])
# fmt: on
TEXTS = st.lists(PIECES, max_size=6).map("".join)
NAMES = st.sampled_from(["anna", "张医生", "B.-2", "007", "-x"])


@st.composite
def samples(draw: st.DrawFn) -> dict[str, tuple[str, str]]:
    """Return rows with ids as samples have them."""
    texts = draw(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
    return {f"r{number:05}-{'bcdfgh'[number]}kmnpq": pair for number, pair in enumerate(texts)}


@dataclass
class Table:
    """A sheet as a grid that can be damaged and saved; `at` names the columns."""

    header: list[str]
    rows: list[list[str]]
    at: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, content: bytes) -> "Table":
        """Return the grid of a sheet as it was handed out, read by nothing of ours."""
        header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        return cls(header, rows, {column: at for at, column in enumerate(ZH.columns)})

    def row(self, row_id: str) -> list[str]:
        return next(row for row in self.rows if row[0] == row_id)

    def grade(self, row_id: str, grade: str, note: str = "") -> None:
        self.row(row_id)[self.at["answer"]] = grade
        self.row(row_id)[self.at["note"]] = note


@dataclass(frozen=True)
class Saving:
    """How a program saves a grid."""

    encoding: str = "utf-8-sig"
    separator: str = ","
    newline: str = "\r\n"
    quoting: Literal[0, 1] = csv.QUOTE_MINIMAL
    order: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    extra: tuple[int, ...] = ()
    """Where columns of nobody's are put in."""
    blanks: tuple[int, ...] = ()
    """Before which rows blank ones are put in."""
    headers: Literal["zh", "en", "names"] = "zh"
    loud: bool = False
    """Whether headers and grades are full-width capitals."""
    trimmed: bool = False
    cell_newline: str = "\n"
    names_separator: bool = False

    def save(self, table: Table) -> tuple[bytes, list[int]]:
        """Return the file, and the number of each row of the table, as a spreadsheet that opens it counts."""
        header = {"zh": ZH.headers, "en": EN.headers, "names": {column: column for column in ZH.columns}}[self.headers]
        grid = [[header[column] for column in ZH.columns], *table.rows]
        lines, starts, text = [f"sep={self.separator}"] if self.names_separator else [], [], ""
        text = f"{lines[0]}{self.newline}" if lines else ""
        for number, row in enumerate(grid):
            for blank in range(self.blanks.count(number)):
                text += (self.separator * 3 if blank % 2 else "") + self.newline
            starts.append(number + sum(place <= number for place in self.blanks) + 1)
            text += self._line([self._cell(cell, at, number) for at, cell in enumerate(row)], number)
        return text.encode(self.encoding), starts[1:]

    def _cell(self, cell: str, at: int, number: int) -> str:
        if self.loud and (number == 0 or at == 3):
            cell = wide(cell.upper()) + " "
        if self.trimmed:
            cell = cell.rstrip(" \t\xa0")
        return cell.replace("\n", self.cell_newline)

    def _line(self, cells: Sequence[str], number: int) -> str:
        cells = [cells[at] for at in self.order]
        for place in self.extra:
            cells.insert(place, "of nobody" if number % 2 else "")
        stream = io.StringIO(newline="")
        csv.writer(stream, delimiter=self.separator, quoting=self.quoting, lineterminator="\r\n").writerow(cells)
        return stream.getvalue().removesuffix("\r\n") + self.newline


def wide(text: str) -> str:
    """Return a text with its ASCII letters full-width."""
    return "".join(chr(ord(letter) + 0xFEE0) if letter.isascii() and letter.isalpha() else letter for letter in text)


savings = st.builds(
    Saving,
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030"]),
    separator=st.sampled_from([",", ";", "\t"]),
    newline=st.sampled_from(["\r\n", "\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    order=st.permutations(range(6)).map(tuple),
    extra=st.lists(st.integers(0, 6), max_size=2).map(tuple),
    blanks=st.lists(st.integers(0, 6), max_size=4).map(tuple),
    headers=st.sampled_from(["zh", "en", "names"]),
    loud=st.booleans(),
    trimmed=st.booleans(),
    cell_newline=st.sampled_from(["\n", "\r\n"]),
    names_separator=st.booleans(),
)


def handed_out(rows: Rows, name: str = "anna") -> Table:
    return Table.of(to_csv(ZH, name, rows))


def typed(table: Table, rows: Rows, seed: int) -> dict[str, tuple[str | None, str]]:
    """Fill in some rows; returns row -> grade and note."""
    draw = random.Random(seed)
    given: dict[str, tuple[str | None, str]] = {}
    for row_id in rows:
        grade, note = draw.choice([*GRADES, "", ""]), draw.choice(["", "", 'see "p. 3", ; then', "两行\n备注"])
        table.grade(row_id, draw.choice([grade, grade.lower(), f" {grade}"]), note)
        if grade or note:
            given[row_id] = (grade or None, note)
    return given
