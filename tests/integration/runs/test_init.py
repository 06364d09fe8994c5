"""`curate init`: what it sees in files of all kinds, and a pipeline file that runs."""

import io
import json
from pathlib import Path

import polars as pl
import pytest
import yaml

from curate.core.errors import ConfigError, DataError
from curate.runs.init import look, panel, start
from tests.support.runs import curate

QUESTIONS = [("7", "高血压患者能喝咖啡吗"), ("8", "小儿发热怎么办"), ("9", "痛风能吃海鲜吗")]
ANSWERS = [
    (f"a{n}", text, n % 2)
    for n, text in enumerate(["可以少量喝咖啡，要注意血压。", "先物理降温，多喝水。", "痛风病人要少吃海鲜。"] * 4)
]


def write(folder: Path, kind: str, columns: tuple[str, str, str, str]) -> tuple[str, str]:
    """Write questions and answers under these names of columns; the answers have a number beside the text."""
    asked_id, asked, answer_id, answer = columns
    queries = pl.DataFrame(QUESTIONS, schema=[asked_id, asked], orient="row")
    texts = [(name, f"{text} {name}", number) for name, text, number in ANSWERS]
    corpus = pl.DataFrame(texts, schema=[answer_id, answer, "科室"], orient="row")
    paths = (folder / f"questions.{kind}", folder / f"answers.{kind}")
    for frame, path in zip((queries, corpus), paths, strict=True):
        if kind == "parquet":
            frame.write_parquet(path)
        elif kind == "jsonl":
            frame.write_ndjson(path)
        else:
            frame.write_csv(path, separator="\t" if kind == "tsv" else ",")
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "columns",
    [
        ("qid", "question", "doc_id", "answer"),
        ("问题编号", "问题", "答案编号", "答案"),
        ("a", "b", "c", "d"),
        ("_id", "text", "_id", "text"),
    ],
)
def test_columns_are_found_and_the_file_runs(kind: str, columns: tuple[str, str, str, str], tmp_path: Path) -> None:
    found = look(None, *write(tmp_path, kind, columns), None)
    usual = {"qid", "doc_id", "_id", "text"}
    expected = [dict(zip(("id", "text"), pair, strict=True)) for pair in (columns[:2], columns[2:])]
    for table, names in zip(("queries", "corpus"), expected, strict=True):
        assert found.guesses[table].columns == {each: name for each, name in names.items() if name not in usual}  # type: ignore[index]
    assert found.counts == {"queries": 3, "corpus": 12}
    assert found.language == "zh"
    start(found, tmp_path / "mine.yaml", "mine", None, [])
    done = curate(tmp_path, "run", "mine.yaml", "--run", "run", "--set", "stages=[ingest, mask]")
    assert done.returncode == 0, done.stderr
    read = pl.read_parquet(tmp_path / "run" / "mask" / "queries.parquet")
    assert read["text"].to_list() == [text for _, text in QUESTIONS]


def test_a_folder_with_other_columns_of_text(tmp_path: Path) -> None:
    tables: dict[str, list[dict[str, object]]] = {
        "queries": [
            {"_id": f"q{n}", "text": f"How is it treated {n}?", "meta": {"title": f"Treatment {n}"}} for n in range(120)
        ],
        "corpus": [{"_id": f"d{n}", "text": f"It is treated with rest {n}."} for n in range(700)],
    }
    for name, rows in tables.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    found = look(str(tmp_path), None, None, None)
    assert found.language == "en"
    assert found.guesses["queries"].others == ["meta.title"]
    made = start(found, tmp_path / "mine.yaml", "mine", None, ["gpt-4o"])
    text = made.path.read_text()
    assert "# queries: id is _id, text is text; also there: meta.title, one is taken with" in text
    assert "columns: {queries: {text: meta.title}}" in text
    section = yaml.safe_load(text)
    assert section["ingest"] == {"source": str(tmp_path), "sample": 50}
    assert section["pool"]["size"] == 500
    assert section["judge"] == {"models": ["gpt-4o"]}
    ((model, plan),) = made.quote
    assert (model, plan.calls) == ("gpt-4o", 50 * 500 / 10)
    assert plan.cost is not None
    assert 1 < plan.cost < 100
    with pytest.raises(ConfigError, match=r"mine\.yaml: is there already"):
        start(found, made.path, "mine", None, None)


def test_who_has_a_key_judges_one_of_each_vendor_first() -> None:
    assert panel({}) == []
    assert len(panel({"OPENAI_API_KEY": "x"})) == 3
    mixed = panel({"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "y", "ARK_API_KEY": "z"})
    assert len({name.split("-")[0] for name in mixed}) == 3


def test_nothing_that_can_be_an_id_or_a_text(tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("a,b\n1 2,3 4\n4 5,6 7\n")
    (tmp_path / "corpus.csv").write_text("id,text\n1,x\n")
    with pytest.raises(DataError, match=r"queries\.csv: found the columns a, b, none of which looks like the id of"):
        look(None, str(tmp_path / "queries.csv"), str(tmp_path / "corpus.csv"), None)
    (tmp_path / "corpus.csv").write_text("id,text\n")
    with pytest.raises(DataError, match=r"corpus\.csv: found no row"):
        look(None, str(tmp_path / "corpus.csv"), str(tmp_path / "corpus.csv"), None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "头痛怎么办\n发烧怎么办\n",
            r"columns 头痛怎么办, none of which looks like the id of queries; .*'id', or add one; what is between",
        ),
        ("id/text\n1/头痛\n", r"columns id/text, none .* with ingest\.queries\.delimiter"),
        (
            "7,头痛怎么办\n8,发烧怎么办\n",
            r"q\.csv:1: found the columns 7, .*, expected names; put a line such as id,text",
        ),
        ("1,儿童反复发烧三天不退烧应该怎么办才能好起来\n2,发烧\n", "columns 1, one of 21 characters, expected names"),
    ],
)
def test_what_a_table_lacks_is_said(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        look(None, str(tmp_path / "q.csv"), str(tmp_path / "q.csv"), None)


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("q.csv", "问题\n头痛怎么办\n发烧怎么办\n", {"id": "<line>", "text": "问题"}),
        ("q.csv", "question,answer\n头痛,休息\n发烧,喝水\n", {"id": "<line>", "text": "question"}),
        ("q.jsonl", '{"query": "头痛怎么办"}\n{"query": "头痛怎么办"}\n', {"id": "<line>"}),
        ("q.txt", "头痛怎么办\n\n发烧怎么办\n", {"id": "<line>"}),
    ],
)
def test_of_questions_without_ids_the_line_is_the_id(
    name: str, content: str, columns: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "c.csv").write_text("id,text\n1,x\n", encoding="utf-8")
    found = look(None, str(tmp_path / name), str(tmp_path / "c.csv"), None)
    assert found.guesses["queries"].columns == columns
    assert found.counts["queries"] == 2


def test_one_file_of_questions_and_answers_is_both(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("question_id,question,answer\n1,头痛,休息\n2,发烧,喝水\n", encoding="utf-8")
    found = look(None, str(path), str(path), None)
    assert [found.guesses[table].columns["text"] for table in ("queries", "corpus")] == ["question", "answer"]


def test_a_row_that_stops_a_run_is_said_before(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "1", "text": "a"}\n{"id": 2,\n')
    found = look(None, str(path), str(path), None)
    assert found.counts["queries"] == 1
    assert found.problems[0].startswith(f"{path}:2: found a line that is not valid JSON")
    path.write_text('[{"id": "1", "text": "a"}]\n')
    with pytest.raises(DataError, match="1: found a list, expected one JSON object"):
        look(None, str(path), str(path), None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name", "a/b"), "curate: init.name: has characters that are not allowed here, expected what"),
        (("--language", "Chinese"), "curate: init.language: has characters that are not allowed here, expected what"),
        (("--models", "gpt-4oo"), "curate: unknown judge 'gpt-4oo': did you mean 'gpt-4o'?"),
        (("--file", "none/mine.yaml"), "curate: none: no such folder; make it, or give another place with --file"),
    ],
)
def test_what_cannot_be_is_not_written(arguments: tuple[str, str], said: str, tmp_path: Path) -> None:
    done = curate(tmp_path, "init", "demo", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert list(tmp_path.glob("*.yaml")) == []


def test_prices_in_two_currencies_are_said(tmp_path: Path) -> None:
    keys = {"DEEPSEEK_API_KEY": "sk-of-a-test", "OPENAI_API_KEY": "sk-of-a-test"}
    said = curate(tmp_path, "init", "demo", "--models", "deepseek,gpt-4o", **keys).stdout
    assert "note: a cap (--max-cost) needs what these currencies are worth: `rates: {CNY: {USD: RATE, date: " in said
    said = curate(tmp_path, "init", "demo", "--name", "one", "--models", "gpt-4o,gpt-4o-mini", **keys).stdout
    assert "a cap" not in said


def test_words_that_yaml_reads_as_something_else(tmp_path: Path) -> None:
    found = look("demo", None, None, None)
    made = start(found, tmp_path / "on e.yaml", "2024", "no", ["lexical"])
    section = yaml.safe_load(made.path.read_text())
    assert (section["name"], section["language"]) == ("2024", "no")
    assert "curate run '" in made.path.read_text().splitlines()[0], "a path with a space is quoted"


def test_a_folder_of_other_files_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text("id,text\n1,x\n")
    with pytest.raises(
        ConfigError, match=r"found questions\.csv, expected queries\.jsonl and corpus\.jsonl .* --queries"
    ):
        look(str(tmp_path), None, None, None)
    (tmp_path / "corpus.csv").write_text("id,text\n1,x\n")
    assert look(str(tmp_path), str(path), None, None).counts == {"queries": 1, "corpus": 1}, "the folder has the rest"
    with pytest.raises(
        ConfigError, match=r"found a file, expected a folder; for two files: curate init --queries FILE"
    ):
        look(str(path), None, None, None)


def test_the_command_asks_for_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "csv", ("qid", "question", "doc_id", "answer"))
    monkeypatch.setattr("sys.stdin", io.StringIO("\nquestions.csv\nanswers.csv\n"))
    done = curate(tmp_path, "init", "--name", "mine")
    assert done.returncode == 0, done.stderr
    assert "written: mine.yaml; look at it, then: curate run mine.yaml" in done.stdout
    assert "text: question" in done.stdout
    assert "heuristics will grade" in done.stdout
    again = curate(tmp_path, "init", "--name", "mine", "--queries", "questions.csv", "--corpus", "answers.csv")
    said = "curate: mine.yaml: is there already; give another name with --file, or delete it\n"
    assert (again.returncode, again.stderr) == (2, said)
