"""Tables of a paper: what LaTeX prints is what the run says, and CSV holds the figures unrounded."""

import shutil
import subprocess
from pathlib import Path

import pytest

from curate.commands.paper.latex import SPECIAL, Cell, PaperTable, document, escaped, fragment
from tests.conftest import need

HOSTILE = r"""\input{/etc/passwd} {} $ & # % _ ~ ^ < > | " ` ' [x] * -- ?` ! ,, é ö ≥ κ 模型 😀 \end{tabular}"""
TABLE = PaperTable(
    "hostile",
    HOSTILE,
    ["model", HOSTILE],
    [[HOSTILE, Cell(0.823456, 0.75, 0.88, 3)], ["[x]", None], ["empty", Cell(None)]],
)


def test_csv_has_the_interval_in_columns_and_nothing_for_undefined() -> None:
    head, first, second, third = TABLE.csv().splitlines()
    assert head.endswith(', low","' + HOSTILE.replace('"', '""') + ', high"')
    assert first.endswith(",0.823456,0.75,0.88")
    assert (second, third) == ("[x],,,", "empty,,,")


def test_undefined_is_a_dash_and_never_zero() -> None:
    text = fragment(TABLE, "en")
    assert r"empty & -- \\" in text
    assert r"0.823 {[}0.750{,} 0.880{]}" in text


@pytest.mark.parametrize("sign", SPECIAL)
def test_every_special_character_is_escaped(sign: str) -> None:
    assert escaped(sign, "en") == SPECIAL[sign] != sign


def test_only_the_chinese_variant_keeps_chinese() -> None:
    assert escaped("模\n型", "zh") == "模 型"
    assert escaped("模", "en") == "{[}U+6A21{]}"


def test_hostile_text_compiles(tmp_path: Path) -> None:
    need(shutil.which("pdflatex") is not None, "pdflatex")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "hostile.tex").write_text(fragment(TABLE, "en"), encoding="utf-8")
    (tmp_path / "paper.tex").write_text(document(["hostile"], [], "en"), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]


def test_a_wide_table_stands_in_blocks_that_repeat_its_keys_and_leave_out_empty_columns() -> None:
    heads = ["task", "model", *(f"measure number {at}" for at in range(12))]
    row = ["one", "bm25", *(None if at == 5 else at for at in range(12))]
    text = fragment(PaperTable("wide", "n = 1", heads, [row], keys=2), "en")
    blocks = text.split(r"\begin{tabular}")[1:]
    assert len(blocks) > 1
    assert all("task & model & " in block for block in blocks)
    assert [text.count(f"measure number {at} ") for at in range(12)] == [int(at != 5) for at in range(12)]
