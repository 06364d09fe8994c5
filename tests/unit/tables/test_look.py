"""What a table looks like before anything runs: which columns were chosen, and what would stop a run."""

import gzip
import json
from pathlib import Path

import pytest

from curate.core.errors import DataError
from curate.tables.readers import Table
from curate.tables.readers.file import File, format_of
from curate.tables.readers.guess import guess
from curate.tables.readers.items import LINE
from curate.tables.readers.look import LONG, IdColumn, TableLook, look
from tests.support import everyday
from tests.support.steps import jsonl


def source(path: Path, content: str | bytes, *, header: bool = True) -> File:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return File(path, format_of(path), has_header=header)


def seen(path: Path, content: str | bytes, table: Table = "corpus", **named: str) -> TableLook:
    return look([source(path, content)], table, named)


@pytest.mark.parametrize(
    ("header", "table", "columns"),
    [
        ("\ufeff ID ,Question Text", "queries", {"id": "ID", "text": "Question Text"}),
        ("QUERY-ID,Query", "queries", {"id": "QUERY-ID", "text": "Query"}),
        ("no,问题", "queries", {"id": "no", "text": "问题"}),
        ("编号,標題,答案", "corpus", {"id": "编号", "title": "標題", "text": "答案"}),
        ("Doc_ID,Headline,Page Content", "corpus", {"id": "Doc_ID", "title": "Headline", "text": "Page Content"}),
        ("DocNo,Ｔｅｘｔ", "corpus", {"id": "DocNo", "text": "Ｔｅｘｔ"}),
        ("查询id,文档id,相关性", "qrels", {"query_id": "查询id", "doc_id": "文档id", "score": "相关性"}),
        ("Query ID,Document ID,Relevance Score", "qrels", {"query_id": "Query ID", "doc_id": "Document ID"}),
    ],
)
def test_columns_are_known_in_any_spelling(header: str, table: Table, columns: dict[str, str], tmp_path: Path) -> None:
    cells = ",".join(f"{n}" for n in range(1, header.count(",") + 2))
    found = guess(source(tmp_path / "t.csv", f"{header}\n{cells}\n"), table)
    assert columns.items() <= {**found.usual, **found.columns}.items()


def test_what_a_user_names_is_taken(tmp_path: Path) -> None:
    file = source(tmp_path / "t.csv", "id,uid,text\n1,a,x\n1,b,y\n")
    assert guess(file, "corpus", {"id": "uid"}).columns == {"id": "uid"}
    assert look([file], "corpus").id == IdColumn("id", 1, 0, "name", "'1' in rows 2 and 3")
    assert look([file], "corpus", {"id": "uid"}).id == IdColumn("uid", 0, 0, "user")
    assert look([file], "corpus", {"id": LINE}).id == IdColumn(LINE, 0, 0, "user")
    with pytest.raises(DataError, match=r"columns id, uid, text, expected 'nr', which is named for the id of corpus"):
        guess(file, "corpus", {"id": "nr"})
    assert "expected 'nr'" in str(look([file], "corpus", {"id": "nr"}).error)


def test_ids_within_objects_that_repeat_are_said_not_replaced(tmp_path: Path) -> None:
    rows = [{"meta": {"id": "a" if n < 15 else f"b{n}"}, "text": f"t{n}"} for n in range(300)]
    found = look([File(jsonl(tmp_path / "c.jsonl", [*rows, {"text": "x"}]), "jsonl")], "corpus")
    assert found.id == IdColumn("meta.id", 14, 1, "name", "'a' in rows 1 and 2")
    assert (found.rows, found.problems) == (301, 0)


def test_ids_are_found_by_their_values(tmp_path: Path) -> None:
    found = seen(tmp_path / "c.csv", "ref,words\nx1,头痛 怎么办\nx2,发烧\n")
    assert found.id == IdColumn("ref", 0, 0, "values")
    assert seen(tmp_path / "c.csv", "text\na\n").id is None


def test_texts_are_counted_over_all_rows(tmp_path: Path) -> None:
    found = look([File(jsonl(tmp_path / "c.jsonl", [*everyday.corpus(), "{broken"]), "jsonl")], "corpus")
    assert (found.rows, found.empty, found.html, found.long, found.longest) == (32, 1, 1, 1, everyday.LONG)
    assert LONG < everyday.LONG
    assert found.html_share == 1 / 32
    assert found.id == IdColumn("id", 1, 0, "name", "'7' in rows 8 and 31")
    assert found.problem.startswith(f"{tmp_path}/c.jsonl:33: found a line that is not valid JSON")


def test_how_a_file_is_written(tmp_path: Path) -> None:
    found = seen(tmp_path / "c.csv.gz", gzip.compress("编号|答案\n1|头痛怎么办\n".encode("gb18030")))
    assert (found.format, found.encoding, found.delimiter, found.packed) == ("csv", "gb18030", "|", "gz")
    assert (found.sheet, found.header, found.headless) == (None, True, False)
    everyday.workbook(tmp_path)
    sheet = look([File(tmp_path / "book.xlsx", "xlsx", table="queries")], "queries")
    assert (sheet.format, sheet.encoding, sheet.sheet, sheet.rows) == ("xlsx", None, "queries", everyday.QUERIES + 2)


@pytest.mark.parametrize(
    "first", ["7,头痛怎么办", "q1,我头痛已经三天了一直在家里休息不见好应该怎么办", "头痛怎么办？,发烧"]
)
def test_a_row_of_data_is_no_header(first: str, tmp_path: Path) -> None:
    assert seen(tmp_path / "q.csv", f"{first}\n8,发烧\n", "queries").headless
    file = source(tmp_path / "q.csv", f"{first}\n8,发烧\n", header=False)
    assert look([file], "queries").rows == 2
    assert not look([file], "queries").headless


def test_several_files_are_one_table(tmp_path: Path) -> None:
    shards = [File(jsonl(tmp_path / f"{n}.jsonl", [{"id": "a", "text": "x"}]), "jsonl") for n in range(3)]
    told: list[tuple[str, int, int]] = []
    found = look(shards, "corpus", progress=lambda *said: told.append(said))
    assert (found.location, found.rows) == (f"{tmp_path}/0.jsonl and 2 more", 3)
    assert found.id is not None
    assert found.id.repeated == 2
    assert told[-1] == ("looking at corpus", len(json.dumps({"id": "a", "text": "x"})) + 1, 25)
