"""Formats, encodings and layouts: what comes out, and what is said of bad files."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest

from curate.core.errors import ConfigError, DataError, MissingExtra
from curate.tables.readers import Problem, Row, Table
from curate.tables.readers.encoding import Encoding, detect
from curate.tables.readers.file import File, format_of
from curate.tables.readers.folder import find
from curate.tables.readers.items import NAMES, Item, LabelledPair, item, pair
from curate.tables.readers.public_datasets import TaskTable, named
from curate.tables.readers.settings import Input, sources
from tests.support.steps import jsonl

SIMPLIFIED = "高血压患者平时要注意控制食盐的摄入量,医生说每天不超过六克。"
TRADITIONAL = "高血壓患者平時要注意控制食鹽的攝入量,醫生說每天不超過六克。"


def texts(path: Path, encoding: Any = "auto") -> list[object]:
    return [row.values["text"] for row in File(path, format_of(path), encoding).rows() if isinstance(row, Row)]


def problems(path: Path) -> list[Problem]:
    return [row for row in File(path, format_of(path)).rows() if isinstance(row, Problem)]


# encodings


@pytest.mark.parametrize(
    ("codec", "text", "found"),
    [
        ("utf-8", SIMPLIFIED, "utf-8"),
        ("utf-8-sig", SIMPLIFIED, "utf-8"),
        ("utf-16", SIMPLIFIED, "utf-16"),
        ("gb18030", SIMPLIFIED, "gb18030"),
        ("gb18030", TRADITIONAL, "gb18030"),
        ("gb18030", "头痛", "gb18030"),
        ("gb18030", "𠮷野家", "gb18030"),
        ("cp950", TRADITIONAL, "big5"),
        ("cp950", "頭痛怎麼辦～", "big5"),
        ("big5hkscs", TRADITIONAL + "嘅", "big5"),
        ("ascii", "hello", "utf-8"),
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv"])
def test_encoding_round_trip(tmp_path: Path, codec: str, text: str, found: str, ending: str) -> None:
    path = tmp_path / f"corpus.{ending}"
    if ending == "jsonl":
        jsonl(path, [{"_id": "d1", "text": text}, {"_id": "d2", "text": "b"}], codec)
    else:
        sign = "," if ending == "csv" else "\t"
        path.write_bytes(f"_id{sign}text\r\nd1{sign}{text.replace(',', ';')}\r\nd2{sign}b\r\n".encode(codec))
        text = text.replace(",", ";")
    assert detect(path, None) == found
    assert texts(path) == [text, "b"]


@pytest.mark.parametrize(
    "line", ["王芳,r3", "查询,文档,评审员", "甲,x\n乙,y\n丙,z", "李娜,张伟", "孙磊,S\n" * 60, "昊婷,赵敏"]
)
def test_names_and_headings_are_read_although_no_frequent_character_is_there(tmp_path: Path, line: str) -> None:
    path = tmp_path / "f.csv"
    for codec, text in (
        ("gb18030", line),
        ("cp950", line.translate(str.maketrans("询档评员张伟孙", "詢檔評員張偉孫"))),
    ):
        with suppress(UnicodeEncodeError):
            path.write_bytes(text.encode(codec))
            assert detect(path, None) == {"cp950": "big5"}.get(codec, codec), codec


def test_every_encoding_can_be_named(tmp_path: Path) -> None:
    for codec in get_args(Encoding):
        text = "It’s the café’s" if codec == "cp1252" else TRADITIONAL
        jsonl(tmp_path / "corpus.jsonl", [{"_id": "d1", "text": text}], codec)
        named = Input.model_validate({"corpus": {"path": str(tmp_path / "corpus.jsonl")}, "encoding": codec})
        assert named.encoding == codec
        (source,) = sources(named.model_copy(update={"queries": named.corpus})).tables["corpus"]
        assert [row.values["text"] for row in source.rows() if isinstance(row, Row)] == [text]


def test_utf16_big_endian(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\xfe\xff" + f'{{"_id": "d1", "text": "{SIMPLIFIED}"}}\n'.encode("utf-16-be"))
    assert texts(path) == [SIMPLIFIED]


def test_real_texts_are_told_apart(shared_data: Path, tmp_path: Path) -> None:
    for name in ("queries.jsonl", "corpus.jsonl"):
        plain = (shared_data / "zh_legacy" / name).read_text("utf-8").splitlines()[:50]
        for number, line in enumerate(plain):
            path = tmp_path / f"{number}.jsonl"
            path.write_bytes(line.encode("gb18030"))
            assert detect(path, None) == "gb18030"


def test_one_bad_line_does_not_change_the_encoding(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "corpus.jsonl", [{"_id": f"d{n}", "text": SIMPLIFIED} for n in range(4)])
    lines = path.read_bytes().splitlines()
    lines[2] = lines[2].decode().encode("gb18030")
    path.write_bytes(b"\n".join(lines))
    (problem,) = problems(path)
    assert str(problem.fault("c")) == (
        "c:3: found bytes that are not UTF-8, expected text in one encoding; "
        "save the file as UTF-8, or name it with ingest.encoding"
    )
    assert len(texts(path)) == 3


def test_a_named_encoding_is_not_guessed(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "corpus.jsonl", [{"_id": "d1", "text": "碁"}], "cp950")
    assert texts(path, "big5") == ["碁"]


@pytest.mark.parametrize(
    "content", [SIMPLIFIED.encode("utf-16-le"), ("こんにちは世界です" * 20).encode("shift-jis"), b"caf\xe9\n"]
)
def test_no_known_encoding(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"corpus\.jsonl: found .*, expected .*; .*ingest\.encoding"):
        detect(path, "ingest.encoding")
    with pytest.raises(DataError, match=r"UTF-8$"):
        detect(path, None)


def test_damaged_utf16_says_where(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'\xff\xfe{\x00}\x00\n\x00{\x00\x00\xdc"\x00}\x00\n\x00{\x00}\x00')
    assert [(row.line, isinstance(row, Row)) for row in File(path, "jsonl").rows()] == [
        (1, True),
        (2, False),
        (3, True),
    ]


# formats


def test_jsonl_lines_have_their_numbers(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "q.jsonl", ['{"a": 1}', "", "{'a': 1}", "[1]", '{"a": 2'])
    rows = list(File(path, "jsonl").rows())
    assert [row.line for row in rows] == [1, 3, 4, 5]
    assert isinstance(rows[0], Row)
    assert rows[0].values == {"a": 1}
    assert [row.got for row in rows[1:] if isinstance(row, Problem)] == [
        "a line that is not valid JSON (Expecting property name enclosed in double quotes, column 2)",
        "a list",
        "a line that is not valid JSON (Expecting ',' delimiter, column 8)",
    ]


def test_csv_quotes_line_breaks_and_blank_rows(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('_id, text\nd1,"头痛,\n发烧 ""三天"""\n,\n\nd2,咳嗽\n', encoding="utf-8")
    rows = [(row.line, row.values) for row in File(path, "csv").rows() if isinstance(row, Row)]
    assert rows == [(2, {"_id": "d1", "text": '头痛,\n发烧 "三天"'}), (6, {"_id": "d2", "text": "咳嗽"})]


def test_csv_mistakes_have_their_place_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('_id,text\nd1,a,b\nd2,"x" y\nd3,c\nd4,"open\n', encoding="utf-8")
    assert [(problem.line, problem.got) for problem in problems(path)] == [
        (2, "3 cells"),
        (3, "a quote that is not closed, or one inside a cell"),
        (5, "a quote that is not closed, or one inside a cell"),
    ]
    assert texts(path) == ["c"]


def test_csv_line_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_bytes("_id,text\nd1,头痛\n".encode() + "d2,咳嗽\n".encode("gb18030") + "d3,发烧\n".encode())
    assert [problem.line for problem in problems(path)] == [3]
    assert texts(path) == ["头痛", "发烧"]


def test_tsv_takes_quotes_as_they_are_unless_a_spreadsheet_wrote_them(tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text('_id\ttext\nd1\t"a" and "b"\nd2\t"say ""a"""\nd3\t5" tall\n', encoding="utf-8")
    assert texts(path) == ['"a" and "b"', 'say "a"', '5" tall']


def test_tsv_with_line_breaks_in_quotes_is_read_if_all_rows_fit(tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text('\ufeff_id\ttext\r\nd1\t"头痛\r\n""发烧"""\r\nd2\tb\r\n', encoding="utf-8", newline="")
    assert texts(path) == ['头痛\r\n"发烧"', "b"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "q.tsv",
            '_id\ttext\tkind\nd1\ta\tx\nd2\t"头痛\n发烧\n三天"\tx\nd3\tb\tx\nd4\tc\n',
            [
                (3, "found 2 cells and a quote left open", "the quotes of line 3 as spaces, or save the file as CSV"),
                (4, "found 1 cells and a quote left open", "the quotes of line 3 as spaces, or save the file as CSV"),
                (5, "found 2 cells and a quote left open", "the quotes of line 3 as spaces, or save the file as CSV"),
                (7, "found 2 cells, expected 3", "correct the line"),
            ],
        ),
        (
            "q.tsv",
            '_id\ttext\nd1\t"头痛\n发烧"\nd2\tb\nd3\n',
            [
                (3, "found 1 cells and a quote left open", "the quotes of line 2 as spaces, or save the file as CSV"),
                (5, "found 1 cells, expected 2", "correct the line"),
            ],
        ),
        (
            "q.csv",
            "_id,text\nd1,头痛\n发烧\nd2,b\n",
            [(3, "found 1 cells, expected 2", "quote cells that hold commas or line breaks")],
        ),
        (
            "q.csv",
            '_id,text\nd1,"头痛 "三天"\n发烧"\nd2,b\n',
            [(2, "found a quote that is not closed", "doubled inside it"), (3, "found 1 cells", "quote cells")],
        ),
    ],
)
def test_line_breaks_that_break_a_row_are_explained(
    tmp_path: Path, name: str, text: str, found: list[tuple[int, str, str]]
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    sentences = [(problem.line, str(problem.fault(""))) for problem in problems(path)]
    assert [line for line, _ in sentences] == [line for line, _, _ in found]
    for (_, sentence), (_, cause, remedy) in zip(sentences, found, strict=True):
        assert cause in sentence
        assert remedy in sentence


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pl.DataFrame({"id": [7, 8], "meta": [{"title": "a"}, {"title": None}], "big": [[1.0], [2.0]]}).write_parquet(path)
    file = File(path, "parquet")
    assert file.header() == ["id", "meta", "big"]
    assert list(file.rows({"id", "meta"})) == [
        Row(1, {"id": 7, "meta": {"title": "a"}}, 1),
        Row(2, {"id": 8, "meta": {"title": None}}, 2),
    ]
    assert file.size() == 2


def test_what_is_no_parquet(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    path.write_bytes(b"PAR1, but nothing else")
    with pytest.raises(DataError, match="found no sound Parquet file"):
        File(path, "parquet").size()


def test_unknown_ending() -> None:
    with pytest.raises(
        ConfigError,
        match=r"found the ending '\.xls', expected one of \.jsonl.*; save it as \.xlsx, or .*ingest\.queries\.format",
    ):
        format_of(Path("q.xls"))


# from rows to items


def test_dotted_names_reach_into_objects_but_a_whole_name_wins() -> None:
    names = {"id": ("_id",), "text": ("metadata.title",)}
    assert item(Row(1, {"_id": "q", "metadata": {"title": "头痛"}}, 0), names) == Item(1, "q", "", "头痛")
    assert item(Row(1, {"_id": "q", "metadata.title": "a", "metadata": {"title": "b"}}, 0), names) == Item(
        1, "q", "", "a"
    )


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"text": "SECRET"}, "no id"),
        ({"_id": "q", "body": "SECRET"}, "no text"),
        ({"_id": "", "text": "SECRET"}, "an empty id"),
        ({"_id": None, "text": "SECRET"}, "nothing as id"),
        ({"_id": 1.5, "text": "SECRET"}, "a number as id"),
        ({"_id": True, "text": "SECRET"}, "true/false as id"),
        ({"_id": "SECRET q", "text": "SECRET"}, "white space in id"),
        ({"_id": "q\u3000", "text": "SECRET"}, "white space in id"),
        ({"_id": "q", "text": ["SECRET"]}, "a list as text"),
        ({"_id": "q", "text": "SECRET\ud800"}, "half a surrogate pair in text"),
    ],
)
def test_unfit_rows(values: dict[str, object], found: str) -> None:
    problem = item(Row(3, values, 0), NAMES["queries"])
    assert isinstance(problem, Problem)
    assert (problem.line, problem.got) == (3, found)
    assert "SECRET" not in str(problem.fault("file"))


def test_ids_are_texts() -> None:
    found = item(Row(1, {"id": 7, "text": "a", "title": None}, 0), NAMES["corpus"])
    assert found == Item(1, "7", "", "a")
    assert item(Row(1, {"id": "007", "text": "a"}, 0), NAMES["corpus"]) == Item(1, "007", "", "a")


@pytest.mark.parametrize(("score", "value"), [("1", 1), (2, 2), ("1.0", 1), (0.0, 0), (-1, -1)])
def test_scores(score: object, value: int) -> None:
    row = Row(1, {"query-id": "q", "corpus-id": "d", "score": score}, 0)
    assert pair(row, NAMES["qrels"]) == LabelledPair(1, "q", "d", value)


@pytest.mark.parametrize("score", ["", "yes", "0.5", "nan", 2**31, True, None])
def test_bad_scores(score: object) -> None:
    problem = pair(Row(1, {"query-id": "q", "corpus-id": "d", "score": score}, 0), NAMES["qrels"])
    assert isinstance(problem, Problem)
    assert problem.expected == "a whole number: 0, 1, 2, ..."


@pytest.mark.parametrize("text", ["", " \n\u3000", "\u200b\ufeff "])
def test_empty_texts(text: str) -> None:
    assert Item(1, "d", "", text).empty()
    assert not Item(1, "d", "标题", text).empty()


# layouts


def mteb_folder(folder: Path, split: str = "dev") -> Path:
    """Write a folder as the hub has it: README.md with `configs:`, Parquet below it."""
    tables: dict[str, dict[str, list[str] | list[int]]] = {
        "corpus": {"id": ["d1", "d2"], "title": ["", ""], "text": ["多喝水", "少吃盐"]},
        "queries": {"id": ["q1"], "text": ["高血压怎么吃"]},
        "qrels": {"query-id": ["q1"], "corpus-id": ["d2"], "score": [1]},
    }
    configs = ""
    for name, columns in tables.items():
        path = folder / name / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True)
        pl.DataFrame(columns).write_parquet(path)
        configs += f"- config_name: {name}\n  data_files:\n  - split: {split}\n    path: {name}/{split}-*\n"
    (folder / "README.md").write_text(f"---\nlicense: mit\nconfigs:\n{configs}---\n# Data\n", encoding="utf-8")
    return folder


def rows(config: Input, table: Table) -> list[dict[str, object]]:
    return [
        dict(row.values) for source in sources(config).tables[table] for row in source.rows() if isinstance(row, Row)
    ]


def test_mteb_folder(tmp_path: Path) -> None:
    config = Input(source=str(mteb_folder(tmp_path / "task")))
    assert rows(config, "corpus")[1] == {"id": "d2", "title": "", "text": "少吃盐"}
    assert rows(config, "qrels") == [{"query-id": "q1", "corpus-id": "d2", "score": 1}]


@pytest.mark.parametrize(
    "data_files",
    ["data_files: texts-*.jsonl", "data_files: [texts-1.jsonl, texts-2.jsonl]", "data_files: {train: 'texts-*.jsonl'}"],
)
def test_other_ways_to_write_data_files(tmp_path: Path, data_files: str) -> None:
    for name in ("texts-2", "texts-1"):
        jsonl(tmp_path / f"{name}.jsonl", [{"_id": name, "text": "a"}])
    (tmp_path / "README.md").write_text(
        f"---\nconfigs:\n- config_name: corpus\n  {data_files}\n---\n", encoding="utf-8"
    )
    assert [path.name for path in find(tmp_path, None).corpus] == ["texts-1.jsonl", "texts-2.jsonl"]


def test_older_mteb_folder_whose_qrels_stand_elsewhere(tmp_path: Path) -> None:
    for name in ("corpus", "queries"):
        jsonl(tmp_path / "data" / f"{name}-0.jsonl", [{"_id": "x", "text": "a"}])
    files = "".join(f"  - split: {name}\n    path: data/{name}-*\n" for name in ("corpus", "queries"))
    head = f"---\nconfigs:\n- config_name: default\n  data_files:\n{files}---\n"
    (tmp_path / "README.md").write_text(head, encoding="utf-8")
    parts = find(tmp_path, "dev")
    assert [path.name for path in (*parts.corpus, *parts.queries)] == ["corpus-0.jsonl", "queries-0.jsonl"]
    assert parts.qrels == []


@pytest.mark.parametrize(
    ("path", "message"),
    [("gone-*", "found no file that matches 'gone-\\*'"), ("../secret.jsonl", "expected a path in the folder")],
)
def test_data_files_that_lead_nowhere(tmp_path: Path, path: str, message: str) -> None:
    jsonl(tmp_path / "secret.jsonl", [{}])
    folder = tmp_path / "task"
    folder.mkdir()
    head = f"---\nconfigs:\n- config_name: corpus\n  data_files: {path}\n---\n"
    (folder / "README.md").write_text(head, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        find(folder, None)


def test_beir_splits(tmp_path: Path) -> None:
    for name in ("dev", "train"):
        jsonl(tmp_path / "qrels" / f"{name}.tsv", ["query-id\tcorpus-id\tscore"])
    assert [path.name for path in find(tmp_path, "train").qrels] == ["train.tsv"]
    assert [path.name for path in find(tmp_path, "train").other_qrels] == ["dev.tsv"]
    with pytest.raises(ConfigError, match=r"found the splits dev, train, expected 'test'; set ingest\.split"):
        find(tmp_path, "test")
    with pytest.raises(ConfigError, match=r"dev, train, expected to be told which; set ingest\.split"):
        find(tmp_path, None)


def test_nothing_to_read() -> None:
    with pytest.raises(ConfigError, match=r"ingest: found no queries; set ingest\.source .* or ingest\.queries\.path"):
        sources(Input())


def test_missing_folder_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone: no such folder; set ingest\.source"):
        sources(Input(source=str(tmp_path / "gone")))
    with pytest.raises(DataError, match=r"gone\.csv: no such file; set ingest\.corpus\.path"):
        sources(Input.model_validate({"source": "demo", "corpus": {"path": str(tmp_path / "gone.csv")}}))


def test_a_task_without_mteb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(MissingExtra, match=r"pip install 'curate-ir\[eval\]'"):
        sources(Input(source="CmedqaRetrieval"))


def test_an_unknown_task() -> None:
    pytest.importorskip("mteb", reason="the extra `eval` is not installed")
    with pytest.raises(
        ConfigError, match=r"'CmedqaRetrival' is neither a folder nor a task of mteb; did you mean 'CmedqaRetr"
    ):
        named("CmedqaRetrival")


def test_a_task_of_mteb(tmp_path: Path) -> None:
    pytest.importorskip("mteb", reason="the extra `eval` is not installed")
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    class Tiny(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(
            name="TinyDiet",
            description="Two documents.",
            dataset={"path": str(mteb_folder(tmp_path / "tiny")), "revision": "1"},
            type="Retrieval",
            eval_langs=["cmn-Hans"],
            eval_splits=["dev"],
            main_score="ndcg_at_10",
        )

    task = Tiny()
    tables = {table: TaskTable(task, table) for table in ("queries", "corpus", "qrels")}
    assert tables["corpus"].size() == 2
    assert [row.values["text"] for row in tables["queries"].rows()] == ["高血压怎么吃"]
    assert [row.values["corpus-id"] for row in tables["qrels"].rows()] == ["d2"]
    assert tables["corpus"].name == "TinyDiet"
    assert "text" in (tables["corpus"].header() or [])


@pytest.mark.parametrize("encoding", ["auto", "utf-8", "utf-16"])
@pytest.mark.parametrize("name", ["old.csv", "old.tsv"])
def test_line_ends_of_an_old_macintosh_are_named(tmp_path: Path, name: str, encoding: Any) -> None:
    text = "id,text\rq1,头痛怎么办\r".replace(",", "," if name.endswith("csv") else "\t")
    (tmp_path / name).write_bytes(text.encode("utf-16" if encoding == "utf-16" else "utf-8"))
    with pytest.raises(DataError, match=rf"{name}: found lines that end with carriage returns alone"):
        texts(tmp_path / name, encoding)


def test_a_carriage_return_inside_a_file_with_line_feeds_stays(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'id,text\nq1,"one\rtwo"\n')
    assert texts(tmp_path / "a.csv") == ["one\rtwo"]
