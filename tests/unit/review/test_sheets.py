"""Sheets: whatever a spreadsheet does to them legally, the grades come back; nothing else does."""

import io
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.errors import DataError
from curate.review.sheets import Returned, check, read, signed_by, to_csv, to_xlsx
from curate.review.sheets.files import canonical, defused, difference, plain
from tests.support.damage import EN, NAMES, TEXTS, ZH, Rows, Saving, Table, handed_out, samples, savings, typed

ROWS: Rows = {
    "r00001-bcdfgh": ("糖尿病怎么办", '=HYPERLINK("http://x","y")\n第二行'),
    "r00002-cdfghj": ("12/8", '每天, 不超过六克; "医生"说'),
    "r00003-dfghjk": ("头痛", "'+1'"),
}
FIRST, SECOND, THIRD = ROWS
GRADES = "one of S, A, B, C, D, ? (cannot judge), ! (personal data)"


def back(content: bytes, rows: Rows = ROWS, name: str = "anna", others: tuple[str, ...] = ()) -> Returned:
    return check(read(content, "sheet.csv", ZH), ZH, rows, name, others)


def said(returned: Returned) -> dict[str, tuple[str | None, str]]:
    return {entry.row_id: (entry.answer, entry.note) for entry in returned.answers}


def filled() -> Table:
    table = handed_out(ROWS)
    for row_id in ROWS:
        table.grade(row_id, "A")
    return table


def saved(table: Table) -> bytes:
    return Saving().save(table)[0]


# what is handed out


def test_a_sheet_for_excel() -> None:
    content = to_csv(ZH, "anna", ROWS)
    assert content.startswith(
        "\ufeff编号,查询,段落,等级,备注,评审人\r\nr00001-bcdfgh,糖尿病怎么办,\"'=HYPERLINK(".encode()
    )
    assert content.decode().count("\r\n") == 1 + len(ROWS)
    assert to_csv(EN, "anna", ROWS).decode("utf-8-sig").startswith("row,query,passage,grade,note,assessor\r\n")


@given(TEXTS)
def test_no_cell_is_a_formula_and_every_text_is_restored(text: str) -> None:
    cell = defused(text)
    assert cell.lstrip()[:1] not in set("=+-@＝＋－＠")
    assert cell[:1] not in set("\t\r\n")
    assert difference(cell, text) is None


@pytest.mark.parametrize(
    "text", ["'=1", "'", "''", "=1", "-5", "＝1", "\t=1", " =1", "12/8", "007", "1e5", "3月5日", "true"]
)
def test_a_text_that_a_spreadsheet_would_change_has_the_mark(text: str) -> None:
    assert defused(text) == f"'{text}"


@pytest.mark.parametrize("text", ["糖尿病", "2型糖尿病", "a=b", "3月5日头痛", "Maybe 5 apples"])
def test_a_plain_text_stays_as_it_is(text: str) -> None:
    assert defused(text) == text


# legal damage


@pytest.mark.slow
@given(samples(), NAMES, savings, st.integers())
def test_every_legal_damage_gives_exactly_what_was_typed(rows: Rows, name: str, saving: Saving, seed: int) -> None:
    table = handed_out(rows, name)
    expected = typed(table, rows, seed)
    random.Random(seed).shuffle(table.rows)
    content, lines = saving.save(table)
    returned = back(content, rows, name)
    assert returned.problems == []
    notes = {row_id: (grade, note.replace("\r\n", "\n").strip()) for row_id, (grade, note) in expected.items()}
    assert said(returned) == notes
    starts = dict(zip((row[0] for row in table.rows), lines, strict=True))
    assert all(entry.row == starts[entry.row_id] for entry in returned.answers)
    if expected:
        assert signed_by(read(content, "sheet.csv", ZH), ["other", name]) == name


@pytest.mark.slow
@given(samples(), NAMES, st.integers())
def test_xlsx_gives_exactly_what_was_typed(rows: Rows, name: str, seed: int) -> None:
    table = handed_out(rows, name)
    expected = typed(table, rows, seed)
    book = openpyxl.load_workbook(io.BytesIO(to_xlsx(EN, name, rows)))
    for number, row in enumerate(table.rows, start=2):
        book.active[f"D{number}"], book.active[f"E{number}"] = row[3], row[4]
    returned = back(stored(book), rows, name)
    assert returned.problems == []
    assert said(returned) == expected
    assert [entry.row for entry in returned.answers] == [
        number for number, row_id in enumerate(rows, start=2) if row_id in expected
    ]


def stored(book: Any) -> bytes:
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def test_rows_deleted_and_given_twice_alike_are_legal() -> None:
    table = filled()
    table.rows = [table.row(FIRST), [*table.row(FIRST)], table.row(SECOND)]
    table.rows[1][4] = "sure"
    assert said(back(saved(table))) == {FIRST: ("A", "sure"), SECOND: ("A", "")}


def test_only_the_id_and_the_answer_are_needed() -> None:
    content = b"GRADE;Row ID\r\ns;r00001-bcdfgh\r\n"
    assert said(back(content)) == {FIRST: ("S", "")}


@pytest.mark.parametrize("cell", [" \u200b糖尿病\xa0怎么办", "\ufeff糖尿病 怎么办\r\n", "糖尿病\u3000怎么办"])
def test_what_nobody_sees_is_forgiven(cell: str) -> None:
    rows = {FIRST: ("糖尿病 怎么办", "x")}
    table = handed_out(rows)
    table.grade(FIRST, "A")
    table.row(FIRST)[1] = cell
    assert said(back(saved(table), rows)) == {FIRST: ("A", "")}


def test_a_mark_that_a_spreadsheet_took_away_is_forgiven() -> None:
    table = filled()
    table.rows = [[cell.removeprefix("'") for cell in row] for row in table.rows]
    assert set(said(back(saved(table)))) == set(ROWS)


def test_a_text_longer_than_a_cell_is_forgiven() -> None:
    rows = {FIRST: ("查询", "=" + "𠮷病_x000D_" * 9000)}
    book = openpyxl.load_workbook(io.BytesIO(to_xlsx(ZH, "anna", rows)))
    book.active["D2"] = "B"
    assert said(back(stored(book), rows)) == {FIRST: ("B", "")}


def test_greek_letters_of_utf8_are_not_taken_for_chinese_nor_the_other_way() -> None:
    for encoding in ("gb18030", "utf-8"):
        for text in ("头痛", "πόνος", "é"):
            rows = {FIRST: (text, text)}
            content = f"row,grade,query\r\n{FIRST},A,{text}\r\n".encode(encoding)
            assert said(back(content, rows)) == {FIRST: ("A", "")}, (encoding, text)


# illegal changes

ILLEGAL: dict[str, tuple[Callable[[Table], None], str]] = {}


def illegal(column: str) -> Callable[[Callable[[Table], None]], Callable[[Table], None]]:
    def keep(change: Callable[[Table], None]) -> Callable[[Table], None]:
        ILLEGAL[change.__name__] = change, column
        return change

    return keep


@illegal("段落")
def edited(table: Table) -> None:
    table.row(SECOND)[2] = table.row(SECOND)[2].replace("不", "")


@illegal("查询")
def emptied(table: Table) -> None:
    table.row(SECOND)[1] = ""


@illegal("编号")
def unknown_row(table: Table) -> None:
    table.row(SECOND)[0] = "r00002-xxxxxx"


@illegal("编号")
def id_taken_for_a_number(table: Table) -> None:
    table.row(SECOND)[0] = "2.0E+05"


@illegal("编号")
def id_taken_for_a_date(table: Table) -> None:
    table.row(SECOND)[0] = "2026/11/21"


@illegal("编号")
def id_gone(table: Table) -> None:
    table.row(SECOND)[0] = ""


@illegal("等级")
def unknown_grade(table: Table) -> None:
    table.grade(SECOND, "E")


@illegal("评审人")
def other_assessor(table: Table) -> None:
    table.row(SECOND)[5] = "bob"


@illegal("编号")
def foreign_row(table: Table) -> None:
    table.row(SECOND)[0] = OTHERS


OTHERS = "r00009-zzzzzz"


@pytest.mark.slow
@given(savings, st.sampled_from(sorted(ILLEGAL)))
def test_an_illegal_change_is_reported_and_holds_back_its_row_alone(saving: Saving, name: str) -> None:
    table = filled()
    change, column = ILLEGAL[name]
    change(table)
    content, lines = saving.save(table)
    sheet = read(content, "sheet.csv", ZH)
    returned = check(sheet, ZH, ROWS, "anna", {OTHERS})
    canonical_name = {header: column for column, header in ZH.headers.items()}[column]
    assert [(problem.row, problem.column) for problem in returned.problems] == [
        (lines[1], sheet.headers[canonical_name])
    ]
    assert said(returned) == {FIRST: ("A", ""), THIRD: ("A", "")}


@pytest.mark.slow
@given(savings)
def test_swapped_ids_are_reported_on_both_lines(saving: Saving) -> None:
    table = filled()
    first, second = table.row(FIRST), table.row(SECOND)
    first[0], second[0] = second[0], first[0]
    content, lines = saving.save(table)
    returned = back(content)
    assert {problem.row for problem in returned.problems} == set(lines[:2])
    assert said(returned) == {THIRD: ("A", "")}


@pytest.mark.slow
@given(savings, st.permutations([0, 1, 2, 3]))
def test_a_contradiction_is_reported_on_its_second_line(saving: Saving, order: list[int]) -> None:
    table = filled()
    table.rows.append([*table.row(SECOND)])
    table.rows[3][3] = "B"
    table.rows = [table.rows[at] for at in order]
    content, lines = saving.save(table)
    returned = back(content)
    both = sorted(line for line, row in zip(lines, table.rows, strict=True) if row[0] == SECOND)
    assert [problem.row for problem in returned.problems] == both[1:]
    assert f"as in row {both[0]}" in returned.problems[0].expected
    assert said(returned) == {FIRST: ("A", ""), THIRD: ("A", "")}


@pytest.mark.slow
@given(samples(), st.data())
def test_every_edited_text_is_found(rows: Rows, data: st.DataObject) -> None:
    row_id, column = data.draw(st.sampled_from(sorted(rows))), data.draw(st.sampled_from([0, 1]))
    new = data.draw(TEXTS)
    table = handed_out(rows)
    for each in rows:
        table.grade(each, "A")
    table.row(row_id)[1 + column] = plain(new)
    returned = back(saved(table), rows)
    same = canonical(new).removeprefix("'").strip() == canonical(rows[row_id][column]).removeprefix("'").strip()
    if not same:
        assert [problem.row_id for problem in returned.problems] == [row_id]
    assert {*said(returned), *(problem.row_id for problem in returned.problems)} == set(rows)


def test_all_problems_at_once_by_line_with_what_was_found() -> None:
    table = filled()
    for change in (unknown_grade, edited, other_assessor):
        change(table)
    table.row(THIRD)[0] = "45000"
    table.row(FIRST)[3] = "糖尿病怎么办"
    returned = back(saved(table))
    assert [problem.fault("s").finding for problem in returned.problems] == [
        f"s:2 ({FIRST}), column 等级: found a text of 6 characters, expected {GRADES}",
        (
            f"s:3 ({SECOND}), column 段落: found a text that was edited, from character 5 on, expected the text as "
            "it was handed out; if nobody edited it, save the sheet as CSV UTF-8 or as .xlsx"
        ),
        f"s:3 ({SECOND}), column 等级: found 'E', expected {GRADES}",
        f"s:3 ({SECOND}), column 评审人: found 'bob', expected 'anna'",
        (
            "s:4, column 编号: found '45000', which a spreadsheet made of it as a number or a date, expected the id of "
            "a row; copy the ids again from the sheet as it was handed out"
        ),
    ]
    assert returned.answers == []


def test_cells_that_no_header_covers_are_reported() -> None:
    content = f"assessor,row,grade,note\r\nanna,{FIRST},A,a, b\r\nanna,{SECOND},B,fine\r\n".encode()
    returned = back(content)
    assert [(problem.row, problem.found) for problem in returned.problems] == [(2, "1 more cells than the header has")]
    assert said(returned) == {SECOND: ("B", "fine")}


@pytest.mark.slow
@given(samples(), savings, st.randoms(use_true_random=False))
def test_no_problem_repeats_a_text(rows: Rows, saving: Saving, draw: random.Random) -> None:
    secret = "机密病历某某某的诊断是什么"
    rows = dict.fromkeys(rows, (secret, secret + "甲"))
    table = handed_out(rows)
    for row in table.rows:
        draw.shuffle(row)
        row[3] = row[3] or "A"
    try:
        problems = back(saving.save(table)[0], rows).problems
    except DataError as error:
        problems, text = [], str(error)
    else:
        text = "".join(map(str, problems))
    assert secret not in text


def test_numbers_and_dates_in_xlsx_ids_are_named() -> None:
    book = openpyxl.load_workbook(io.BytesIO(to_xlsx(ZH, "anna", ROWS)))
    book.active["A2"], book.active["A3"] = 2e5, datetime(2026, 11, 21, tzinfo=UTC).replace(tzinfo=None)
    book.active["D2"] = book.active["D3"] = book.active["D4"] = "a"
    returned = back(stored(book))
    assert [(problem.row, problem.found.partition(",")[0]) for problem in returned.problems] == [
        (2, "'200000'"),
        (3, "'2026-11-21 00:00:00'"),
    ]
    assert said(returned) == {THIRD: ("A", "")}


# files that are no sheets

HEADER = "编号,查询,段落,等级,备注,评审人\r\n"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "found no header"),
        (b"\xef\xbb\xbf\r\n,,,\r\n", "row 2: found no column '编号'"),
        (b"\x89PNG\r\n\x1a\n\0\0", "another kind"),
        (b"\xff\xfe\xfd", "not text"),
        (b"\xff\x80\xfd row", "not text"),
        (b"PK\x03\x04 damaged", "damaged"),
        (b"\xd0\xcf\x11\xe0 old", ".xls or a file with a password"),
        ("r1,糖尿病,x,A,,anna\r\n".encode(), "row 1: found no column '编号' among 6"),
        ("编号,查询\r\nr1,x\r\n".encode(), "found no column '等级' among 2"),
        ("\r\n编号,等级,GRADE\r\n".encode(), "row 2: found '等级' in columns 2 and 3"),
        (f'{HEADER}r1,"x\r\ny,z\r\n'.encode(), "line 2: found a row with a quotation mark"),
        (f'{HEADER}r1,"x"y,z\r\n'.encode(), "line 2: found a row with a quotation mark"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused_in_one_sentence(content: bytes, found: str) -> None:
    with pytest.raises(DataError) as caught:
        read(content, "sheet.csv", ZH)
    message = str(caught.value)
    assert message.startswith("sheet.csv")
    assert found in message
    assert "expected" in message
    assert ";" in message
    assert "糖尿病" not in message


@given(st.binary(max_size=200), st.sampled_from([b"", b"PK\x03\x04", b"\xff\xfe", HEADER.encode()]))
def test_no_bytes_raise_anything_else(content: bytes, begin: bytes) -> None:
    with suppress(DataError):
        read(begin + content, "sheet.csv", ZH)


def test_a_zip_that_is_no_workbook_is_refused() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(DataError, match="zip file"):
        read(stream.getvalue(), "sheet.xlsx", ZH)


# xlsx


def test_the_workbook_is_made_for_reading_and_choosing() -> None:
    content = to_xlsx(ZH, "anna", ROWS)
    page = openpyxl.load_workbook(io.BytesIO(content)).active
    assert page.freeze_panes == "A2"
    assert page.title == "相关性评审"
    assert {cell.number_format for row in page for cell in row} == {"@"}
    assert all(cell.alignment.wrap_text for row in page for cell in row)
    assert {cell.data_type for row in page for cell in row if cell.value} == {"s"}
    (choice,) = page.data_validations.dataValidation
    assert (choice.formula1, str(choice.sqref)) == ('"S,A,B,C,D"', "D2:D4")


def test_a_workbook_holds_no_time() -> None:
    with zipfile.ZipFile(io.BytesIO(to_xlsx(ZH, "anna", ROWS))) as archive:
        assert {part.date_time for part in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert b"dcterms:W3CDTF" not in archive.read("docProps/core.xml")


def test_blank_rows_and_other_pages_of_a_workbook_are_passed_over() -> None:
    book = openpyxl.load_workbook(io.BytesIO(to_xlsx(ZH, "anna", ROWS)))
    book.active["D4"] = "ｂ"
    book.active.insert_rows(3, 2)
    book.create_sheet("mine", 0)["A1"] = "row"
    returned = back(stored(book))
    assert [(entry.row_id, entry.answer, entry.row) for entry in returned.answers] == [(THIRD, "B", 6)]


def test_a_formula_without_a_value_is_named_and_holds_back_its_row_alone() -> None:
    book = openpyxl.load_workbook(io.BytesIO(to_xlsx(ZH, "anna", ROWS)))
    book.active["D2"], book.active["D3"], book.active["D4"] = '=IF(1,"S","A")', "A", "=D3"
    book.create_sheet("mine")["A1"] = "=1+1"
    returned = back(stored(book))
    assert [problem.fault("s").finding for problem in returned.problems] == [
        (
            f"s:{row} ({row_id}), column 等级: found a formula without a stored value, expected its value in cell "
            f"D{row} of sheet '相关性评审'; open the file in a spreadsheet program and save it, or paste values over "
            "formulas"
        )
        for row, row_id in ((2, FIRST), (4, THIRD))
    ]
    assert said(returned) == {SECOND: ("A", "")}


def test_titles_above_the_header_are_passed_over() -> None:
    book = openpyxl.load_workbook(io.BytesIO(to_xlsx(ZH, "anna", ROWS)))
    book.active.insert_rows(1, 3)
    book.active["A1"], book.active["A2"], book.active["B2"] = "第一批", "评审人", "anna"
    book.active["D5"] = "S"
    returned = back(stored(book))
    assert [(entry.row_id, entry.answer, entry.row) for entry in returned.answers] == [(FIRST, "S", 5)]


def test_aliases_of_a_form_are_answers() -> None:
    table = filled()
    table.grade(FIRST, "Yes ")
    form = replace(ZH, aliases={"yes": "S"})
    sheet = read(saved(table), "sheet.csv", form)
    assert said(check(sheet, form, ROWS, "anna"))[FIRST] == ("S", "")
