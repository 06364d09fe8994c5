"""Packed files, Excel, Arrow, shards, splits, ids of ir_datasets: what comes out, and the sentence where it cannot."""

import bz2
import gzip
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pyarrow as pa
import pytest

from curate.core.errors import ConfigError, DataError, MissingExtra
from curate.tables.readers import Problem, Row, Source
from curate.tables.readers.file import File, format_of
from curate.tables.readers.folder import find, readable
from curate.tables.readers.settings import Input, Sources, sources
from tests.support import everyday
from tests.support.steps import jsonl

LINES = "".join(f'{{"_id": "d{n}", "text": "头痛{n}"}}\n' for n in range(3_000)).encode()


def values(file: Source) -> list[Any]:
    return [row.values for row in file.rows() if isinstance(row, Row)]


def read(settings: dict[str, Any]) -> Sources:
    return sources(Input.model_validate(settings))


# packed files


def packed(path: Path, content: bytes) -> File:
    if path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(content)
    else:
        path.write_bytes((gzip if path.suffix == ".gz" else bz2).compress(content))
    return File(path, format_of(path))


@pytest.mark.parametrize("ending", ["gz", "zst", "bz2"])
def test_a_packed_file_is_read_as_the_file_inside(ending: str, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(LINES)
    file = packed(tmp_path / f"c.jsonl.{ending}", LINES)
    assert values(file) == values(File(tmp_path / "c.jsonl", "jsonl"))
    places = [row.position for row in file.rows() if isinstance(row, Row)]
    assert places == sorted(places)
    assert places[-1] == file.size() < len(LINES)


@pytest.mark.parametrize("codec", ["gb18030", "utf-16"])
def test_the_encoding_inside_is_found(codec: str, tmp_path: Path) -> None:
    file = packed(tmp_path / "c.csv.gz", "编号;问题\n1;医生, 我头痛\n".encode(codec))
    assert values(file) == [{"编号": "1", "问题": "医生, 我头痛"}]


def test_windows_1252_is_read_where_it_is_named_and_never_guessed(tmp_path: Path) -> None:
    text = "It’s the café’s – 5 µg"
    path = packed(tmp_path / "c.csv.gz", f"id;text\n1;{text}\n".encode("cp1252")).path
    assert values(File(path, "csv", "cp1252")) == [{"id": "1", "text": text}]
    with pytest.raises(DataError, match="no text in UTF-8, GB18030 or Big5"):
        values(File(path, "csv"))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["gz", "zst", "bz2"])
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_broken_archive_is_a_sentence(ending: str, damage: str, tmp_path: Path) -> None:
    path = packed(tmp_path / f"c.jsonl.{ending}", LINES * 20).path
    path.write_bytes(path.read_bytes()[:-25] if damage == "cut" else b"no archive at all" * 9)
    with pytest.raises(DataError, match=rf"c\.jsonl\.{ending}: found a \w+ archive that is damaged or cut off"):
        values(File(path, "jsonl"))


def test_what_is_packed_already_is_not_packed_again() -> None:
    with pytest.raises(ConfigError, match=r"found the ending '\.xlsx\.gz', expected one of"):
        format_of(Path("a.xlsx.gz"))


# Excel


def book(path: Path, **sheets: list[list[Any]]) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        page = made.create_sheet(name)
        for row in rows:
            page.append(row)
    made.save(path)
    return path


def test_cells_are_texts_as_in_a_csv(tmp_path: Path) -> None:
    row = [12, 12.0, 0.5, True, date(2026, 3, 1), datetime(2026, 3, 1, 8, 30), None, "头痛"]  # noqa: DTZ001 - as in Excel
    path = book(tmp_path / "b.xlsx", one=[[], [f"c{n}" for n in range(8)], [], row], two=[[]])
    assert list(File(path, "xlsx").rows()) == [
        Row(
            4,
            {
                "c0": "12", "c1": "12", "c2": "0.5", "c3": "TRUE", "c4": "2026-03-01", "c5": "2026-03-01 08:30:00",
                "c6": "", "c7": "头痛",
            },
            4,
        )
    ]  # fmt: skip


def test_unnamed_columns_and_cells_beside_the_table(tmp_path: Path) -> None:
    path = book(tmp_path / "b.xlsx", one=[["id", None, "text"], ["1", "x", "a", "a note"], ["2"]])
    assert values(File(path, "xlsx")) == [
        {"id": "1", "column_2": "x", "text": "a"},
        {"id": "2", "column_2": "", "text": ""},
    ]
    assert File(path, "xlsx", has_header=False).header() == ["column_1", "column_2", "column_3", "column_4"]


def test_formulas_count_by_their_stored_values(tmp_path: Path) -> None:
    path = book(tmp_path / "b.xlsx", one=[["id", "text"], ["1", "a"], ["=1+1", "b"], ["=2", "=3"], ["3", "#REF!"]])
    found = list(File(path, "xlsx").rows())
    assert [(row.line, row.column, row.got, row.expected) for row in found if isinstance(row, Problem)] == [
        (3, "id", "a formula without a stored value", "its value in cell A3 of sheet 'one'"),
        (4, "id", "a formula without a stored value", "its value in cell A4 of sheet 'one'"),
        (5, "text", "the error #REF!", "a value"),
    ]
    assert "save it" in next(row.remedy for row in found if isinstance(row, Problem))


def test_a_stored_value_of_a_formula_is_read(tmp_path: Path) -> None:
    import zipfile

    plain = book(tmp_path / "a.xlsx", one=[["id", "text"], ["=40+2", "a"]])
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"<f>40+2</f><v></v>", b"<f>40+2</f><v>42</v>"))
    assert values(File(tmp_path / "b.xlsx", "xlsx")) == [{"id": "42", "text": "a"}]


def test_a_stored_empty_text_of_a_formula_is_an_empty_cell(tmp_path: Path) -> None:
    import zipfile

    plain = book(tmp_path / "a.xlsx", one=[["id", "text", "note"], ["1", "a", '=IF(1,"","x")']])
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'<c r="C2">', b'<c r="C2" t="str">'))
    assert values(File(tmp_path / "b.xlsx", "xlsx")) == [{"id": "1", "text": "a", "note": ""}]
    with pytest.raises(
        DataError, match=r"x\.xlsx:1: found a formula .*, expected the name of a column in cell B1 of sheet"
    ):
        File(book(tmp_path / "x.xlsx", one=[["id", "=1+1"], ["1", "a"]]), "xlsx").header()


TITLES: list[list[Any]] = [["2026 年度评审结果"], [], ["导出时间", date(2026, 3, 1)]]


@pytest.mark.parametrize(
    ("rows", "columns", "first"),
    [
        ([*TITLES, ["编号", "甲", "乙"], [1, "S", "A"], [2, "A", None]], ["编号", "甲", "乙"], 5),
        ([["Ratings"], ["item", "ann", "ben"], ["x", 1, 2], ["y", 2, 2]], ["item", "ann", "ben"], 3),
        ([["Ratings"], [1, 2, 3], [4, 5, 6]], ["Ratings"], 2),  # no row of texts: nothing tells
        ([["Questions"], ["id", "question"], ["q1", "why"], ["q2", "how"]], ["id", "question"], 3),
        ([["id"], ["q1", "a", "b"], ["q2", "c", "d"]], ["id"], 2),
        ([["text"], ["a", "a note", "more"], ["b", "a note", "more"]], ["text"], 2),  # a usual name is no title
        ([["item", "ann"], ["x", "a", "a note"], ["y", "b", "a note"]], ["item", "ann"], 2),
    ],
)
def test_the_header_is_found_below_titles_where_nothing_else_can_be_it(
    rows: list[list[Any]], columns: list[str], first: int, tmp_path: Path
) -> None:
    file = File(book(tmp_path / "b.xlsx", one=rows), "xlsx")
    assert file.header() == columns
    assert next(row.line for row in file.rows()) == first


def test_of_several_sheets_one_is_named(tmp_path: Path) -> None:
    rows = [["id", "text"], ["1", "a"]]
    path = book(tmp_path / "b.xlsx", January=rows, February=rows, empty=[])
    with pytest.raises(ConfigError, match=r"data in the sheets January, February, .*; name one with --set sheet"):
        File(path, "xlsx").header()
    with pytest.raises(ConfigError, match=r"name one with ingest\.corpus\.sheet"):
        File(path, "xlsx", table="corpus").header()
    with pytest.raises(ConfigError, match=r"found no sheet 'Febuary', .*did you mean 'February'"):
        File(path, "xlsx", sheet="Febuary").header()
    assert values(File(path, "xlsx", sheet="february")) == [{"id": "1", "text": "a"}]
    with pytest.raises(DataError, match="found no sheet with data"):
        File(book(tmp_path / "e.xlsx", one=[]), "xlsx").header()


def test_the_sheet_of_a_table_is_the_one_of_its_name(tmp_path: Path) -> None:
    path = book(tmp_path / "b.xlsx", Queries=[["id", "text"], [1, "a"]], corpus=[["id", "text"], [2, "b"]])
    found = read({"queries": {"path": str(path)}, "corpus": {"path": str(path)}}).tables
    assert [values(found[table][0]) for table in ("queries", "corpus")] == [
        [{"id": "1", "text": "a"}],
        [{"id": "2", "text": "b"}],
    ]


@pytest.mark.parametrize("content", [b"no zip", b"PK\x03\x04 half"])
def test_what_is_no_workbook(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "b.xlsx").write_bytes(content)
    with pytest.raises(DataError, match=r"found no sound \.xlsx file, expected a sound"):
        File(tmp_path / "b.xlsx", "xlsx").header()


# folders


def test_an_arrow_file_may_be_a_stream_or_not(tmp_path: Path) -> None:
    pl.DataFrame({"id": [1, 2], "text": ["a", "b"]}).write_ipc(tmp_path / "a.arrow")
    everyday.saved(tmp_path / "s", [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}])
    assert values(File(tmp_path / "a.arrow", "arrow")) == [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]
    (one, two) = sorted((tmp_path / "s").glob("*.arrow"))
    assert [*File(two, "arrow").rows({"id"})] == [Row(1, {"id": "2"}, 1)]
    assert File(one, "arrow").size() == 1
    one.write_bytes(b"nothing")
    with pytest.raises(DataError, match="found no sound Arrow file"):
        File(one, "arrow").size()


def test_what_datasets_itself_saves_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra `eval` is not installed")
    texts = datasets.Dataset.from_dict({"id": ["1", "2", "3"], "text": ["a", "b", "c"]})
    datasets.DatasetDict({"corpus": texts, "queries": texts.select([2, 0])}).save_to_disk(tmp_path / "set")
    found = read({"source": str(tmp_path / "set")}).tables
    assert [row["id"] for row in values(found["corpus"][0])] == ["1", "2", "3"]
    assert [row["id"] for row in values(found["queries"][0])] == ["3", "1"]


def test_a_saved_folder_that_lost_a_file(tmp_path: Path) -> None:
    everyday.saved(tmp_path / "s", everyday.queries())
    next((tmp_path / "s").glob("*.arrow")).unlink()
    with pytest.raises(DataError, match=r"no such file, though state\.json names it; copy the whole folder again"):
        read({"queries": {"path": str(tmp_path / "s")}, "corpus": {"path": str(tmp_path / "s")}})


@pytest.mark.parametrize("inside", ["", "default/"])
@pytest.mark.parametrize("names", ["{split}-00000-of-00001", "{split}/0000", "{split}"])
def test_an_mteb_folder_without_readme(inside: str, names: str, tmp_path: Path) -> None:
    for table in ("corpus", "queries", "qrels"):
        for split in ("test", "train") if table == "qrels" else ("test",):
            jsonl(tmp_path / table / f"{inside}{names.format(split=split)}.jsonl", [{"_id": split}])
    parts = find(tmp_path, None)
    assert [len(parts.of(table)) for table in ("queries", "corpus", "qrels")] == [1, 1, 1]
    assert len(parts.other_qrels) == 1
    assert parts.notes == ["qrels: the split test is read, train not; ingest.split names another"]
    assert "train" in str(find(tmp_path, "train").qrels[0].relative_to(tmp_path))


def test_qrels_may_lie_in_the_default_config(tmp_path: Path) -> None:
    for name in ("corpus/test", "queries/test", "default/dev"):
        jsonl(tmp_path / f"{name}-00000-of-00001.jsonl", [{"_id": "1"}])
    assert [path.parent.name for path in find(tmp_path, None).qrels] == ["default"]


def test_of_several_splits_without_test_one_is_named(tmp_path: Path) -> None:
    for name in ("corpus/dev", "corpus/train", "queries/dev"):
        jsonl(tmp_path / f"{name}-00000.jsonl", [{"_id": "1"}])
    with pytest.raises(ConfigError, match=r"found the splits dev, train of the corpus, .* ingest\.corpus\.path"):
        find(tmp_path, None)
    jsonl(tmp_path / "qrels" / "dev.jsonl", [{}])
    assert [path.name for path in find(tmp_path, None).corpus] == ["dev-00000.jsonl"]


def test_files_of_other_names_are_shards_and_prose_is_none(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "README.txt", ".hidden.jsonl"):
        (tmp_path / "c").mkdir(exist_ok=True)
        (tmp_path / "c" / name).write_text('{"text": "a"}\n')
    found = read({"queries": {"path": f"{tmp_path}/c/a.jsonl"}, "corpus": {"path": f"{tmp_path}/c"}}).tables["corpus"]
    assert [source.name for source in found] == ["a.jsonl", "b.jsonl"]
    assert [row.line_prefix for source in found for row in source.rows() if isinstance(row, Row)] == ["", "2-"]


def test_a_folder_that_holds_something_else_names_it(tmp_path: Path) -> None:
    (tmp_path / "fragen.csv").write_text("id;text\n")
    assert readable(tmp_path) == [tmp_path / "fragen.csv"]
    with pytest.raises(ConfigError, match=r"ingest\.queries\.path to a file; .* holds fragen\.csv"):
        read({"source": str(tmp_path)})


def test_an_empty_folder_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    with pytest.raises(DataError, match="found no file of corpus, expected one of"):
        read({"corpus": {"path": f"{tmp_path}/c"}})


# JSON, TREC qrels, ir_datasets


def test_a_list_of_json_says_which_entry_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text('\n [{"id": 1, "text": "a"}, 7,\n {"id": 2}]')
    rows = list(File(tmp_path / "q.json", "jsonl").rows())
    assert [(row.line, getattr(row, "got", "")) for row in rows] == [
        (1, ""),
        (2, "a number as an entry of the list"),
        (3, ""),
    ]
    (tmp_path / "q.json").write_text('[{"id": 1},\n {"id": 2]')
    with pytest.raises(DataError, match=r"q.json:2: found a file that is not valid JSON \(Expecting ',' delimiter\)"):
        list(File(tmp_path / "q.json", "jsonl").rows())


@pytest.mark.parametrize(("name", "sign"), [("qrels.txt", " "), ("test.qrels", "  "), ("qrels.tsv", "\t")])
def test_qrels_of_trec_are_known_by_their_first_line(name: str, sign: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"301{sign}0{sign}FBIS3-1{sign}2\n\n301{sign}0{sign}x\n")
    file = File(tmp_path / name, format_of(tmp_path / name), table="qrels")
    assert file.header() == ["query-id", "iteration", "corpus-id", "score"]
    row, problem = file.rows()
    assert isinstance(row, Row)
    assert row.values == {"query-id": "301", "iteration": "0", "corpus-id": "FBIS3-1", "score": "2"}
    assert (problem.line, getattr(problem, "got", "")) == (3, "3 words")


def test_an_id_of_ir_datasets_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'curate-ir\[irds\]'"):
        read({"source": "irds:beir/scifact/test"})


def test_an_unknown_id_of_ir_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", everyday.ir_datasets())
    with pytest.raises(ConfigError, match="ir_datasets knows no data set 'beir/other'"):
        read({"source": "irds:beir/other"})
    found = read({"source": "irds:beir/everyday/test"})
    assert [found.tables[table][0].size() for table in ("queries", "corpus", "qrels")] == [14, 32, 12]
    assert found.tables["corpus"][0].name == "beir/everyday/test"


@pytest.mark.slow
def test_a_data_set_of_the_package_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    package = pytest.importorskip("ir_datasets", reason="the extra `irds` is not installed")
    for name, text in (("d.tsv", "d1\t头痛\nd2\tb\n"), ("q.tsv", "q1\thello\n"), ("r.txt", "q1 0 d1 2\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = {"docs_tsv": "d.tsv", "queries_tsv": "q.tsv", "qrels_trec": "r.txt"}
    made = package.create_dataset(**{kind: str(tmp_path / name) for kind, name in paths.items()})
    monkeypatch.setattr(package, "load", {"local": made}.__getitem__)
    found = read({"source": "irds:local"}).tables
    assert [row["text"] for row in values(found["corpus"][0])] == ["头痛", "b"]
    assert values(found["qrels"][0]) == [{"query_id": "q1", "doc_id": "d1", "relevance": 2, "iteration": "0"}]
