"""Grades of any scale in a sheet: what is shown, what is typed, and what spreadsheets make of it."""

import csv
import io
from collections.abc import Mapping
from datetime import date, time

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.scale import FIVE, Scale, declared
from curate.review.forms import Form, explained, form
from curate.review.sheets import Returned, check, read, to_csv, to_xlsx
from tests.support.scales import scales

TREC = declared(["3", "2", "1", "0"], relevant_from="2")
BINARY = declared(["yes", "no"], relevant_from="yes")
SEVEN = declared(["完全相关", "很相关", "较相关", "一般", "略相关", "不相关", "无效"], relevant_from="较相关")
TEN = declared([str(number) for number in range(10, 0, -1)], relevant_from="7")
SIGNED = declared(["+1", "0", "-1"], relevant_from="+1")
SHARES = declared(["100%", "50%", "0%"], relevant_from="50%")
HALVES = declared(["1", "1/2", "0.25", "0"], relevant_from="1/2")
SIGNS = "? (cannot judge), ! (personal data)"


def asked(scale: Scale, language: str = "zh") -> Form:
    """Return the form of a sample on a scale, as `Sample.form` does."""
    return explained(form("relevance", language, scale), {label: f"{label} 的含义" for label in scale.labels})


def rows(count: int) -> dict[str, tuple[str, str]]:
    return {f"r{number:05}-bcdfgh": (f"查询{number}", f"段落{number}") for number in range(count)}


def as_csv(scale: Scale, cells: list[str]) -> Returned:
    """Return what comes back of a sheet whose rows have these grades, saved as CSV."""
    texts, asks = rows(len(cells)), asked(scale)
    header, *lines = csv.reader(io.StringIO(to_csv(asks, "anna", texts).decode("utf-8-sig"), newline=""))
    stream = io.StringIO(newline="")
    filled = ([*line[:3], cell, *line[4:]] for line, cell in zip(lines, cells, strict=True))
    csv.writer(stream).writerows([header, *filled])
    return check(read(stream.getvalue().encode(), "anna.csv", asks), asks, texts, "anna")


def as_xlsx(scale: Scale, cells: list[object], formats: Mapping[int, str] | None = None) -> Returned:
    """Return what comes back of a sheet whose rows have these values, in cells of these number formats."""
    texts, asks = rows(len(cells)), asked(scale)
    book = openpyxl.load_workbook(io.BytesIO(to_xlsx(asks, "anna", texts)))
    for number, value in enumerate(cells):
        cell = book.worksheets[0].cell(number + 2, 4, value)
        cell.number_format = (formats or {}).get(number, cell.number_format)
    stream = io.BytesIO()
    book.save(stream)
    return check(read(stream.getvalue(), "anna.xlsx", asks), asks, texts, "anna")


def answers(returned: Returned) -> list[str | None]:
    assert list(map(str, returned.problems)) == []
    return [entry.answer for entry in returned.answers]


@pytest.mark.parametrize(
    ("scale", "typed", "meant"),
    [
        (TREC, ["3", " ３", "3.0", "3,00", "03", "+3", "'", "2 "], ["3", "3", "3", "3", "3", "3", None, "2"]),
        (BINARY, ["yes", "YES", "Ｙｅｓ", "TRUE", "no", "False"], ["yes", "yes", "yes", "yes", "no", "no"]),
        (SEVEN, ["完全相关", " 很相关", "无 效"], ["完全相关", "很相关", "无效"]),
        (TEN, ["10", "10.0", "1", "1 0"], ["10", "10", "1", None]),
        (SIGNED, ["1", "+1", "-1", "−1", "－１", "0"], ["+1", "+1", "-1", "-1", "-1", "0"]),
        (SHARES, ["100%", "1", "0.5", "50.00%", "0"], ["100%", "100%", "50%", "50%", "0%"]),
        (HALVES, ["1/2", "1", "0,25", "2026-01-02"], ["1/2", "1", "0.25", None]),
        (FIVE, ["s", "Ａ", "TRUE", "B+"], ["S", "A", None, None]),
    ],
)
def test_what_is_typed_is_read_where_it_can_only_be_one_grade(
    scale: Scale, typed: list[str], meant: list[str | None]
) -> None:
    returned = as_csv(scale, typed)
    assert {entry.row - 2: entry.answer for entry in returned.answers} == {
        place: label for place, label in enumerate(meant) if label is not None
    }
    refused = [place for place, label in enumerate(meant) if label is None]
    assert [problem.row - 2 for problem in returned.problems] == refused
    assert all(problem.expected == f"one of {', '.join(scale.labels)}, {SIGNS}" for problem in returned.problems)


@pytest.mark.parametrize("cell", ["4", "-1", "3.5", "0.3", "33", "1 2", "TRUE", "三", "yes", "3分"])
def test_a_grade_that_is_none_is_named_with_its_row_and_the_labels(cell: str) -> None:
    [problem] = as_csv(TREC, ["3", cell]).problems
    assert problem.fault("s").finding.startswith(f"s:3 (r00001-bcdfgh), column 等级 (3 / 2 / 1 / 0): found {cell!r}")
    assert problem.fault("s").finding.endswith(f"expected one of 3, 2, 1, 0, {SIGNS}")


def test_a_date_is_named_as_what_a_spreadsheet_made() -> None:
    [problem] = as_csv(HALVES, ["1月2日"]).problems
    assert problem.found == "'1月2日', which a spreadsheet made of it as a number or a date"
    assert problem.expected == f"one of 1, 1/2, 0.25, 0, {SIGNS}"


def test_numbers_of_a_workbook_in_any_format() -> None:
    shown = {1: "0.00", 2: "yyyy-mm-dd", 3: "yyyy-mm-dd", 4: "0%"}
    assert answers(as_xlsx(TREC, [3, 2, 1, 0, 3, 2.0, "1"], shown)) == ["3", "2", "1", "0", "3", "2", "1"]
    assert answers(as_xlsx(SHARES, [0.5, 1, "50%"], {0: "0%"})) == ["50%", "100%", "50%"]
    assert answers(as_xlsx(BINARY, [True, False, "No"])) == ["yes", "no", "no"]


@pytest.mark.parametrize("value", [date(1900, 2, 3), date(2026, 1, 3), time(3), time(0, 3), 2.5, True])
def test_a_date_of_a_workbook_is_no_grade(value: object) -> None:
    returned = as_xlsx(TREC, ["3", value])
    assert [entry.answer for entry in returned.answers] == ["3"]
    assert [problem.row for problem in returned.problems] == [3]


def test_true_is_no_grade_where_it_could_be_another() -> None:
    scale = declared(["true", "yes", "no"], relevant_from="yes")
    assert [entry.answer for entry in as_csv(scale, ["TRUE", "yes", "FALSE"]).answers] == ["true", "yes"]


@pytest.mark.parametrize("scale", [TREC, BINARY, SEVEN])
def test_a_sheet_names_the_grades_and_a_workbook_says_what_they_mean(scale: Scale) -> None:
    asks = asked(scale, "en")
    assert f"grade ({' / '.join(scale.labels)})" in to_csv(asks, "anna", rows(2)).decode("utf-8-sig").splitlines()[0]
    page, explained = openpyxl.load_workbook(io.BytesIO(to_xlsx(asks, "anna", rows(2)))).worksheets
    assert explained.title == "meaning"
    assert [[cell.value for cell in row] for row in explained.rows] == [
        ["grade", "meaning"],
        *([label, f"{label} 的含义"] for label in scale.labels),
    ]
    [rule] = page.data_validations.dataValidation
    assert (rule.formula1, str(rule.sqref)) == (f"'meaning'!$A$2:$A${1 + len(scale.labels)}", "D2:D3")


def test_the_five_grades_have_the_sheet_that_they_had() -> None:
    plain = form("relevance", "en", FIVE)
    [page] = openpyxl.load_workbook(io.BytesIO(to_xlsx(plain, "anna", rows(1)))).worksheets
    assert page.data_validations.dataValidation[0].formula1 == '"S,A,B,C,D"'
    assert page["D1"].value == "grade"


@pytest.mark.slow
@given(scales(), st.sampled_from(["csv", "xlsx"]), st.randoms(use_true_random=False))
def test_labels_of_any_scale_come_back(scale: Scale, kind: str, chance: object) -> None:
    cells = [*scale.labels, *scale.labels]
    chance.shuffle(cells)  # type: ignore[attr-defined]
    assert answers(as_csv(scale, cells) if kind == "csv" else as_xlsx(scale, [*cells])) == cells
