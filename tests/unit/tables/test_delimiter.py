"""The delimiter of a CSV file is found, whatever stands in its texts."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.tables.readers import Row
from curate.tables.readers.encoding import TextFile
from curate.tables.readers.file import File
from curate.tables.readers.text_rows import CANDIDATES, find, named

CELL = st.text(alphabet="ab头,;|\t\" '\n", min_size=1, max_size=12)


def written(tmp_path: Path, text: str, name: str = "t.csv") -> File:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    return File(tmp_path / name, "csv")


@pytest.mark.slow
@given(st.lists(CELL, min_size=1, max_size=8), st.sampled_from(CANDIDATES))
def test_what_a_csv_writer_wrote_is_read_back(texts: list[str], sign: str) -> None:
    from tempfile import TemporaryDirectory

    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=sign).writerows([("id", "text"), *((f"r{n}", text) for n, text in enumerate(texts))])
    with TemporaryDirectory() as folder:
        file = written(Path(folder), stream.getvalue())
        assert file.dialect.delimiter == sign
        assert [row.values["text"] for row in file.rows() if isinstance(row, Row)] == texts


@pytest.mark.parametrize(
    ("text", "header", "sign"),
    [
        ("id;text\n1;one, two, three\n2;four\n", True, ";"),
        ("id,text\n1,one; two; three\n2,four;\n", True, ","),
        ("Question, in words;Answer\na;b, c\nd;e\n", True, ";"),
        ("1;one, two\n2;three, four\n", False, ";"),
        ("1|a,b\n2|c\n3|d,e,f\n", False, "|"),
        ("text\none, two\nthree\n", True, ","),
        ("sep=;\nid;text\n1;a\n", True, ";"),
        ("", True, ","),
    ],
)
def test_the_delimiter_is_the_one_that_makes_columns(text: str, header: bool, sign: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert find(TextFile(tmp_path / "t.csv", "utf-8"), ",", header=header) == sign


def test_a_line_that_declares_the_delimiter_is_no_row(tmp_path: Path) -> None:
    file = written(tmp_path, "sep=;\r\nid;text\r\n1;a\r\n")
    assert [row for row in file.rows() if isinstance(row, Row)] == [Row(3, {"id": "1", "text": "a"}, 21)]


def test_a_file_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("7\tone\n8\ttwo\n9\n", encoding="utf-8")
    file = File(tmp_path / "t.tsv", "tsv", has_header=False)
    assert file.header() == ["column_1", "column_2"]
    assert [row.values if isinstance(row, Row) else row.expected for row in file.rows()] == [
        {"column_1": "7", "column_2": "one"},
        {"column_1": "8", "column_2": "two"},
        "2 as in the first row",
    ]


@pytest.mark.parametrize(("text", "sign"), [("tab", "\t"), ("\\t", "\t"), (";", ";"), ("^", "^")])
def test_a_delimiter_may_be_named(text: str, sign: str) -> None:
    assert named(text) == sign


@pytest.mark.parametrize("text", ["", ";;", '"', "a", "\n"])
def test_what_is_no_delimiter(text: str) -> None:
    with pytest.raises(ValueError, match="expected one character"):
        named(text)
