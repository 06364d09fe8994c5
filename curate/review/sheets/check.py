"""What a sheet that came back says, and everything in it that cannot be taken."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from curate.core.scale import folded
from curate.review.forms import Form
from curate.review.sheets.files import canonical, defused, difference, fold, like_value, plain, seen
from curate.review.sheets.sheet import Sheet, SheetLine

_SHOWN = 24
"""Characters of a cell that may be repeated in a problem: a longer one could be a text of the corpus."""
_ID = re.compile(r"(?=.*\d)[\w.:/+-]+", re.ASCII)
_MADE = "which a spreadsheet made of it as a number or a date"
_BOX = ("true", "false")
_TICKED = (("yes", "no"), ("y", "n"), ("是", "否"))
"""Pairs of answers that a box to tick gives as TRUE and FALSE."""


@dataclass(frozen=True, slots=True)
class SheetEntry:
    """What a person wrote in one row."""

    row_id: str
    answer: str | None
    """One of the form's answers; None if there is only a note."""
    note: str
    row: int
    """Number of the row as a spreadsheet counts, from 1."""


@dataclass(frozen=True, slots=True)
class SheetProblem:
    """Why a row cannot be taken."""

    row: int
    """Number of the row as a spreadsheet counts, from 1."""
    column: str
    """Its header as the file has it."""
    found: str
    """Never a text of the corpus."""
    expected: str
    row_id: str | None = None
    """The row that is held back; None if it is not known which."""

    def __str__(self) -> str:
        name = "" if self.row_id is None else f" ({self.row_id})"
        return f"row {self.row}{name}, {self.column}: found {self.found}, expected {self.expected}"


@dataclass(frozen=True, slots=True)
class Returned:
    """What came back in a sheet."""

    answers: Sequence[SheetEntry]
    """One a row, in the order of the sheet, without the rows that have a problem."""
    problems: Sequence[SheetProblem]
    """All of them, by row."""


def check(
    sheet: Sheet, form: Form, rows: Mapping[str, Sequence[str]], assessor: str, others: Collection[str] = ()
) -> Returned:
    """Return the answers of a person's sheet, and what is wrong with the rows that have none because of it.

    `rows` are the person's, row_id -> texts in the order of the form, with ids that differ by more than their case;
    `others` are the ids of rows of other people.
    A row without answer and note says nothing; one that stands there twice with the same answer is one.
    """
    checker = _Checker(sheet, form, rows, assessor, others)
    for line in sheet.lines:
        checker.take(line)
    return checker.returned()


def signed_by(sheet: Sheet, names: Iterable[str]) -> str | None:
    """Return the one of `names` that stands in most rows of a sheet; None if none does."""
    known = _index(names)
    counts = Counter(known[name] for line in sheet.lines if (name := fold(line.cells.get("assessor", ""))) in known)
    return min(counts, key=lambda name: (-counts[name], name), default=None)


def _index(names: Iterable[str]) -> dict[str, str]:
    """Return what a spreadsheet may have made of a name -> the name."""
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

    def __post_init__(self) -> None:
        self.mine, self.theirs = _index(self.rows), _index(self.others)
        answers = {folded(answer): answer for answer in self.form.answers}
        aliases = {folded(word): answer for word, answer in self.form.aliases.items()}
        ticks = {
            box: answers[each]
            for pair in _TICKED
            for box, each in zip(_BOX, pair, strict=True)
            if answers.keys() >= {*pair} and not answers.keys() & {*_BOX}
        }
        self.known = ticks | aliases | answers
        self.me = _index([self.assessor])

    def take(self, line: SheetLine) -> None:
        """Note what a line says, or its problems."""
        cells = line.cells
        if not any(canonical(cells.get(column, "")) for column in self.form.columns if column != "assessor"):
            return
        row_id = self.mine.get(fold(cells["row_id"]))
        if row_id is None:
            self._problem(line, "row_id", None, *self._stranger(cells["row_id"]))
            return
        for column, found, expected in self._faults(line, row_id):
            self._problem(line, column, row_id, found, expected)
        answer, note = self._answer(cells["answer"]), _note(cells.get("note", ""))
        if answer or note:
            self.entries.setdefault(row_id, []).append(SheetEntry(row_id, answer, note, line.number))

    def returned(self) -> Returned:
        """Return everything that was noted."""
        merged = [self._merged(entries) for entries in self.entries.values()]
        held = {problem.row_id for problem in self.problems}
        answers = sorted((entry for entry in merged if entry.row_id not in held), key=lambda entry: entry.row)
        return Returned(answers, sorted(self.problems, key=lambda problem: (problem.row, problem.column)))

    def _problem(self, line: SheetLine, column: str, row_id: str | None, found: str, expected: str) -> None:
        self.problems.append(SheetProblem(line.number, self.sheet.headers[column], found, expected, row_id))

    def _stranger(self, cell: str) -> tuple[str, str]:
        """Return what was found instead of a row's id, and what was expected."""
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
        """Yield column, found and expected of everything that is wrong with a line of a known row."""
        cells, texts = line.cells, self.rows[row_id]
        if line.surplus:
            yield "row_id", f"{line.surplus} more cells than the header has", "quotes around a cell with a separator"
        for column, text in zip(self.form.texts, texts, strict=True):
            at = difference(cells[column], text) if column in cells else None
            if at is not None:
                yield column, f"a text that was edited, from character {at} on", "the text as it was handed out"
        if fold(cells["answer"]) and self._answer(cells["answer"]) is None:
            made = f", {_MADE}" if _converted(cells["answer"]) else ""
            yield "answer", f"{self._shown(cells['answer'], texts)}{made}", f"one of {', '.join(self.form.answers)}"
        name = cells.get("assessor", "")
        if fold(name) and fold(name) not in self.me:
            yield "assessor", self._shown(name, texts), repr(self.assessor)

    def _answer(self, cell: str) -> str | None:
        """Return the answer in a cell, as it was typed or as a spreadsheet keeps it; None if it is none."""
        return self.known.get(folded(seen(cell)))

    def _shown(self, cell: str, texts: Sequence[str] = ()) -> str:
        """Return a cell for a problem, or only how long it is where it could be a text of the corpus."""
        word = canonical(cell)
        long = len(word) > _SHOWN or (len(word) > 3 and any(word in canonical(text) for text in texts))
        return f"a text of {len(word)} characters" if long or self.form.private else repr(word)

    def _shown_id(self, cell: str) -> str:
        word = canonical(cell)
        return self._shown(word) if _ID.fullmatch(word) or like_value(word) else f"a text of {len(word)} characters"

    def _merged(self, entries: Sequence[SheetEntry]) -> SheetEntry:
        """Return one entry for all lines of a row; a problem for every line that contradicts the first."""
        first = next((entry for entry in entries if entry.answer), entries[0])
        for other in entries:
            if other.answer and other.answer != first.answer:
                where = f"{first.answer!r} as in row {first.row}, or one row of this id"
                problem = SheetProblem(other.row, self.sheet.headers["answer"], repr(other.answer), where, first.row_id)
                self.problems.append(problem)
        notes = dict.fromkeys(entry.note for entry in entries if entry.note)
        return SheetEntry(first.row_id, first.answer, "\n".join(notes), first.row)


def _converted(cell: str) -> bool:
    """Say whether a cell holds a date, a time or a truth value, which nobody types for an answer."""
    return like_value(canonical(cell)) and isinstance(folded(seen(cell)), str)


def _note(cell: str) -> str:
    return plain(cell).strip() if canonical(cell) else ""
