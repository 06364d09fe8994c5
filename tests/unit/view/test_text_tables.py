"""Tables of text: columns line up by the cells of a terminal, and a row is a paragraph where the terminal is narrow."""

import pytest

from curate.view.text import as_table, width

ROWS = [
    {"query": "高血压一天吃盐不能超过几克", "source": "病历", "pairs": 1200},
    {"query": "hypertension", "source": "notes", "pairs": 7},
]


def test_columns_line_up_beside_chinese() -> None:
    head, *lines = as_table(ROWS).splitlines()
    assert {width(line[: line.index(word)]) for line, word in zip(lines, ("病历", "notes"), strict=True)} == {28}
    assert head.index("source") == 28
    assert {width(line) for line in (head, *lines)} == {width(head)}


def test_a_combining_mark_takes_no_cell() -> None:
    assert width("e\u0301") == 1


@pytest.mark.parametrize("columns", [20, 40])
def test_a_row_is_a_paragraph_where_the_table_is_too_wide(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = as_table(ROWS)
    assert max(map(width, text.splitlines())) <= columns
    first, second = text.split("\n\n")
    cells = "".join(line[8:] for line in first.splitlines()[:-2])
    assert cells == ROWS[0]["query"], "nothing is cut away"
    assert second.splitlines() == ["query   hypertension", "source  notes", "pairs   7"]


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(as_table([{"a": "x" * 300, "b": "y"}]).splitlines()) == 2
