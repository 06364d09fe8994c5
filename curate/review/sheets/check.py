"""Answers of a filled-in sheet, and all problems that prevent the import of its rows."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from curate.core.errors import TableFault
from curate.core.figures import Record, figure
from curate.core.scale import folded
from curate.review.forms import Form
from curate.review.sheets.files import canonical, defused, difference, fold, like_value, plain, seen
from curate.review.sheets.sheet import Sheet, SheetLine
from curate.tables.readers.excel import SAVE, UNSTORED

_HANDED_OUT = "the text as it was handed out; if nobody edited it, save the sheet as CSV UTF-8 or as .xlsx"
_SHOWN = 24
"""Maximum characters of a cell quoted in a problem, since a longer one could be a text of the corpus."""
_ID = re.compile(r"(?=.*\d)[\w.:/+-]+", re.ASCII)
_MADE = "which a spreadsheet made of it as a number or a date"
_BOX = ("true", "false")
OTHERS = "correct the row, or import the others with --keep-good-rows"
SIGNS = {"?": "cannot_judge", "!": "personal_data"}
"""Sign in place of an answer -> flag, unless it is one of the answers."""
_TICKED = (("yes", "no"), ("y", "n"), ("是", "否"))
"""Pairs of answers that a checkbox stores as TRUE and FALSE."""


@dataclass(frozen=True, slots=True)
class SheetEntry:
    """A person's entry in one row."""

    row_id: str
    answer: str | None
    """One of the form's answers; None if there is only a note."""
    note: str
    row: int
    """Number of the row as a spreadsheet counts, from 1."""
    flag: str = ""
    """`cannot_judge` for `?` in place of an answer, `personal_data` for `!`; empty without one."""


class SheetProblem(Record, schema_name="problem"):
    """Reason why a row cannot be imported."""

    row: int = figure("number of the row as a spreadsheet counts, from 1")
    column: str = figure("header of the column in the file")
    found: str = figure("content of the cell; never a text of the corpus")
    expected: str = figure("valid contents of the cell")
    row_id: str | None = figure("id of the row, which is not imported; null if it is unknown", default=None)

    def fault(self, file: object) -> TableFault:
        """Return the problem as an error lists it."""
        row = f"{self.row}" if self.row_id is None else f"{self.row} ({self.row_id})"
        return TableFault(f"{file}:{row}, column {self.column}", self.found, self.expected, OTHERS)


@dataclass(frozen=True, slots=True)
class Returned:
    """Contents of a filled-in sheet."""

    answers: Sequence[SheetEntry]
    """One per row, in sheet order, without rows that have a problem."""
    problems: Sequence[SheetProblem]
    """All problems, sorted by row."""
    empty: int = 0
    """Rows with neither answer nor note."""


def check(
    sheet: Sheet, form: Form, rows: Mapping[str, Sequence[str]], assessor: str, others: Collection[str] = ()
) -> Returned:
    """Return the answers in an assessor's sheet, and the problems of rows that cannot be imported.

    `rows` is row_id -> texts in the order of the form, for the assessor's rows; ids must differ by more than case.
    `others` are the ids of other assessors' rows. A row without answer and note is ignored; a row repeated with the
    same answer counts once.
    """
    checker = _Checker(sheet, form, rows, assessor, others)
    for line in sheet.lines:
        checker.take(line)
    return checker.returned()


def signed_by(sheet: Sheet, names: Iterable[str]) -> str | None:
    """Return the one of `names` that occurs in most rows of a sheet; None if none does."""
    by_folded = _index(names)
    counts = Counter(
        by_folded[name] for line in sheet.lines if (name := fold(line.cells.get("assessor", ""))) in by_folded
    )
    return min(counts, key=lambda name: (-counts[name], name), default=None)


def _index(names: Iterable[str]) -> dict[str, str]:
    """Return folded form of a name, as a spreadsheet may have changed it -> name."""
    return {form: name for name in names for form in (fold(name), fold(defused(name)))}


@dataclass
class _Checker:
    sheet: Sheet
    form: Form
    rows: Mapping[str, Sequence[str]]
    assessor: str
    others: Collection[str]
    entries: dict[str, list[SheetEntry]] = field(default_factory=dict)
    problems: list[SheetProblem] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.mine, self.theirs = _index(self.rows), _index(self.others)
        answers = {folded(answer): answer for answer in self.form.answers}
        aliases = {folded(word): answer for word, answer in self.form.aliases.items()}
        ticks = {
            box: answers[word]
            for pair in _TICKED
            for box, word in zip(_BOX, pair, strict=True)
            if answers.keys() >= {*pair} and not answers.keys() & {*_BOX}
        }
        self.known = ticks | aliases | answers
        self.me = _index([self.assessor])

    def take(self, line: SheetLine) -> None:
        """Record the entry of a line, or its problems."""
        cells = line.cells
        if line.unstored:
            row_id = self.mine.get(fold(cells["row_id"]))
            for column, cell in line.unstored.items():
                self._problem(line, column, row_id, UNSTORED, f"its value in {cell}; {SAVE}")
            return
        if not any(canonical(cells.get(column, "")) for column in self.form.columns if column != "assessor"):
            return
        row_id = self.mine.get(fold(cells["row_id"]))
        if row_id is None:
            self._problem(line, "row_id", None, *self._stranger(cells["row_id"]))
            return
        for column, fault, expected in self._faults(line, row_id):
            self._problem(line, column, row_id, fault, expected)
        answer, note = self._answer(cells["answer"]), cells.get("note", "")
        note = plain(note).strip() if canonical(note) else ""
        flag = "" if answer else SIGNS.get(fold(cells["answer"]), "")
        if answer or note or flag:
            self.entries.setdefault(row_id, []).append(SheetEntry(row_id, answer, note, line.number, flag))
        else:
            self.empty.add(row_id)

    def returned(self) -> Returned:
        """Return all entries and problems."""
        merged = [self._merged(entries) for entries in self.entries.values()]
        held = {problem.row_id for problem in self.problems}
        answers = sorted((entry for entry in merged if entry.row_id not in held), key=lambda entry: entry.row)
        problems = sorted(self.problems, key=lambda problem: (problem.row, problem.column))
        return Returned(answers, problems, len(self.empty - self.entries.keys() - held))

    def _problem(self, line: SheetLine, column: str, row_id: str | None, fault: str, expected: str) -> None:
        self.problems.append(SheetProblem(line.number, self.sheet.headers[column], fault, expected, row_id))

    def _stranger(self, cell: str) -> tuple[str, str]:
        """Return (found, expected) of the problem in a cell `row_id` that is not the id of a row of the assessor."""
        if not canonical(cell):
            return "no id", "the id that the row was handed out with"
        if fold(cell) in self.theirs:
            return f"{self._shown_id(cell)}, a row of another person", f"a row of {self.assessor}"
        if like_value(canonical(cell)):
            return (
                f"{self._shown_id(cell)}, {_MADE}",
                "the id of a row; copy the ids again from the sheet as it was handed out",
            )
        return self._shown_id(cell), "the id of a row of this sample"

    def _faults(self, line: SheetLine, row_id: str) -> Iterator[tuple[str, str, str]]:
        """Yield (column, found, expected) of every fault in the line of a known row."""
        cells, texts = line.cells, self.rows[row_id]
        if line.surplus:
            yield "row_id", f"{line.surplus} more cells than the header has", "quotes around a cell with a separator"
        for column, text in zip(self.form.texts, texts, strict=True):
            position = difference(cells[column], text) if column in cells else None
            if position is not None:
                yield column, f"a text that was edited, from character {position} on", _HANDED_OUT
        is_empty = fold(cells["answer"]) in ("", *SIGNS)
        if not is_empty and self._answer(cells["answer"]) is None:
            # a date, a time or a truth value is never typed as an answer
            converted = like_value(canonical(cells["answer"])) and isinstance(folded(seen(cells["answer"])), str)
            remark = f", {_MADE}" if converted else ""
            yield "answer", f"{self._quoted(cells['answer'], texts)}{remark}", f"one of {', '.join(self._permitted())}"
        name = cells.get("assessor", "")
        if fold(name) and fold(name) not in self.me:
            yield "assessor", self._quoted(name, texts), repr(self.assessor)

    def _permitted(self) -> Iterator[str]:
        """Yield the answers, then the signs in place of one; a check of masking has an answer for personal data."""
        yield from self.form.answers
        if not self.form.private:
            yield from (f"{sign} ({flag.replace('_', ' ')})" for sign, flag in SIGNS.items() if sign not in self.known)

    def _answer(self, cell: str) -> str | None:
        """Return the answer in a cell, as typed or as stored by a spreadsheet; None if it is not an answer."""
        return self.known.get(folded(seen(cell)))

    def _quoted(self, cell: str, texts: Sequence[str] = ()) -> str:
        """Return a cell for a problem, or only its length if it could be a text of the corpus."""
        word = canonical(cell)
        long = len(word) > _SHOWN or (len(word) > 3 and any(word in canonical(text) for text in texts))
        return f"a text of {len(word)} characters" if long or self.form.private else repr(word)

    def _shown_id(self, cell: str) -> str:
        word = canonical(cell)
        return self._quoted(word) if _ID.fullmatch(word) or like_value(word) else f"a text of {len(word)} characters"

    def _merged(self, entries: Sequence[SheetEntry]) -> SheetEntry:
        """Return one entry for all lines of a row; record a problem for every line that contradicts the first."""
        first = next((entry for entry in entries if entry.answer), entries[0])
        for duplicate in entries:
            if duplicate.answer and duplicate.answer != first.answer:
                where = f"{first.answer!r} as in row {first.row}, or one row of this id"
                problem = SheetProblem(
                    duplicate.row, self.sheet.headers["answer"], repr(duplicate.answer), where, first.row_id
                )
                self.problems.append(problem)
        notes = dict.fromkeys(entry.note for entry in entries if entry.note)
        return SheetEntry(first.row_id, first.answer, "\n".join(notes), first.row, first.flag)
