"""`curate agree FILE` finds out how a file is meant by its header, says so, and asks where it cannot know."""

import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pyarrow as pa
import pytest

from curate.commands.agree.ratings_file import measure, read
from curate.core.errors import ConfigError, DataError
from curate.pii.person_names.lexicon import is_name
from curate.tables.readers.ratings import Layout, is_person, looks_like_counts, panel
from tests.support import machine
from tests.support.printed import sentences
from tests.support.runs import Done, curate, ran

ROWS = [
    ("007", "d1", "a", "S"),
    ("007", "d1", "b", "A"),
    ("7", "d1", "a", "D"),
    ("7", "d1", "b", ""),
    ("7", "d2", "b", "D"),
]


def agree(folder: Path, content: str | bytes, *words: str, name: str = "f.csv") -> Done:
    """Write a file and return what `curate agree` says of it."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    done = curate(folder, "agree", name, *words)
    assert "Traceback" not in done.stderr
    return done


def long(header: str, between: str = ",", end: str = "\n") -> str:
    return end.join(between.join(row) for row in (header.split(","), *ROWS)) + end


@pytest.mark.parametrize(
    "header",
    [
        "query_id,doc_id,assessor,grade",
        "query_id,doc_id,judge,grade",
        "query_id,doc_id,rater,grade",
        "qid,document,Annotator,Label",
        "Query-ID,DocID,JUDGE_ID,Rating",
        "查询,文档,评审,等级",
    ],
)
def test_long_form_is_read_without_flags(tmp_path: Path, header: str) -> None:
    query, document, rater, rating = header.split(",")
    first, *notes = agree(tmp_path, long(header)).stdout.split("\n\n")[0].splitlines()
    assert first == f"f.csv: items by {query}, {document}; ratings by a, b; scale nominal: A, D, S"
    assert notes == [
        f"long form, a row per rating: raters in {rater}, ratings in {rating}",
        f"intervals resample {query}",
    ]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\xef\xbb\xbf" + long("query_id,doc_id,assessor,grade", end="\r\n").encode(), "f.csv"),
        (long("query_id,doc_id,assessor,grade", ";").encode(), "f.csv"),
        (long("query_id,doc_id,assessor,grade", "\t").encode(), "f.csv"),
        (long("query_id,doc_id,assessor,grade").encode(), "f.tsv"),
        (long("query_id,doc_id,评审,等级").encode("gb18030"), "f.csv"),
        (long("query_id,doc_id,assessor,grade").encode("utf-16"), "f.csv"),
        (long("query_id,doc_id,assessor,grade").replace(",\n", ",  \n").encode(), "f.csv"),
    ],
    ids=["bom and crlf", "semicolons", "tabs", "commas in a tsv", "gb18030", "utf-16", "blanks"],
)
def test_however_a_spreadsheet_saved_it(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / "plain.csv").write_text(long("query_id,doc_id,assessor,grade"), encoding="utf-8")
    plain: Any = measure(tmp_path / "plain.csv", Layout(), 0).to_json()
    (tmp_path / name).write_bytes(content)
    found: Any = measure(tmp_path / name, Layout(), 0).to_json()
    assert found["ratings"] == plain["ratings"]
    assert (found["ratings"]["items"], found["ratings"]["under_two"], found["ratings"]["clusters"]) == (3, 2, 2)


@pytest.mark.parametrize("who", [("王芳", "Bob", "r3"), ("甲", "乙", "丙")])
@pytest.mark.parametrize("header", ["query_id,doc_id,judge,grade", "查询,文档,评审员,等级"])
def test_a_spreadsheet_from_china_whose_only_chinese_is_names(
    tmp_path: Path, who: tuple[str, ...], header: str
) -> None:
    rows = [f"q{n},d{n},{name},{'SB'[n % 2]}" for n in range(30) for name in who]
    done = agree(tmp_path, "\r\n".join([header, *rows, ""]).encode("gb18030"))
    assert (done.returncode, f"ratings by {', '.join(who)};" in done.stdout) == (0, True), done.stderr
    assert "got no text" in (refused := agree(tmp_path, b"item,a,b\ncaf\xe9\n").stderr)
    assert "ingest." not in refused, "there is no such option"


def test_a_part_of_the_item_is_no_item(tmp_path: Path) -> None:
    content = long("query_id,doc_id,assessor,grade")
    refused = agree(tmp_path, content, "--item", "doc_id")
    assert refused.returncode == 2
    assert "f.csv:4: found a second rating of an item by one rater" in sentences(refused.stderr)
    assert "give --item query_id,doc_id, or leave one out" in sentences(refused.stderr)
    once = "query_id,doc_id,assessor,grade\nq1,d1,a,S\nq1,d1,b,A\nq2,d2,a,S\nq2,d2,b,S\n"
    assert "items by doc_id alone; give --item query_id,doc_id if " in agree(tmp_path, once, "--item", "doc_id").stdout
    wide = agree(tmp_path, "query_id,doc_id,x,y\nq1,d1,S,A\nq2,d1,S,A\n", "--item", "doc_id").stderr
    assert "f.csv:3: found an item for the second time" in sentences(wide)
    assert "give --item query_id,doc_id" in wide
    whole = agree(tmp_path, "query_id,doc_id,x,y\nq1,d1,S,A\nq2,d1,S,A\n").stdout
    assert whole.startswith("f.csv: items by query_id, doc_id; ratings by x, y;")


def test_extra_columns_are_no_raters(tmp_path: Path) -> None:
    said = agree(tmp_path, "item,slot,a,b,Notes\n1,3,x,y,bla\n2,4,x,x,\n").stdout
    assert said.startswith("f.csv: items by item; ratings by a, b; scale nominal: x, y\nnot read: slot, Notes\n")
    said = agree(
        tmp_path, long("query_id,doc_id,assessor,grade").replace("\n", ",1\n").replace("grade,1", "grade,slot")
    ).stdout
    assert "not read: slot" in said


@pytest.mark.parametrize(
    ("header", "raters", "truth"),
    [
        ("item,x,y,human", ["x", "y"], "human"),
        ("item,Human_label,x,y", ["x", "y"], "Human_label"),
        ("item,x,y,gold", ["x", "y"], "gold"),
        ("item,x,y,金标准", ["x", "y"], "金标准"),
        ("item,x,y,王医生", ["x", "y"], "王医生"),
        ("item,gpt-4o,qwen-plus,wang", ["gpt-4o", "qwen-plus"], "wang"),
        ("item,judge_1,judge_2,Alice", ["judge_1", "judge_2"], "Alice"),
        ("item,judge_a,judge_b,张三", ["judge_a", "judge_b"], "张三"),
        ("item,模型甲,gpt-4o,欧阳娜娜", ["模型甲", "gpt-4o"], "欧阳娜娜"),
        ("item,judge_a,judge_b,标注员1", ["judge_a", "judge_b"], "标注员1"),
        ("item,judge_a,judge_b,María García", ["judge_a", "judge_b"], "María García"),
        ("item,gpt-4o,yi,claude", ["gpt-4o", "yi", "claude"], None),
        ("item,wang,li,garcia", ["wang", "li", "garcia"], None),  # people alone are who is measured
        ("item,dr_wang,dr_li,human", ["dr_wang", "dr_li", "human"], None),
    ],
)
def test_people_beside_judges_are_the_truth(tmp_path: Path, header: str, raters: list[str], truth: str | None) -> None:
    (tmp_path / "f.csv").write_text(f"{header}\n1,a,b,a\n2,b,b,b\n3,a,a,b\n", encoding="utf-8")
    found: Any = measure(tmp_path / "f.csv", Layout(), 0).to_json()
    assert (found["raters"], found["truth"]) == (raters, truth)
    assert any(f"{truth} is no rater here" in note for note in found["notes"]) == (truth is not None)
    everybody = tuple(header.split(",")[1:])
    named: Any = measure(tmp_path / "f.csv", Layout(raters=everybody), 0).to_json()
    assert (named["raters"], named["truth"]) == ([*everybody], None)


PEOPLE = """
张三 李娜 王五 赵敏 欧阳娜娜 张三_2 老王 小李 李工 医生甲 标注员2 annotator_3 María Hans Yuki Ahmed Priya Ivan Søren
Łukasz 曹操 孟非 Ngozi JÜRGEN Hans_Müller alice Yi-Zhang
"""
NO_PEOPLE = """
gpt gpt-4o qwen Qwen-Max claude Claude-Opus llama judge_a glm GLM-4 Yi ernie Gemma Kimi Grok 文心 文心一言 元宝 通义
混元 豆包 百川 智谱 严格 温和 谨慎 平均 评审甲 模型标注员 gpt_annotator lexical strict 甲
"""


def test_names_of_people_are_known_beside_judges_and_those_of_models_are_not() -> None:
    said = {name: panel([name, "judge_a", "judge_b"], Layout(), is_name, wide=True) for name in PEOPLE.split()}
    assert {name: each.truth for name, each in said.items()} == {name: name for name in said}
    taken = [n for n in NO_PEOPLE.split() if is_person(n, [n, "judge_a", "judge_b"], is_name, wide=True)]
    assert taken == []


def test_whom_to_measure_can_be_said(tmp_path: Path) -> None:
    wide = "item,x,y,z,human,gold\n1,a,b,a,a,a\n2,b,b,b,b,b\n3,a,a,b,b,a\n"
    said = agree(tmp_path, wide).stdout
    assert "left out as people: human, gold; --raters names who is measured, --truth whose ratings are the tru" in said
    found = machine.data(agree(tmp_path, wide, "--raters", "x,Z", "--truth", "GOLD", "--json").stdout)
    assert (found["raters"], found["truth"]) == (["x", "z"], "gold")
    rows = "item,rater,rating\n" + "".join(f"{n},{who},{n % 2}\n" for n in range(4) for who in ("x", "y", "human"))
    found = machine.data(agree(tmp_path, rows, "--json").stdout)
    assert (found["raters"], found["truth"]) == (["x", "y"], "human")
    assert machine.data(agree(tmp_path, rows, "--raters", "y,human", "--json").stdout)["raters"] == ["y", "human"]
    for words, error in (
        (("--raters", "x,who"), "--raters: found no rater 'who'"),
        (("--truth", "q"), "--truth: found"),
    ):
        refused = agree(tmp_path, rows, *words)
        assert (refused.returncode, error in refused.stderr) == (2, True)


COUNTS = {
    "constant": "subject,c1,c2,c3\n1,0,0,14\n2,0,2,12\n3,7,7,0\n",
    "total": "id,yes,no,Total\nq1,3,1,4\nq2,1,8,9\nq3,0,3,3\n",
    "unequal": "id,S,A,B\n1,5,0,1\n2,0,6,0\n3,1,1,5\n4,3,3,0\n5,0,0,5\n6,7,0,0\n",
    "no id": "S,A,B\n3,1,0\n1,0,3\n3,0,1\n",
    "ragged": "id,no,maybe,yes\nq1,0,2,12\nq2,10,3,0\nq3,14,0,0\nq4,2,5,5\nq5,0,0,14\n",
    "few": "id,1,2,3\n1,5,0,1\n2,0,6,0\n3,1,1,5\n",
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_asked_about_and_never_read_as_ratings(tmp_path: Path, name: str) -> None:
    refused = agree(tmp_path, COUNTS[name])
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "found whole numbers that look like counts" in sentences(refused.stderr)
    assert "give --counts if they are, or --raters " in sentences(refused.stderr)
    header, *rows = (line.split(",") for line in COUNTS[name].split())
    names = [each for each in header if each not in ("subject", "id", "Total")]
    found = machine.data(agree(tmp_path, COUNTS[name], "--counts", "--json").stdout)
    assert (found["form"], found["labels"], found["raters"]) == ("counts", names, [])
    codes = [[n for n, each in enumerate(names) for _ in range(int(row[header.index(each)]))] for row in rows]
    most = max(map(len, codes))
    table = pl.DataFrame([["x", *row, *[None] * (most - len(row))] for row in codes], orient="row")
    table.with_columns(column_0=pl.Series(range(len(codes)))).write_csv(tmp_path / "wide.csv")
    as_ratings: Any = measure(tmp_path / "wide.csv", Layout(raters=tuple(table.columns[1:])), 0).to_json()["ratings"]
    for figure in ("fleiss", "percent", "alpha_nominal", "ac1", "items", "estimator"):
        assert found["ratings"][figure] == as_ratings[figure]
    assert found["ratings"]["pairs_of_raters"] is None
    said = agree(tmp_path, COUNTS[name], "--counts").stdout
    assert ("not read: Total, the sum of the others" in said) == (name == "total")
    assert "items by row;" in said or name != "no id"


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        (COUNTS["total"].replace("8,9", "8,7"), [], "f.csv:3, column Total: found another number than the sum"),
        (COUNTS["constant"].replace("7,7", "7,x"), [], "f.csv:4, column c2: found no whole number, expected a count"),
        (COUNTS["constant"].replace("7,7", "7,-7"), [], "f.csv:4, column c2: found no whole number"),
        (COUNTS["constant"].replace("7,7", "7,7000"), [], "f.csv:4: found over 1,000 ratings of an item"),
        (COUNTS["constant"], ["--raters", "c1,c2"], "found --counts and an option that names raters"),
        (COUNTS["constant"], ["--order", "c1,c9"], "found no column 'c9'"),
    ],
)
def test_counts_that_are_wrong(tmp_path: Path, content: str, words: list[str], said: str) -> None:
    refused = agree(tmp_path, content, "--counts", *words)
    assert (refused.returncode, said in sentences(refused.stderr)) == (2, True), refused.stderr


def test_ratings_are_not_taken_for_counts(tmp_path: Path, shared_data: Path) -> None:
    for name in ("fleiss1971_diagnoses.csv", "gwet_4raters_missing.csv", "llmjudge_8queries_5judges.csv"):
        ran(tmp_path, "agree", str(shared_data / "multirater" / name))
    cross = curate(tmp_path, "agree", str(shared_data / "multirater" / "cohen_sas_table.csv"))
    assert (cross.returncode, "as in a cross table of two raters" in cross.stderr) == (2, True)
    apart = [["0", "4"], ["4", "0"], ["0", "4"]]
    assert looks_like_counts(["x", "y"], apart)
    assert not looks_like_counts(["rater1", "rater2"], apart), "so they are called"
    assert not looks_like_counts(["x", "y"], [["3", "3"]] * 9), "nothing varies"
    assert not looks_like_counts(["x", "y", "z"], [["0", "3", "2"], ["3", "1", "0"], ["1", "0", "3"]]), (
        "few, and grades"
    )
    assert not looks_like_counts(["x", "y"], [["80", "75"], ["10", "20"], ["55", "60"]]), "they agree"
    assert not looks_like_counts(["x", "y"], [["0", "1"], ["1", "0"], ["0", "1"]]), "one rating per item"
    assert not looks_like_counts(["x", "y"], [["", "4"], ["4", "0"], ["0", "4"]]), "missing"
    assert read(tmp_path / _written(tmp_path), Layout(raters=("x", "y"))).raters == ("x", "y")


def _written(folder: Path) -> str:
    (folder / "apart.csv").write_text("item,x,y\n1,0,4\n2,4,0\n3,0,4\n", encoding="utf-8")
    return "apart.csv"


def test_one_category_is_agreement_by_definition(tmp_path: Path) -> None:
    said = agree(tmp_path, "item,a,b\n1,x,x\n2,x,x\n").stdout
    rows = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in said.splitlines()}
    for name in ("percent agreement", "Gwet's AC1"):
        assert rows[name] == "1, by definition: one category only"
    for name in ("Fleiss' κ", "Krippendorff's α (nominal)"):
        assert rows[name] == "not defined"
    found = machine.data(agree(tmp_path, "item,a,b\n1,x,x\n2,x,x\n", "--json").stdout)["ratings"]
    assert (found["one_category"], found["percent"], found["fleiss"]) == (True, 1, None)
    assert set(found["intervals"].values()) == {None}, "there is nothing that could have come out otherwise"
    two = machine.data(agree(tmp_path, "item,a,b\n1,x,x\n2,y,y\n", "--json").stdout)["ratings"]
    assert (two["one_category"], two["percent"]) == (False, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "found 0 items and 0 raters"),
        (b"\xff\xfe\x00\xd8,1\n", "f.csv"),
        (bytes(range(256)), "found zero bytes"),
        (b"query_id,doc_id,assessor,grade\n", "found 0 items"),
        (b"query_id,doc_id,assessor,grade\nq1,d1,a\n", "f.csv:2: found 3 cells, expected 4"),
        (b"query_id,doc_id,assessor,grade\nq1,d1,,S\n", "f.csv:2, column assessor: found an empty cell"),
        (b"item,assessor,grade\nx,a,1\nx,b,2\nx,a,2\n", "name more columns of an item with --item"),
        (b"1,2,2\n2,1,1\n", "found a column name twice"),
        (b"item,judge,score\nx,a,2\ny,a,1\n", "if these columns are raters themselves, give --raters judge,score"),
    ],
)
def test_what_is_no_table_of_ratings_is_a_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    refused = agree(tmp_path, content)
    assert (refused.returncode, said in sentences(refused.stderr)) == (2, True), refused.stderr


def test_words_for_nothing_are_named(tmp_path: Path) -> None:
    content = "item,a,b\n1,x,NA\n2,y,y\n"
    assert "counted as ratings: NA; --set blank=NA if they are none" in agree(tmp_path, content).stdout
    assert "counted as" not in agree(tmp_path, content, "--set", "blank=NA").stdout
    assert "counted as different ratings: X, x; write them" in agree(tmp_path, "item,a,b\n1,x,X\n2,y,y\n").stdout


def test_a_truth_beside_counts_is_refused() -> None:
    with pytest.raises(ConfigError, match="counts have none"):
        Layout(counts=True, truth="human")


def test_two_columns_that_differ_in_case_are_two(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("item,a,A\n1,x,y\n2,y,y\n", encoding="utf-8")
    assert read(tmp_path / "f.csv", Layout(raters=("a", "A"))).raters == ("a", "A")
    with pytest.raises(DataError, match="found no column 'ITEMS'"):
        read(tmp_path / "f.csv", Layout(item=("ITEMS",)))


# what annotation tools export: one row per annotation, or the answers of all people in a record

VOTES = {"t1": ("yes", "yes"), "t2": ("yes", "no"), "t3": ("no", "no")}
STUDIO = [
    {"id": item, "text": f"text {item}", "annotator": f"{who}@x.org", "annotation_id": 2 * at + by, "QUESTION": vote,
     "created_at": f"2026-01-0{at + 1}", "lead_time": 3.5 + at}
    for at, (item, votes) in enumerate(VOTES.items())
    for by, (who, vote) in enumerate(zip(("ann", "ben"), votes, strict=True))
]  # fmt: skip
PEOPLE_OF_RECORD = ["ann@x.org", "ben@x.org"]


def studio(question: str, several: bool = False) -> list[dict[str, Any]]:
    """Return annotations as Label Studio's JSON-MIN and CSV have them."""
    return [
        {key: entry for key, entry in row.items() if key != "QUESTION"}
        | {question: {"choices": ["sure", row["QUESTION"]]} if several else row["QUESTION"]}
        for row in STUDIO
    ]


def argilla(form: str) -> list[dict[str, Any]]:
    """Return records with the responses of two people in one of Argilla's forms."""
    records: list[dict[str, Any]] = []
    for item, votes in VOTES.items():
        responses = [
            {"user_id": who, "value": vote, "status": "submitted"}
            for who, vote in zip(PEOPLE_OF_RECORD, votes, strict=True)
        ]
        responses.append({"user_id": "eve", "value": "no", "status": "draft"})
        answered: dict[str, dict[str, Any]] = {
            "values": {
                "responses": [
                    {**entry, "values": {"relevance": {"value": entry["value"]}}, "value": None} for entry in responses
                ]
            },
            "questions": {"responses": {"relevance": responses}},
            "column": {"relevance": responses},
            "columns": {
                "relevance.responses": [entry["value"] for entry in responses],
                "relevance.responses.users": [entry["user_id"] for entry in responses],
                "relevance.responses.status": [entry["status"] for entry in responses],
            },
        }
        records.append({"id": item, "fields": {"text": "a text"}, "metadata": None, **answered[form]})
    return records


EXPORTS = {
    "min": studio("relevance"),
    "min of an unusual question": studio("Is it so?"),
    "min with several choices": studio("choice", several=True),
    "labels of people": [
        {"id": item, "annotations": [{"completed_by": {"id": by, "email": who}, "result": [
            {"from_name": "q", "value": {"choices": [vote]}}]} for by, (who, vote) in enumerate(
                zip(PEOPLE_OF_RECORD, votes, strict=True))] + [{"completed_by": 9, "result": [], "id": 7}]}
        for item, votes in VOTES.items()
    ],
    **{form: argilla(form) for form in ("values", "questions", "column", "columns")},
}  # fmt: skip


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("name", ["r.json", "r.jsonl.gz", "r.csv", "r.parquet"])
def test_exports_of_annotation_tools_are_read_without_flags(export: str, name: str, tmp_path: Path) -> None:
    records = EXPORTS[export]
    path = tmp_path / name
    nested = not export.startswith("min")
    if name == "r.json":
        path.write_text(json.dumps(records))
    elif name == "r.csv" and not nested:
        rows = [{k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()} for row in records]
        pl.DataFrame(rows).write_csv(path)
    elif name == "r.parquet" and export not in ("labels of people", "values"):
        pl.DataFrame(records).drop("fields", strict=False).write_parquet(path)
    else:
        path = tmp_path / "r.jsonl.gz"
        with gzip.open(path, "wt") as stream:
            stream.writelines(json.dumps(record) + "\n" for record in records)
    found = read(path, Layout())
    labels = ("no + sure", "sure + yes") if "several" in export else ("no", "yes")
    assert (found.raters, found.labels) == (tuple(PEOPLE_OF_RECORD), labels)
    assert found.codes.tolist() == [[1, 1], [1, 0], [0, 0]]


def runnable(refused: str) -> list[list[str]]:
    """Return the commands that an error prints to choose from, without the program's name."""
    return [shlex.split(line.partition("try: curate ")[2]) for line in refused.splitlines() if "try: curate " in line]


@pytest.mark.parametrize(
    ("header", "answers"),
    [
        ("item,rater,clarity,fluency", ["clarity", "fluency"]),
        ("样本,评审人,清晰度,流畅度", ["清晰度", "流畅度"]),
        ("item,rater,speech acts,a 'mood'", ["speech acts", "a 'mood'"]),
    ],
)
def test_which_of_several_columns_is_a_question_whose_answers_run(
    header: str, answers: list[str], tmp_path: Path
) -> None:
    rows = [f"t{n},{who},{'xyz'[n % 3]},{'uv'[(n + by) % 2]}" for n in range(6) for by, who in enumerate(("a", "b"))]
    refused = agree(tmp_path, "\n".join([header, *rows, ""]))
    assert "expected one column for each; name them with --item, --rater and --rating" in sentences(refused.stderr)
    commands = runnable(refused.stderr)
    assert [words[-1] for words in commands] == answers
    for words in commands:
        assert f"ratings in {words[-1]}" in ran(tmp_path, *words).stdout


def test_the_sheet_is_a_question_whose_answers_run(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for page in (book.worksheets[0], book.create_sheet("第二 批")):
        for row in (("2026 年度",), ("编号", "张三", "李四"), ("甲", "S", "A"), ("乙", "A", "A")):
            page.append(row)
    book.save(tmp_path / "r.xlsx")
    commands = runnable(curate(tmp_path, "agree", "r.xlsx").stderr)
    assert [words[-1] for words in commands] == ["sheet=Sheet", "sheet=第二 批"]
    assert ["ratings by 张三, 李四" in ran(tmp_path, *words).stdout for words in commands] == [True, True]


def test_counts_or_ratings_is_a_question_whose_answers_run(tmp_path: Path) -> None:
    commands = runnable(agree(tmp_path, COUNTS["constant"]).stderr)
    assert [words[2:] for words in commands] == [["--counts"], ["--raters", "c1,c2,c3"]]
    assert [ran(tmp_path, *words).returncode for words in commands] == [0, 0]


@pytest.mark.parametrize(
    ("header", "item"),
    [
        ("样本编号,专家姓名,评分", "样本编号"),
        ("text,annotator,label", "text"),
        ("utterance,who,mood", "utterance"),
        ("sample,who,mood", "sample"),
    ],
)
def test_a_long_table_is_known_by_its_content(header: str, item: str, tmp_path: Path) -> None:
    rows = [f"t{n},{who},{'xyz'[(n + by * (n > 3)) % 3]}" for n in range(6) for by, who in enumerate(("ann", "ben"))]
    (tmp_path / "f.csv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    found = read(tmp_path / "f.csv", Layout())
    assert (found.plan.form, found.plan.item, found.raters) == ("long", (item,), ("ann", "ben"))


def test_a_first_column_that_rates_as_the_others_is_no_item(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("ann,ben\nS,A\nA,A\nA,S\n", encoding="utf-8")
    found = read(tmp_path / "f.csv", Layout())
    assert (found.plan.item, found.raters, len(found.codes)) == ((), ("ann", "ben"), 3)
    assert read(tmp_path / "f.csv", Layout(raters=("ann", "ben"))).codes.tolist() == found.codes.tolist()


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.csv.gz", "r.tsv.zst", "r.xlsx", "r.arrow"])
@pytest.mark.parametrize("sign", [";", "|", "\t"])
def test_ratings_of_any_kind_of_file_are_the_same(name: str, sign: str, tmp_path: Path) -> None:
    rows = [("item", "ann", "ben"), *((f"x, {n}", str(n % 3), str(n % 4 % 3)) for n in range(20))]
    frame = pl.DataFrame(rows[1:], rows[0], orient="row")
    frame.write_csv(tmp_path / "plain.csv")
    content = "".join(sign.join(row) + "\n" for row in rows).encode()
    if name.endswith(".xlsx"):
        book = openpyxl.Workbook()
        for row in rows:
            book.worksheets[0].append([int(cell) if cell.isdigit() else cell for cell in row])
        book.create_sheet("notes")
        book.save(tmp_path / name)
    elif name.endswith(".arrow"):
        frame.write_ipc(tmp_path / name)
    else:
        with pa.output_stream(str(tmp_path / name), compression="detect") as stream:
            stream.write(content)
    plain, found = (read(tmp_path / each, Layout()) for each in ("plain.csv", name))
    assert (found.codes.tolist(), found.labels, found.raters) == (plain.codes.tolist(), plain.labels, ("ann", "ben"))
    if name == "r.csv":
        assert read(tmp_path / name, Layout(delimiter=sign)).codes.tolist() == plain.codes.tolist()


def test_what_a_user_says_of_a_file_of_ratings(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for page in (book.worksheets[0], book.create_sheet("second")):
        for row in (("item", "ann", "ben"), ("x", 1, 2), ("y", 2, 2)):
            page.append(row)
    book.save(tmp_path / "r.xlsx")
    with pytest.raises(ConfigError, match=r"found data in the sheets Sheet, second, .* name one with --set sheet"):
        measure(tmp_path / "r.xlsx", Layout(), 0)
    assert measure(tmp_path / "r.xlsx", Layout(sheet="second"), 0).raters == ("ann", "ben")
    (tmp_path / "r.csv").write_text("item;ann;ben\nx;1;2\n")
    with pytest.raises(ConfigError, match=r"delimiter: expected one character such as ';', or tab, found ';;'"):
        measure(tmp_path / "r.csv", Layout(delimiter=";;"), 0)
