"""What is too large is refused with a sentence that says where, how much, and what lifts the bound."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate.core.errors import DataError
from curate.tables.readers import encoding as packed
from curate.tables.readers.encoding import Bounds
from curate.tables.readers.file import File, format_of

SMALL = Bounds(record=100, ratio=10, columns=3)
LONG = "x" * 200


def read(path: Path, bounds: Bounds = SMALL) -> list[object]:
    return list(File(path, format_of(path), table="corpus", bounds=bounds).rows())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_long_line_stops(tmp_path: Path, encoding: str) -> None:
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(("a", LONG, "b"))]
    (tmp_path / "c.jsonl").write_text("\n".join(lines), encoding=encoding)
    with pytest.raises(
        DataError, match=r"c.jsonl:2: found a longer record, expected at most 100 bytes; give a smaller"
    ):
        read(tmp_path / "c.jsonl")
    assert len(read(tmp_path / "c.jsonl", Bounds(record=1_000))) == 3


@pytest.mark.parametrize("name", ["c.jsonl", "c.json"])
def test_deep_nesting_stops(tmp_path: Path, name: str) -> None:
    def nested(levels: int) -> str:
        return '{"id": "1", "text": ' + "[" * levels + "]" * levels + "}\n"

    (tmp_path / name).write_text(nested(1) if name == "c.json" else nested(1) * 2)
    assert len(read(tmp_path / name)) == (1 if name == "c.json" else 2)
    for levels in (200, 100_000):
        (tmp_path / name).write_text(nested(levels))
        with pytest.raises(
            DataError, match=r"1: found deeper nesting, expected at most 100 levels; .*--set ingest.bounds"
        ):
            read(tmp_path / name, Bounds())
    (tmp_path / name).write_text('{"id": "1", "text": "' + "[" * 200 + '"}\n')
    assert len(read(tmp_path / name, Bounds())) == 1, "brackets in a text nest nothing"


def test_a_long_element_of_a_list_stops(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps([{"id": 1, "text": LONG}]))
    with pytest.raises(DataError, match=r"c.json:1: found a longer record, expected at most 100 bytes"):
        read(tmp_path / "c.json")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_an_archive_that_holds_too_much_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(packed, "_INFLATED", 10_000)
    path = tmp_path / ("c.jsonl.gz" if pack is gzip.compress else "c.jsonl.bz2")
    path.write_bytes(pack(b'{"id": 1, "text": "a"}\n' * 10_000))
    with pytest.raises(
        DataError, match=r"more than 10 times its size, expected at most .* ingest\.bounds\.ratio=NUMBER"
    ):
        read(path)
    assert len(read(path, Bounds(ratio=100_000))) == 10_000


def test_a_workbook_that_holds_too_much_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    for number in range(3_000):
        book.worksheets[0].append([number, "a text"] if number else ["id", "text"])
    book.save(tmp_path / "b.xlsx")
    monkeypatch.setattr("curate.tables.readers.excel._INFLATED", 10_000)
    with pytest.raises(DataError, match=r"b.xlsx: found a workbook of [\d,]+ bytes once unpacked, expected at most"):
        read(tmp_path / "b.xlsx", Bounds(ratio=1))


@pytest.mark.parametrize("name", ["c.jsonl", "c.json", "c.csv", "c.parquet"])
def test_too_many_rows_stop_at_the_first_beyond(tmp_path: Path, name: str) -> None:
    documents = [{"id": str(number), "text": "a"} for number in range(4)]
    if name == "c.parquet":
        pq.write_table(pa.Table.from_pylist(documents), tmp_path / name)
    elif name == "c.csv":
        (tmp_path / name).write_text("id,text\n0,a\n1,a\n2,a\n3,a\n")
    else:
        (tmp_path / name).write_text(
            json.dumps(documents) if name == "c.json" else "\n".join(map(json.dumps, documents))
        )
    with pytest.raises(
        DataError, match=rf"{name}: found more rows, expected at most 3; .* ingest\.bounds\.rows=NUMBER"
    ):
        read(tmp_path / name, Bounds(rows=3))
    assert len(read(tmp_path / name, Bounds(rows=4))) == 4


def test_too_many_columns_and_a_cell_that_is_too_long_stop(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("a,b,c,d\n1,2,3,4\n")
    with pytest.raises(DataError, match=r"w.csv:1: found 4 columns, expected at most 3; .* ingest\.bounds\.columns"):
        read(tmp_path / "w.csv")
    pq.write_table(pa.table({"id": ["1"], "text": [LONG]}), tmp_path / "p.parquet")
    with pytest.raises(DataError, match=r"p.parquet:1: found a record of \d+ bytes, expected at most 100"):
        read(tmp_path / "p.parquet")
