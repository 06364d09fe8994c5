"""`curate init`: what it sees in files of all kinds, and a pipeline file that runs."""

import io
import json
from pathlib import Path

import polars as pl
import pytest
import yaml

from curate.errors import ConfigError, DataError
from curate.init import look, panel, start
from tests.runs import curate

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
    assert "queries: {text: meta.title}" in text
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
