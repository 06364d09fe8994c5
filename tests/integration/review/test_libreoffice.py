"""A real LibreOffice opens the sheets, saves them again in every way, and changes no text and no grade."""

import csv
import io
import random
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import openpyxl
import pytest

from curate.core.scale import Scale
from curate.review.forms import Form, explained, form
from curate.review.sheets import check, read, to_csv, to_xlsx
from tests.conftest import need
from tests.support.damage import PIECES, ZH, Saving, handed_out, typed
from tests.support.defined import defined

LINK = '=HYPERLINK("http://x","y")'
OPENED = "CSV:44,34,76,1,,2052,false,true,false,false,false,0,true"
"""Comma, quotes, UTF-8, Chinese; numbers, dates and formulas are looked for, which is the worst that may be chosen."""
SAVED = {
    "comma-utf8.csv": "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false",
    "semicolon-gb18030.csv": "csv:Text - txt - csv (StarCalc):59,34,85,1,,0,true,true,false",
    "tab-utf16.csv": "csv:Text - txt - csv (StarCalc):9,34,65535,1,,0,false,true,false",
    "again.xlsx": "xlsx",
}
BEGINS = {
    "comma-utf8.csv": "编号,".encode(),
    "semicolon-gb18030.csv": '"编号";'.encode("gb18030"),
    "tab-utf16.csv": "\ufeff编号\t".encode("utf-16-le"),
    "again.xlsx": b"PK",
}


def rows() -> dict[str, tuple[str, str]]:
    """Return the texts that a spreadsheet is most tempted by, alone and mixed."""
    draw, pieces = random.Random(7), list(PIECES.elements)  # type: ignore[attr-defined]
    alone = [
        (piece, f"糖尿病{piece}病")
        for piece in (*pieces, "007", "5%", "1/2", "10:30", "2026-11-21", "$5", "#N/A", "(3)")
    ]
    mixed = [("".join(draw.choices(pieces, k=4)), "".join(draw.choices(pieces, k=9))) for _ in range(100)]
    texts = [(LINK, f"{LINK}\n第二行"), *alone, *mixed]
    return {f"r{number:05}-bcdfgh": pair for number, pair in enumerate(texts)}


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need(shutil.which("soffice") is not None, "LibreOffice (soffice)")
    return tmp_path_factory.mktemp("profile")


def convert(profile: Path, source: Path, target: str, name: str) -> bytes:
    """Open a file in LibreOffice, save it as `target`, and return what was saved."""
    out = source.parent / name
    opened = [f"--infilter={OPENED}"] if source.suffix == ".csv" else []
    office(profile, *opened, "--convert-to", target, "--outdir", str(out), str(source))
    (saved,) = out.iterdir()
    return saved.read_bytes()


def office(profile: Path, *words: str) -> None:
    command = ["soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless", *words]
    subprocess.run(command, check=True, capture_output=True, timeout=180)


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_sheet_that_was_saved_again_says_what_was_typed(profile: Path, tmp_path: Path, kind: str, name: str) -> None:
    texts = rows()
    table = handed_out(texts)
    expected = typed(table, texts, seed=3)
    source = tmp_path / f"anna.{kind}"
    if kind == "csv":
        source.write_bytes(Saving().save(table)[0])
    else:
        book = openpyxl.load_workbook(io.BytesIO(to_xlsx(ZH, "anna", texts)))
        for number, row in enumerate(table.rows, start=2):
            book.active[f"D{number}"], book.active[f"E{number}"] = row[3], row[4]
        book.save(source)
    content = convert(profile, source, SAVED[name], name)
    assert content.startswith(BEGINS[name])
    returned = check(read(content, name, ZH), ZH, texts, "anna")
    assert list(map(str, returned.problems)) == []
    assert {entry.row_id: (entry.answer, entry.note) for entry in returned.answers} == expected


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_no_cell_becomes_a_formula_a_number_or_a_date(profile: Path, tmp_path: Path, kind: str) -> None:
    source = tmp_path / f"anna.{kind}"
    source.write_bytes({"csv": to_csv, "xlsx": to_xlsx}[kind](ZH, "anna", rows()))
    page = defined(openpyxl.load_workbook(io.BytesIO(convert(profile, source, "xlsx", "again"))).active)
    assert page["B2"].value == f"'{LINK}"
    assert {cell.data_type for row in page for cell in row if cell.value is not None} == {"s"}
    flat = convert(profile, source, "fods", "flat").decode()
    assert "table:formula" not in flat
    assert set(re.findall(r'office:value-type="(\w+)"', flat)) == {"string"}


def test_without_the_mark_there_would_be_a_formula_and_a_date(profile: Path, tmp_path: Path) -> None:
    source, stream = tmp_path / "plain.csv", io.StringIO()
    csv.writer(stream).writerow([LINK, "12/8"])
    source.write_text(stream.getvalue(), encoding="utf-8")
    flat = convert(profile, source, "fods", "flat").decode()
    assert 'table:formula="of:=HYPERLINK(' in flat
    assert 'office:value-type="date"' in flat


LABELS = (
    *(
        "S",
        "a",
        "N",
        "yes",
        "no",
        "TRUE",
        "true story",
        "完全相关",
        "不相关",
        "是",
        "很 相关",
        "½",
        "A+",
        "B-",
        "1E5",
        "1e",
    ),
    *(
        "10",
        "3",
        "2",
        "0",
        "-1",
        "+1",
        "0.5",
        "1.50",
        "007",
        "50%",
        "1/2",
        "1-2",
        "12:30",
        "3月5日",
        "Jan",
        "2026-01-02",
    ),
    *("=1", "+", "++", "@x", "'q", '"', "a,b", "a;b", "#N/A", "(3)", "$5", "grade", "x" * 40, "e\u0301"),
)
CONVERTED = {"TRUE", "1/2", "1-2", "12:30", "3月5日", "Jan", "2026-01-02", "1E5", "$5", "(3)", "=1", "#N/A"}
"""Of these a spreadsheet makes a truth value, a date, an amount, a formula."""


def scales_of(seed: int, number: int) -> list[Scale]:
    """Return scales of 2 to 10 random labels, the nastiest among them."""
    draw, found = random.Random(seed), list[Scale]()
    while len(found) < number:
        labels = tuple(draw.sample(LABELS, draw.randint(2, 10)))
        with suppress(ValueError):  # two labels that nobody could tell apart
            found.append(Scale(labels, labels[0], tuple(range(len(labels), 0, -1))))
    return found


@pytest.mark.parametrize("target", ["csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false", "xlsx"])
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_no_grade_of_any_scale_becomes_another(profile: Path, tmp_path: Path, kind: str, target: str) -> None:
    """A label that LibreOffice turns into something else comes back as itself or is refused, in its row."""
    found, forms = scales_of(11, 24), dict[str, Form]()
    for number, scale in enumerate(found):
        forms[f"s{number}"] = asks = explained(form("relevance", "zh", scale), dict.fromkeys(scale.labels, "含义"))
        texts = {f"r{at:05}-bcdfgh": (label, label) for at, label in enumerate(scale.labels)}
        source = tmp_path / f"s{number}.{kind}"
        if kind == "xlsx":
            book = openpyxl.load_workbook(io.BytesIO(to_xlsx(asks, "anna", texts)))
            for at, label in enumerate(scale.labels, start=2):
                book.worksheets[0][f"D{at}"].value, book.worksheets[0][f"D{at}"].data_type = label, "s"
            book.save(source)
        else:
            header, *lines = csv.reader(io.StringIO(to_csv(asks, "anna", texts).decode("utf-8-sig"), newline=""))
            filled = ([*line[:3], label, *line[4:]] for line, label in zip(lines, scale.labels, strict=True))
            with source.open("w", encoding="utf-8-sig", newline="") as stream:
                csv.writer(stream).writerows([header, *filled])
    opened = [f"--infilter={OPENED}"] if kind == "csv" else []
    sources = [str(tmp_path / f"{name}.{kind}") for name in forms]
    office(profile, *opened, "--convert-to", target, "--outdir", str(tmp_path / "out"), *sources)
    lost = set()
    for (name, asks), scale in zip(forms.items(), found, strict=True):
        texts = {f"r{at:05}-bcdfgh": (label, label) for at, label in enumerate(scale.labels)}
        [file] = (tmp_path / "out").glob(f"{name}.*")
        returned = check(read(file.read_bytes(), file.name, asks), asks, texts, "anna")
        for entry in returned.answers:
            assert entry.answer == scale.labels[entry.row - 2], file
        assert {problem.column for problem in returned.problems} <= {asks.header[asks.columns.index("answer")]}
        held = {scale.labels[problem.row - 2] for problem in returned.problems}
        assert held | {entry.answer for entry in returned.answers} == {*scale.labels}
        lost |= held
    assert lost <= CONVERTED
    assert kind == "csv" or not lost, "cells of a workbook are texts before anything is typed"
