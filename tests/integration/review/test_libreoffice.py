"""A real LibreOffice opens the sheets, saves them again in every way, and changes no text and no grade."""

import csv
import io
import random
import re
import shutil
import subprocess
from pathlib import Path

import openpyxl
import pytest

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
    command = ["soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless", *opened, "--convert-to", target]
    subprocess.run([*command, "--outdir", str(out), str(source)], check=True, capture_output=True, timeout=180)
    (saved,) = out.iterdir()
    return saved.read_bytes()


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
