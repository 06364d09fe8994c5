"""The stage ingest: every table it writes, and one sentence for every mistake in the input."""

import tracemalloc
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.ingest import Config
from curate.commands.ingest.stage import STAGE
from curate.core.config import check, digest
from curate.core.errors import ConfigError, CurateError, DataError
from curate.pipeline.stage import Context
from curate.system import files
from tests.support.steps import beir, jsonl, step

QUERIES = [{"_id": "q1", "text": "高血压怎么吃"}, {"_id": "q2", "text": "头痛怎么办"}]
CORPUS = [{"_id": "d1", "title": "饮食", "text": "少吃盐"}, {"_id": "d2", "title": "", "text": "多休息"}]
SECRET = "李秀兰13812345678"


def table(tmp_path: Path, name: str) -> list[Any]:
    return files.read_table(tmp_path / "run" / "ingest", name).rows()


def ingest(tmp_path: Path, folder: Path, **settings: Any) -> Any:
    return step(tmp_path / "run", "ingest", {"source": str(folder), **settings})


def fails(tmp_path: Path, folder: Path, kind: type[CurateError] = DataError, **settings: Any) -> str:
    """Return what ingest complains about; nothing may have appeared under its final name."""
    with pytest.raises(kind) as caught:
        ingest(tmp_path, folder, **settings)
    assert "SECRET" not in str(caught.value)
    assert SECRET not in str(caught.value)
    return str(caught.value)


# what is written


def test_tables_keep_the_order_of_the_source(tmp_path: Path) -> None:
    report = ingest(tmp_path, beir(tmp_path / "b", QUERIES[::-1], CORPUS[::-1], ["q2 d2 1", "q1 d1 2"]))
    assert table(tmp_path, "queries") == [
        ("q2", "头痛怎么办", "queries.jsonl"),
        ("q1", "高血压怎么吃", "queries.jsonl"),
    ]
    assert table(tmp_path, "corpus")[0] == ("d2", "", "多休息", "corpus.jsonl")
    assert table(tmp_path, "qrels") == [("q1", "d1", 2), ("q2", "d2", 1)]
    assert table(tmp_path, "aliases") == table(tmp_path, "dropped") == []
    assert (report.rows_in, report.rows_out, report.dropped) == (4, 4, 0)


def test_equal_texts_are_one_and_qrels_follow(tmp_path: Path) -> None:
    corpus = [*CORPUS, {"_id": "d3", "text": " 多休息\n"}, {"_id": "d4", "title": "饮食", "text": "多休息"}]
    queries = [*QUERIES, {"_id": "q3", "text": "头痛怎么办"}]
    qrels = ["q2 d2 0", "q3 d3 2", "q1 d3 1"]
    report = ingest(tmp_path, beir(tmp_path / "b", queries, corpus, qrels))
    assert table(tmp_path, "aliases") == [("corpus", "d3", "d2"), ("queries", "q3", "q2")]
    assert table(tmp_path, "qrels") == [("q1", "d2", 1), ("q2", "d2", 2)]
    assert [row[0] for row in table(tmp_path, "corpus")] == ["d1", "d2", "d4"]
    assert (report.rows_in, report.rows_out, report.dropped) == (7, 5, 0)
    assert (report.facts["merged_queries"], report.facts["merged_corpus"]) == (1, 1)


def test_duplicates_can_be_kept(tmp_path: Path) -> None:
    corpus = [*CORPUS, {"_id": "d3", "text": "多休息"}]
    ingest(tmp_path, beir(tmp_path / "b", QUERIES, corpus, ["q2 d3 1"]), duplicates="keep")
    assert [row[0] for row in table(tmp_path, "corpus")] == ["d1", "d2", "d3"]
    assert table(tmp_path, "aliases") == []
    assert table(tmp_path, "qrels") == [("q2", "d3", 1)]


def test_empty_texts_are_dropped_with_their_qrels(tmp_path: Path) -> None:
    queries = [*QUERIES, {"_id": "q3", "text": " \u3000\n"}]
    corpus = [*CORPUS, {"_id": "d3", "title": "", "text": None}, {"_id": "d4", "title": "只有标题", "text": ""}]
    report = ingest(tmp_path, beir(tmp_path / "b", queries, corpus, ["q1 d3 1", "q3 d1 1", "q1 d4 1", "q2 d2 1"]))
    assert [row[:4] for row in table(tmp_path, "dropped")] == [
        ("corpus", "d3", "ingest", "empty text"),
        ("qrels", "q1 d3", "ingest", "its document has an empty text"),
        ("qrels", "q3 d1", "ingest", "its query has an empty text"),
        ("queries", "q3", "ingest", "empty text"),
    ]
    assert table(tmp_path, "qrels") == [("q1", "d4", 1), ("q2", "d2", 1)]
    assert (report.rows_in, report.rows_out, report.dropped, report.facts["dropped_qrels"]) == (7, 5, 2, 2)


def test_chosen_queries(tmp_path: Path) -> None:
    report = ingest(tmp_path, beir(tmp_path / "b", QUERIES, CORPUS, ["q1 d1 1", "q2 d2 1"]), ids=["q2"])
    assert [row[0] for row in table(tmp_path, "queries")] == ["q2"]
    assert table(tmp_path, "qrels") == [("q2", "d2", 1)]
    assert (report.rows_in, report.facts["queries_left_out"]) == (3, 1)


def test_queries_of_other_splits_are_left_out(tmp_path: Path) -> None:
    queries = [*QUERIES, {"_id": "q3", "text": "没有标注"}]
    folder = beir(tmp_path / "b", queries, CORPUS, ["q1 d1 1"])
    jsonl(folder / "qrels" / "train.tsv", ["query-id\tcorpus-id\tscore", "q2\td2\t1", "q1\td2\t1"])
    ingest(tmp_path, folder)
    assert [row[0] for row in table(tmp_path, "queries")] == ["q1", "q3"]
    assert table(tmp_path, "qrels") == [("q1", "d1", 1)]


def test_files_of_several_formats_with_columns_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes("编号,问题\r\n7,头痛怎么办\r\n".encode("gb18030"))
    pl.DataFrame({"key": [1, 2], "head": ["", "饮食"], "body": ["多休息", "少吃盐"]}).write_parquet(
        tmp_path / "c.parquet"
    )
    (tmp_path / "r.txt").write_text("qid\tdocid\trelevance\n7\t2\t1\n", encoding="utf-8-sig")
    settings = {
        "queries": {"path": str(tmp_path / "q.csv"), "columns": {"id": "编号", "text": "问题"}},
        "corpus": {"path": [str(tmp_path / "c.parquet")]},
        "qrels": {"path": str(tmp_path / "r.txt"), "format": "tsv"},
        "columns": {"corpus": {"id": "key", "title": "head", "text": "body"}},
    }
    step(tmp_path / "run", "ingest", settings)
    assert table(tmp_path, "queries") == [("7", "头痛怎么办", "q.csv")]
    assert table(tmp_path, "corpus") == [("1", "", "多休息", "c.parquet"), ("2", "饮食", "少吃盐", "c.parquet")]
    assert table(tmp_path, "qrels") == [("7", "2", 1)]


def test_a_line_is_the_id_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_bytes("头痛怎么办\n\n  发烧怎么办\r\n".encode("gb18030"))
    (tmp_path / "c.csv").write_text('text\n休息\n"喝\n水"\n多睡\n', encoding="utf-8")
    lines = {"columns": {"id": "<line>"}}
    settings = {
        "queries": {"path": str(tmp_path / "q.txt"), **lines},
        "corpus": {"path": str(tmp_path / "c.csv"), **lines},
    }
    step(tmp_path / "run", "ingest", settings)
    assert table(tmp_path, "queries") == [("1", "头痛怎么办", "q.txt"), ("3", "发烧怎么办", "q.txt")]
    assert [row[0] for row in table(tmp_path, "corpus")] == ["2", "3", "5"]


def test_one_table_of_a_source_can_come_from_elsewhere(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS, ["q1 d1 1"])
    other = jsonl(tmp_path / "mine.jsonl", [{"_id": "q1", "text": "我的问题"}])
    ingest(tmp_path, folder, queries={"path": str(other)})
    assert table(tmp_path, "queries") == [("q1", "我的问题", "mine.jsonl")]


def test_raw_queries_need_no_qrels(tmp_path: Path) -> None:
    jsonl(tmp_path / "b" / "queries.jsonl", QUERIES)
    jsonl(tmp_path / "b" / "corpus.jsonl", CORPUS)
    assert ingest(tmp_path, tmp_path / "b").facts["qrels"] == 0


def test_several_files_of_one_table(tmp_path: Path) -> None:
    paths = [jsonl(tmp_path / f"c{n}.jsonl", [{"_id": f"d{n}", "text": f"文{n}"}]) for n in (2, 1)]
    folder = beir(tmp_path / "b", QUERIES, CORPUS)
    ingest(tmp_path, folder, corpus={"path": [str(path) for path in paths]})
    assert table(tmp_path, "corpus") == [("d2", "", "文2", "c2.jsonl"), ("d1", "", "文1", "c1.jsonl")]


def pairs(folder: Path, rows: str, **settings: Any) -> dict[str, Any]:
    """Write rows of id, question and answer; return the settings that read them as pairs."""
    (folder / "faq.csv").write_text(f"id,query,text\n{rows}", encoding="utf-8")
    path = str(folder / "faq.csv")
    queries = {"path": path, "columns": {"text": "query"}}
    return {"queries": queries, "corpus": {"path": path, "columns": {"text": "text"}}, "pairs": True, **settings}


def test_the_answer_in_the_row_of_a_question_is_its_known_positive(tmp_path: Path) -> None:
    rows = "1,头痛,多休息\n2,发热,多喝水\n3,头痛,少吃盐\n4,咳嗽,多休息\n5,腹泻, \n6,,多运动\n1,牙痛,去医院\n"
    report = step(tmp_path / "run", "ingest", pairs(tmp_path, rows, on_error="drop"))
    assert table(tmp_path, "qrels") == [("1", "1", 1), ("1", "3", 1), ("2", "2", 1), ("4", "1", 1)]
    dropped = [("5 5", "its document has an empty text"), ("6 6", "its query has an empty text")]
    assert [(row[1], row[3]) for row in table(tmp_path, "dropped") if row[0] == "qrels"] == dropped
    assert report.facts["merged_queries"] == report.facts["merged_corpus"] == 1


def test_pairs_follow_the_queries_that_are_taken_and_meet_qrels(tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n1\t2\t1\n2\t2\t0\n")
    settings = pairs(tmp_path, "1,头痛,多休息\n2,发热,多喝水\n", qrels={"path": str(tmp_path / "more.tsv")})
    step(tmp_path / "run", "ingest", {**settings, "ids": ["1"]})
    assert table(tmp_path, "qrels") == [("1", "1", 1), ("1", "2", 1)]
    with pytest.raises(DataError, match="found the scores 0 and 1 for the query '2' and the document '2'"):
        step(tmp_path / "other", "ingest", settings)


def test_pairs_need_one_file_and_a_column_for_each_side(tmp_path: Path) -> None:
    settings = pairs(tmp_path, "1,头痛,多休息\n")
    (tmp_path / "copy.csv").write_bytes((tmp_path / "faq.csv").read_bytes())
    corpus = {"path": str(tmp_path / "copy.csv"), "columns": {"text": "text"}}
    with pytest.raises(ConfigError, match=r"ingest\.pairs: rows are pairs in one file alone"):
        step(tmp_path / "run", "ingest", {**settings, "corpus": corpus})
    with pytest.raises(ConfigError, match=r"ingest\.pairs: rows are pairs in one file alone"):
        step(tmp_path / "run", "ingest", {"source": "demo", "pairs": True})
    with pytest.raises(ConfigError, match=r"found the column 'text' for queries and documents, expected two"):
        step(tmp_path / "run", "ingest", {**settings, "queries": corpus | {"path": str(tmp_path / "faq.csv")}})


def test_demo(tmp_path: Path) -> None:
    report = step(tmp_path / "run", "ingest", {"source": "demo"})
    assert report.facts["merged_corpus"] == 8
    assert files.read_table(tmp_path / "run" / "ingest", "queries").height >= 60


def test_real_set_has_its_274_duplicate_groups(tmp_path: Path, shared_data: Path) -> None:
    folder = shared_data / "zh_legacy"
    report = ingest(tmp_path, folder, columns={"queries": {"text": "metadata.title"}})
    lines = (folder / "exact_duplicate_docs.tsv").read_text("utf-8").splitlines()[1:]
    listed = {frozenset(line.split("\t")[1].split()) for line in lines}
    groups: dict[str, set[str]] = {}
    for _table, old, kept in [row for row in table(tmp_path, "aliases") if row[0] == "corpus"]:
        groups.setdefault(kept, {kept}).add(old)
    assert len(listed) == 274
    assert {frozenset(group) for group in groups.values()} == listed
    assert report.facts["documents"] == 5_029
    assert table(tmp_path, "queries")[0][1] == "高血压患者能吃党参吗？"


def test_texts_are_not_held_in_memory(tmp_path: Path) -> None:
    body = "药" * 2_000
    folder = beir(tmp_path / "b", QUERIES, [{"_id": f"d{n}", "text": f"{n}{body}"} for n in range(18_000)])
    small = tmp_path / "small"  # so that what is imported when it is first used is not counted
    ingest(small, beir(small / "b", QUERIES, [{"_id": "d1", "text": "药"}]))
    step(small / "run", "mask", {"recognisers": ["mobile"]})
    tracemalloc.start()
    ingest(tmp_path, folder)
    step(tmp_path / "run", "mask", {"recognisers": ["mobile"]})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 48_000_000  # the texts alone are 72 MB, a batch of them 8


# the input changes, or is missing


def test_fingerprint_follows_the_content(tmp_path: Path) -> None:
    context = Context(run=tmp_path, out=tmp_path, home=tmp_path)
    config = check(Config, {"source": str(beir(tmp_path / "b", QUERIES, CORPUS))}, "ingest")
    before = STAGE.fingerprint(config, context)
    assert STAGE.fingerprint(config, context) == before
    jsonl(tmp_path / "b" / "corpus.jsonl", [*CORPUS, {"_id": "d3", "text": "新"}])
    assert STAGE.fingerprint(config, context) != before
    (tmp_path / "b" / "corpus.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"found no corpus; set ingest\.source"):
        STAGE.fingerprint(config, context)


# mistakes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "d9", "text": "SECRET"', "not valid JSON"),
        ('["SECRET"]', "found a list, expected one JSON object"),
        ('{"_id": "d9", "body": "SECRET"}', "found no text, expected 'text'; name the column with ingest.columns"),
        ('{"text": "SECRET"}', "found no id"),
        ('{"_id": "d 9", "text": "SECRET"}', "found white space in id"),
        ('{"_id": "d1", "text": "SECRET"}', "found the id 'd1' again, expected one row per id"),
        ('{"_id": "d9", "text": 5}', "found a number as text, expected text"),
    ],
)
def test_a_bad_row_stops_or_is_dropped(tmp_path: Path, line: str, message: str) -> None:
    folder = beir(tmp_path / "b", QUERIES, [*CORPUS, line, {"_id": "d3", "text": "新"}], ["q1 d1 1"])
    complaint = fails(tmp_path, folder)
    assert complaint.startswith((f"{folder / 'corpus.jsonl'}:3: ", f"{folder / 'corpus.jsonl'}:3, column "))
    assert message in complaint
    assert "; " in complaint
    assert not (tmp_path / "run" / "ingest" / "corpus.parquet").exists()

    report = step(tmp_path / "again", "ingest", {"source": str(folder), "on_error": "drop"})
    rows = files.read_table(tmp_path / "again" / "ingest", "dropped").rows()
    assert [(row[0], row[1]) for row in rows] == [("corpus", "d1" if "again" in message else "corpus.jsonl:3")]
    assert "SECRET" not in str(rows)
    assert (report.rows_in, report.rows_out, report.dropped) == (6, 5, 1)


@pytest.mark.parametrize(
    ("line", "message", "key"),
    [
        ("q1 d9 1", "found the unknown document 'd9', expected the id of a document", "q1 d9"),
        ("q9 d1 1", "found the unknown query 'q9'", "q9 d1"),
        ("q1 d1 high", "found text as score, expected a whole number", "test.tsv:3"),
        ("q1 d1", "found 2 cells, expected 3 as in the header", "test.tsv:3"),
    ],
)
def test_bad_qrels_stop_or_are_dropped(tmp_path: Path, line: str, message: str, key: str) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS, ["q1 d1 1", line])
    complaint = fails(tmp_path, folder)
    columns = {"document": "corpus-id", "query": "query-id", "score": "score"}
    column = next((f", column {column}" for word, column in columns.items() if word in message), "")
    assert complaint.startswith(f"{folder / 'qrels' / 'test.tsv'}:3{column}: {message}")
    report = step(tmp_path / "again", "ingest", {"source": str(folder), "on_error": "drop"})
    rows = files.read_table(tmp_path / "again" / "ingest", "dropped").rows()
    assert [row[:2] for row in rows] == [("qrels", key)]
    assert (report.facts["qrels"], report.facts["dropped_qrels"], report.dropped) == (1, 1, 0)


@pytest.mark.parametrize(("in_texts", "in_qrels"), [("101", "101.0"), ("101.0", "101"), ("101", 101.0), (101.0, "101")])
def test_an_id_that_a_table_program_made_a_float_of_is_found(
    tmp_path: Path, in_texts: object, in_qrels: object
) -> None:
    corpus = [*CORPUS, {"_id": in_texts, "text": "多喝水"}]
    pairs = jsonl(tmp_path / "qrels.jsonl", [{"qid": "q1", "docid": in_qrels, "score": "1.0"}])
    report = ingest(tmp_path, beir(tmp_path / "b", QUERIES, corpus), qrels={"path": str(pairs)})
    kept = "101.0" if in_texts == "101.0" else "101"
    assert table(tmp_path, "qrels") == [("q1", kept, 1)]
    counted = isinstance(in_texts, str) and isinstance(in_qrels, str)
    said = ["1 ids that no text has were taken for the same whole number, as 101.0 for 101"]
    assert report.notes == (said if counted else [])


def test_an_id_is_text_where_the_texts_have_it_or_several_are_its_number(tmp_path: Path) -> None:
    corpus = [{"_id": name, "text": f"{name} 多喝水"} for name in ("7", "7.0", "08.0", "8.0", "8.00")]
    folder = beir(tmp_path / "b", QUERIES, corpus, ["q1 7 1", "q1 7.0 2", "q1 8 1"])
    assert (
        "found the unknown document '8', expected the id of a document; the corpus has '08.0' and '8.0': is that"
        in (fails(tmp_path, folder))
    )
    step(tmp_path / "again", "ingest", {"source": str(folder), "on_error": "drop"})
    assert files.read_table(tmp_path / "again" / "ingest", "qrels").rows() == [("q1", "7", 1), ("q1", "7.0", 2)]


def test_an_unknown_id_names_what_the_texts_have(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, [{"_id": "D01", "text": "多喝水"}], ["q1 d1 1", "q7 D01 1"])
    looks_like, other = fails(tmp_path, folder).splitlines()
    assert "; the corpus has 'D01': is that meant? correct the line" in looks_like
    assert "; the queries have ids such as 'q1'; correct the line" in other


def test_trec_qrels_may_have_scores_with_a_point(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1.0\nq2 0 d2 0.0\n", encoding="utf-8")
    ingest(tmp_path, beir(tmp_path / "b", QUERIES, CORPUS), qrels={"path": str(tmp_path / "qrels.txt")})
    assert table(tmp_path, "qrels") == [("q1", "d1", 1), ("q2", "d2", 0)]


def test_rows_that_contradict_each_other_are_bad_and_equal_ones_are_one(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS, ["q1 d1 1", "q2 d2 1", "q1 d2 1", "q2 d2 1", "q1 d1 0", "q2 d1 0"])
    place = folder / "qrels" / "test.tsv"
    assert fails(tmp_path, folder) == (
        f"{place}:6: found the scores 0 and 1 for the query 'q1' and the document 'd1', the others in {place}:2, "
        "expected one score per pair; correct the line, or set ingest.on_error: drop"
    )
    report = step(tmp_path / "again", "ingest", {"source": str(folder), "on_error": "drop"})
    again = tmp_path / "again" / "ingest"
    assert files.read_table(again, "qrels").rows() == [("q1", "d2", 1), ("q2", "d1", 0), ("q2", "d2", 1)]
    assert [row[:4] for row in files.read_table(again, "dropped").rows()] == (
        [("qrels", "q1 d1", "ingest", "the scores 0 and 1")] * 2
    )
    assert report.facts["dropped_qrels"] == 2


def test_a_table_of_which_most_rows_are_dropped_stops_the_run(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS, ["q1 d1 1", "q1 d8 1", "q2 d9 1"])
    assert fails(tmp_path, folder, on_error="drop") == (
        "ingest: of 3 rows of the qrels 2 dropped (2 x unknown document), expected at most the "
        "share of ingest.max_drop, 0.5; correct the files, or set it to 1 if that is on purpose"
    )
    settings = {"source": str(folder), "on_error": "drop", "max_drop": 1}
    assert step(tmp_path / "again", "ingest", settings).facts["qrels"] == 1
    assert digest(check(Config, {}, "ingest")) == digest(check(Config, {"max_drop": 0.5}, "ingest"))
    assert "max_drop" not in check(Config, {}, "ingest").model_dump()


def test_problems_of_a_file_are_listed_together_up_to_ten(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, [*CORPUS, "{", "[]", "{"], ["q1 d1 1"])
    assert [line.split(": ")[0].rpartition(":")[2] for line in fails(tmp_path, folder).splitlines()] == ["3", "4", "5"]
    folder = beir(tmp_path / "many", QUERIES, [*CORPUS, *["{"] * 30], ["q1 d1 1"])
    with pytest.raises(DataError) as caught:
        step(tmp_path / "other", "ingest", {"source": str(folder)})
    assert len(str(caught.value).splitlines()) == 10


def test_a_header_without_the_column(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS)
    (tmp_path / "q.csv").write_text(f"qid,{SECRET}\nq1,头痛\n", encoding="utf-8")
    complaint = fails(tmp_path, folder, queries={"path": str(tmp_path / "q.csv")})
    assert complaint == (
        f"{tmp_path / 'q.csv'}:1: found the columns qid, one of 14 characters, expected text; "
        "name it with ingest.columns.queries.text"
    )


def test_a_title_column_that_was_named_must_be_there(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS)
    (tmp_path / "c.csv").write_text("id,text\nd1,头痛\n", encoding="utf-8")
    corpus = {"path": str(tmp_path / "c.csv")}
    ingest(tmp_path, folder, corpus=corpus)
    with pytest.raises(DataError, match="expected title"):
        step(tmp_path / "o", "ingest", {"source": str(folder), "corpus": {**corpus, "columns": {"title": "head"}}})


def test_texts_taken_for_ids_are_not_quoted(tmp_path: Path) -> None:
    rows = [{"_id": "q1", "text": SECRET}, {"_id": "q2", "text": SECRET}]
    complaint = fails(tmp_path, beir(tmp_path / "b", rows, CORPUS), columns={"queries": {"id": "text"}})
    assert "found the id of 14 characters again" in complaint
    settings = {"source": str(tmp_path / "b"), "columns": {"queries": {"id": "text"}}, "on_error": "drop"}
    step(tmp_path / "o", "ingest", settings)
    dropped = files.read_table(tmp_path / "o" / "ingest", "dropped").rows()
    assert [row[:2] for row in dropped] == [("queries", "queries.jsonl:2")]


def test_wrong_encoding_has_its_line(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS)
    content = (folder / "corpus.jsonl").read_bytes()
    (folder / "corpus.jsonl").write_bytes(content + '{"_id": "d3", "text": "头痛得很"}\n'.encode("gb18030"))
    complaint = fails(tmp_path, folder)
    assert "corpus.jsonl:3: found bytes that are not UTF-8" in complaint
    assert "ingest.encoding" in complaint


def test_a_wrongly_named_encoding(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS)
    jsonl(folder / "corpus.jsonl", CORPUS, "gb18030")
    assert "corpus.jsonl:1: found bytes that are not UTF-8" in fails(tmp_path, folder, encoding="utf-8")


@pytest.mark.parametrize("name", ["queries", "corpus"])
def test_files_without_texts(tmp_path: Path, name: str) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS)
    jsonl(folder / f"{name}.jsonl", [{"_id": "x", "text": " "}])
    assert f"{name}.jsonl: found no {name} with text, expected at least one" in fails(tmp_path, folder)


def test_files_of_which_every_row_is_dropped_say_why(tmp_path: Path) -> None:
    rows = ["{", "[]", "{", {"_id": "x", "text": " "}, *(f"{' ' * n}{{" for n in range(12))]
    folder = beir(tmp_path / "b", QUERIES, rows)
    complaint = fails(tmp_path, folder, on_error="drop")
    assert "corpus.jsonl: found no corpus with text, expected at least one; 16 dropped (3 x a line that is" in complaint
    assert "1 x a list" in complaint
    assert "4 x others); check the file" in complaint


def test_a_choice_that_leaves_no_query_says_so(tmp_path: Path) -> None:
    complaint = fails(tmp_path, beir(tmp_path / "b", QUERIES, CORPUS), ids=["x"])
    assert "found no queries with text, expected at least one; 2 left out by ingest.ids" in complaint


def test_unknown_ids(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", QUERIES, CORPUS)
    wanted = ["q1", *(f"x{n}" for n in range(12))]
    complaint = fails(tmp_path, folder, ConfigError, ids=wanted)
    assert complaint.startswith("ingest.ids: found no query 'x0', 'x1'")
    assert complaint.endswith("'x9' and 2 more; correct the list of ids")


def test_a_title_that_is_part_of_the_text_makes_no_difference(tmp_path: Path) -> None:
    """Two documents that a judge is shown alike are one."""
    rows = [
        {"_id": "d1", "title": "感冒", "text": "多喝水"},
        {"_id": "d2", "title": "", "text": "感冒\n多喝水"},
        {"_id": "d3", "title": "感", "text": "冒多喝水"},
    ]
    report = ingest(tmp_path, beir(tmp_path / "b", QUERIES, rows))
    assert report.facts["merged_corpus"] == 1
    assert table(tmp_path, "aliases") == [("corpus", "d2", "d1")]


# labels of texts


def labelled(tmp_path: Path, rows: list[Any], **more: Any) -> Any:
    data = beir(tmp_path / "data", [*QUERIES, {"_id": "q3", "text": " 头痛怎么办"}], CORPUS)
    jsonl(tmp_path / "labels.jsonl", rows)
    section = {"path": str(tmp_path / "labels.jsonl"), **more}
    return ingest(tmp_path, data, labels=section)


def test_labels_follow_merged_texts_and_a_group_is_a_number(tmp_path: Path) -> None:
    rows = [
        {"id": "q1", "label": "心血管科", "person": SECRET},
        {"id": "q3", "label": ["神经科", "神经科 "], "person": SECRET},
        {"id": "q2", "label": 7},
        {"id": "q2", "label": None},
    ]
    report = labelled(tmp_path, rows, origin="keyword", columns={"group": "person"})
    assert table(tmp_path, "labels") == [
        ("q1", "queries", "心血管科", "keyword", "1"),
        ("q2", "queries", "7", "keyword", None),
        ("q2", "queries", "神经科", "keyword", "1"),
    ]
    assert report.facts["labels"] == 3
    assert "labels" not in ingest(tmp_path / "without", tmp_path / "data").facts


def test_a_column_of_the_documents_can_hold_their_labels(tmp_path: Path) -> None:
    corpus = [{**row, "metadata": {"ward": name}} for row, name in zip(CORPUS, ("内科", "外科"), strict=True)]
    data = beir(tmp_path / "data", QUERIES, [*corpus, {"_id": "d3", "title": "", "text": "多喝水"}])
    ingest(tmp_path, data, labels={"side": "corpus", "columns": {"label": "metadata.ward"}})
    assert [row[:3] for row in table(tmp_path, "labels")] == [("d1", "corpus", "内科"), ("d2", "corpus", "外科")]


def test_what_is_wrong_with_labels_is_said_by_line(tmp_path: Path) -> None:
    said = [{"id": "q9", "label": "x"}, {"id": "q1", "label": {"SECRET": 1}}]
    with pytest.raises(DataError) as caught:
        labelled(tmp_path / "1", said)
    one, two = str(caught.value).splitlines()
    assert "labels.jsonl:1: found the unknown query 'q9', expected the id of a query" in one
    assert "labels.jsonl:2, column label: found an object as label, expected a name" in two
    with pytest.raises(DataError, match=r"found no label of any query in the column 'klass'; name the column in ing"):
        labelled(tmp_path / "2", [{"id": "q1", "label": "x"}], columns={"label": "klass"})
    with pytest.raises(DataError, match=r"no such file; set ingest.labels.path"):
        ingest(tmp_path / "3", tmp_path / "1" / "data", labels={"path": "nowhere.csv"})
    (tmp_path / "odd.csv").write_text("id,department\nq1,x\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"name it with ingest.labels.columns.label"):
        ingest(tmp_path / "4", tmp_path / "1" / "data", labels={"path": str(tmp_path / "odd.csv")})
