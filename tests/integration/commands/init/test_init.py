"""`curate init`: what it sees in files of all kinds, and a pipeline file that runs."""

import json
import re
import shlex
from pathlib import Path

import openpyxl
import polars as pl
import pytest
import yaml

from curate.commands.init.command import InitCommand
from curate.commands.init.doubts import doubt
from curate.commands.init.judges import askable, panel
from curate.commands.init.looking import DataSources, look
from curate.commands.init.writing import PipelineDraft, draft, write
from curate.core.errors import ConfigError, DataError
from curate.tables.readers import Table
from tests.support.runs import complaint, curate, ran

QUESTIONS = [("7", "高血压患者能喝咖啡吗"), ("8", "小儿发热怎么办"), ("9", "痛风能吃海鲜吗")]
ANSWERS = [
    (f"a{n}", text, n % 2)
    for n, text in enumerate(["可以少量喝咖啡，要注意血压。", "先物理降温，多喝水。", "痛风病人要少吃海鲜。"] * 4)
]


def files(folder: Path, kind: str, columns: tuple[str, str, str, str]) -> tuple[str, str]:
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


def looked(source: str | None = None, queries: str | None = None, corpus: str | None = None) -> DataSources:
    return look(InitCommand(source=source, queries=queries, corpus=corpus))


def refused(queries: Path, corpus: Path) -> str:
    """Return what is asked, or said to be wrong."""
    try:
        found = looked(None, str(queries), str(corpus))
        asked = doubt(found)
    except DataError as error:
        return str(error)
    assert asked is not None
    return asked.remedy(found.request)


def written(request: InitCommand) -> PipelineDraft:
    made = draft(look(request))
    write(made)
    return made


def chosen(found: DataSources, table: Table) -> dict[str, str]:
    guess = found.tables[table].guess
    assert guess is not None
    return dict(guess.columns)


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
    paths = files(tmp_path, kind, columns)
    request = InitCommand(queries=paths[0], corpus=paths[1], name="mine", models="lexical", file=tmp_path / "mine.yaml")
    found = look(request)
    usual = {"qid", "doc_id", "_id", "text"}
    expected = [dict(zip(("id", "text"), pair, strict=True)) for pair in (columns[:2], columns[2:])]
    tables: tuple[Table, ...] = ("queries", "corpus")
    for table, names in zip(tables, expected, strict=True):
        assert chosen(found, table) == {each: name for each, name in names.items() if name not in usual}
    assert [each.rows for each in found.tables.values()] == [3, 12]
    assert found.spoken.language == "zh"
    write(draft(found))
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
    request = InitCommand(source=str(tmp_path), name="mine", models="gpt-4o", file=tmp_path / "mine.yaml")
    made = written(request)
    text = made.path.read_text()
    assert "# queries: id is _id, text is text; also there: meta.title, one is taken with" in text
    assert "columns: {queries: {text: meta.title}}" in text
    section = yaml.safe_load(text)
    assert section["language"] == "en"
    assert section["ingest"] == {"source": str(tmp_path), "sample": 50}
    assert (section["pool"]["depth"], section["pool"]["size"]) == (100, 100)
    assert section["judge"] == {"models": ["gpt-4o"], "rubric": "relevance-en"}
    assert made.trial is not None
    for price, queries in ((made.trial, 50), (made.whole, 120)):
        controls, found = price.judges
        plan = found.estimate
        assert (controls.judge, controls.estimate.calls) == ("gpt-4o, controls", 12)
        assert (found.judge, plan.calls) == ("gpt-4o", queries * 100 / 10)
        assert plan.cost is not None
        assert 0.001 < plan.cost / plan.calls < 0.05
    with pytest.raises(ConfigError, match=r"mine\.yaml: is there already"):
        write(made)


def test_who_has_a_key_judges_one_of_each_family_first() -> None:
    assert panel(askable({})) == []
    assert len(panel(askable({"OPENAI_API_KEY": "x"}))) == 3
    mixed = panel(askable({"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "y", "ARK_API_KEY": "z"}))
    assert {each.family for each in mixed} == {"gpt", "claude", "doubao"}
    alike = panel(askable({"LKEAP_API_KEY": "x", "DEEPSEEK_API_KEY": "y", "OPENAI_API_KEY": "z"}))
    assert [each.family for each in alike] == ["deepseek", "gpt", "deepseek"], "two vendors of one family"


def test_models_of_the_working_directory_are_proposed(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(
        "house: {kind: openai, base_url: 'http://127.0.0.1:1/v1', model: qwen3-8b}\n"
        "far: {kind: openai, base_url: 'https://far.example/v1', model: far-1, key_env: FAR_KEY}\n"
    )
    said = ran(tmp_path, "init", "demo", DEEPSEEK_API_KEY="sk-of-a-test").stdout
    assert yaml.safe_load((tmp_path / "demo.yaml").read_text())["judge"]["models"] == ["house", "deepseek"]
    assert "judges     house     models.yaml, no key needed\n           deepseek  DEEPSEEK_API_KEY is set\n" in said
    assert "far of models.yaml needs its key: export FAR_KEY=..." in said


def test_nothing_that_can_be_an_id_or_a_text(tmp_path: Path) -> None:
    queries, corpus = tmp_path / "queries.csv", tmp_path / "corpus.csv"
    queries.write_text("a,b\n1 2,3 4\n4 5,6 7\n")
    corpus.write_text("id,text\n1,x\n")
    said = refused(queries, corpus)
    assert "queries.csv: found the columns a, b, none of which looks like the id of" in said
    assert f"curate init --queries {queries} --corpus {corpus} --column 'queries.id=<line>'" in said
    queries.write_text('{"a": 1}\n')
    queries = queries.rename(tmp_path / "queries.jsonl")
    said = refused(queries, corpus)
    assert "found the columns a, none of which looks like the text of queries" in said
    assert said.endswith(
        f"or say here which column it is: curate init --queries {queries} --corpus {corpus} --column queries.text=NAME"
    )
    corpus.write_text("id,text\n")
    assert "corpus.csv: found no row" in refused(corpus, corpus)


@pytest.mark.parametrize(
    ("content", "said", "header"),
    [
        ("头痛怎么办\n发烧怎么办\n", "columns 头痛怎么办, none of which looks like the id of queries", True),
        ("id/text\n1/头痛\n", "columns id/text, none of which", True),
        ("7,头痛怎么办\n8,发烧怎么办\n", "q.csv: the first row looks like data", True),
        ("1,儿童反复发烧三天不退烧应该怎么办才能好起来\n2,发烧\n", "q.csv: the first row looks like data", True),
        ("id,x y\n1 2,头痛 怎么办\n1 3,头痛 怎么\n", "id looks like the id of the queries, but 2 of 2 rows", False),
    ],
)
def test_what_a_table_lacks_is_asked(content: str, said: str, header: bool, tmp_path: Path) -> None:
    path, corpus = tmp_path / "q.csv", tmp_path / "c.csv"
    path.write_text(content, encoding="utf-8")
    corpus.write_text("id,text\n1,x\n")
    told = refused(path, corpus)
    assert said in told
    assert (f"curate init --queries {path} --corpus {corpus} --set ingest.queries.header=false" in told) == header


def test_a_first_row_of_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("7,头痛怎么办\n8,发烧怎么办\n", encoding="utf-8")
    (tmp_path / "corpus.csv").write_text("id,text\n1,x\n")
    said = ran(tmp_path, "init", ".", "--name", "m").stdout
    assert "CSV, commas, UTF-8, 2 rows" in said
    section = yaml.safe_load((tmp_path / "m.yaml").read_text(encoding="utf-8"))["ingest"]
    assert section["queries"] == {"path": "queries.csv", "header": False}
    assert section["columns"]["queries"] == {"id": "column_1", "text": "column_2"}
    assert "ingest: 3 in" in ran(tmp_path, "run", "m.yaml", "--set", "stages=[ingest]").stderr


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
    found = looked(None, str(tmp_path / name), str(tmp_path / "c.csv"))
    assert chosen(found, "queries") == columns
    assert found.tables["queries"].rows == 2


def test_one_file_of_questions_and_answers_is_both(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("question_id,question,answer\n1,头痛,休息\n2,发烧,喝水\n", encoding="utf-8")
    found = looked(None, str(path), str(path))
    assert [chosen(found, "queries")["text"], chosen(found, "corpus")["text"]] == ["question", "answer"]


def test_queries_that_equal_the_documents_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("id,text,copy\n1,头痛怎么办,头痛怎么办\n2,发烧怎么办,发烧怎么办\n", encoding="utf-8")
    for column in ("text", "copy"):
        columns = ("--column", "queries.text=text", "--column", f"corpus.text={column}")
        done = curate(tmp_path, "init", "--queries", path.name, "--corpus", path.name, *columns, "--name", "m")
        assert done.returncode == 2
        assert "found queries that equal the documents, text for text" in done.stderr
        assert not (tmp_path / "m.yaml").exists()


def test_a_row_without_a_text_is_no_chat(tmp_path: Path) -> None:
    rows = [
        {"kind": "ab"[n % 2], "question": f"头痛{n}怎么办？"} | ({"answer": f"第{n}天要多休息，多喝水。"} if n else {})
        for n in range(8)
    ]
    path = tmp_path / "faq.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = looked(None, str(path), str(path))
    assert doubt(found) is not None or chosen(found, "corpus")["text"] == "answer"
    assert found.tables["corpus"].problems == 1, "the row without an answer"


def test_a_row_that_stops_a_run_is_said_before(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "1", "text": "a"}\n{"id": 2,\n')
    found = looked(None, str(path), str(path))
    assert found.tables["queries"].rows == 1
    assert found.tables["queries"].problem.startswith(f"{path}:2: found a line that is not valid JSON")
    path.write_text('"a"\n')
    assert f"{path}:1: found text, expected one JSON object" in refused(path, path)
    (tmp_path / "c.jsonl").write_text('{"id": "1", "text": "a"}\n{"id": 2,\n')
    (tmp_path / "d.jsonl").write_text('{"id": "1", "text": "b"}\n')
    said = ran(tmp_path, "init", "--queries", "c.jsonl", "--corpus", "d.jsonl", "--name", "m").stdout
    assert (
        "1 rows of queries cannot be read, and `curate run` stops there:\n             c.jsonl:2: found a line" in said
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name", "a/b"), "error: init.name: has characters that are not allowed here, expected what"),
        (("--language", "Chinese"), "error: init.language: has characters that are not allowed here, expected what"),
        (("--models", "gpt-4oo"), "error: unknown judge 'gpt-4oo': did you mean 'gpt-4o' or"),
        (("--file", "none/mine.yaml"), "error: none: no such folder; make it, or give another place with --file"),
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
    assert "a cap (--max-cost) needs what these currencies are worth: `rates: {CNY: {USD: RATE, date: " in said
    assert re.search(r"together +[\d,]+ calls +about [\d.]+ CNY and [\d.]+ USD\n", said)
    said = curate(tmp_path, "init", "demo", "--name", "one", "--models", "gpt-4o,gpt-4o-mini", **keys).stdout
    assert "a cap" not in said
    assert re.search(r"together +[\d,]+ calls +about [\d.]+ USD\n", said)


def test_words_that_yaml_reads_as_something_else(tmp_path: Path) -> None:
    request = InitCommand(source="demo", name="2024", language="no", models="lexical", file=tmp_path / "on e.yaml")
    made = written(request)
    section = yaml.safe_load(made.path.read_text())
    assert (section["name"], section["language"]) == ("2024", "no")
    assert "curate run '" in made.path.read_text().splitlines()[0], "a path with a space is quoted"


def test_a_folder_of_other_files_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text("id,text\n1,x\n")
    with pytest.raises(ConfigError) as refused:
        looked(str(tmp_path))
    said = str(refused.value)
    assert "found questions.csv, expected queries and corpus (such as queries.jsonl" in said
    assert said.endswith(f"curate init --queries {path} --corpus FILE")
    (tmp_path / "corpus.csv").write_text("id,text\n1,x\n")
    found = looked(str(tmp_path), str(path))
    assert [each.rows for each in found.tables.values()] == [1, 1], "the folder has the rest"


def paired(folder: Path, columns: tuple[str, ...], name: str = "faq.csv") -> Path:
    """Write seven questions and answers, a department and an id under these names of columns, in their order."""
    asked = [
        "高血压能喝咖啡吗",
        "小儿发热怎么办？",
        "痛风能吃海鲜吗？",
        "晕车药什么时候吃",
        "感冒要吃消炎药吗？",
        "拔牙后多久能刷牙？",
        "头痛挂哪个科？",
    ]
    told = [
        "可以少量喝。",
        "先物理降温，什么时候超过三十八度半再吃药。",
        "要少吃海鲜，多喝水。",
        "上车前半小时吃。",
        "多半不用吃，多休息。",
        "第二天可以轻轻刷。",
        "先挂神经内科看看。",
    ]
    rows = zip(asked, told, ["内科", "外科"] * 3 + ["内科"], [f"S{n}" for n in range(7)], strict=True)
    cells = [dict(zip("QADI", row, strict=True)) for row in rows]
    kinds = dict(each.split(":") for each in columns)
    path = folder / name
    lines = [",".join(kinds.values()), *(",".join(row[kind] for kind in kinds) for row in cells)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "columns",
    [
        ("I:会话编号", "Q:客户提问", "A:客服回复"),
        ("A:列一", "D:列二", "Q:列三", "I:列四"),
        ("Q:title", "A:text", "I:id"),  # a question that is named like a title
        ("Q:标题", "A:内容", "D:科室"),  # both may be either, and there is no id
        ("A:answer", "Q:question", "I:id"),
        ("A:text", "Q:query", "I:id"),
    ],
)
def test_questions_and_answers_of_one_file_are_known_pairs(columns: tuple[str, ...], tmp_path: Path) -> None:
    path = paired(tmp_path, columns)
    said = ran(tmp_path, "init", "--queries", path.name, "--corpus", path.name, "--name", "m").stdout
    assert "qrels      every row is a known pair: its document answers its query" in said
    ran(tmp_path, "run", "m.yaml", "--set", "stages=[ingest]")
    tables = {name: pl.read_parquet(tmp_path / f"runs/m/ingest/{name}.parquet") for name in ("queries", "corpus")}
    qrels = pl.read_parquet(tmp_path / "runs/m/ingest/qrels.parquet")
    assert tables["queries"]["text"][0] == "高血压能喝咖啡吗"
    assert tables["corpus"].select("title", "text").row(0) == ("", "可以少量喝。")
    pairs = zip(tables["queries"]["query_id"], tables["corpus"]["doc_id"], [1] * 7, strict=True)
    assert sorted(qrels.rows()) == sorted(pairs)


def test_one_file_is_asked_which_column_is_which(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("nr,甲,乙\n1,胸闷气短,多休息少盐\n2,头晕眼花,测量血压去\n", encoding="utf-8")
    asked = refused(path, path)
    assert "cannot tell which of 甲 or 乙 holds queries and which documents" in asked
    start = f"curate init --queries {path} --corpus {path} --column queries.text="
    commands = [line.strip() for line in asked.splitlines() if "curate init" in line]
    assert [each.removeprefix(start) for each in commands] == [
        f"{query} --column corpus.text={doc}" for query, doc in ("甲乙", "乙甲")
    ]
    found = look(InitCommand(queries=str(path), corpus=str(path), column=("queries.text=乙", "corpus.text=甲")))
    assert doubt(found) is None
    assert draft(found).ingest.pairs
    same = look(InitCommand(queries=str(path), corpus=str(path), column=("queries.text=甲", "corpus.text=甲")))
    with pytest.raises(DataError, match="found queries that equal the documents, text for text"):
        doubt(same)


def test_rows_are_no_pairs_where_a_column_grades_them_or_qrels_are_given(tmp_path: Path) -> None:
    path = paired(tmp_path, ("I:id", "Q:query", "A:passage", "D:label"))
    ran(tmp_path, "init", "--queries", path.name, "--corpus", path.name, "--name", "m")
    assert "pairs" not in yaml.safe_load((tmp_path / "m.yaml").read_text())["ingest"]
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nS0\tS1\t1\n")
    path = paired(tmp_path, ("I:id", "Q:query", "A:passage"))
    found = look(InitCommand(queries=str(path), corpus=str(path), qrels=str(tmp_path / "qrels.tsv")))
    assert not draft(found).ingest.pairs


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", "id,text\n1,x\n", "if it holds queries: curate init --queries x.csv --corpus FILE; if it holds docu"),
        (
            "x.csv",
            "id,answer\n1,x\n",
            "of documents (answer), expected queries as well; name both: curate init --queries FI",
        ),
        ("faq.csv", "id,question\n1,x\n", "of queries (question), expected documents as well; name both: curate init"),
        (
            "q.csv",
            "id,question,answer\n1,x,y\n",
            "as a known positive of its query:\ncurate init --queries q.csv --corpus q.csv",
        ),
    ],
)
def test_one_file_is_told_what_it_looks_like(name: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert said in complaint(tmp_path, "init", name)
    assert list(tmp_path.glob("*.yaml")) == []


def test_what_texts_are_like_is_counted_and_offered(tmp_path: Path) -> None:
    rows = [
        {"id": n, "Title": "T", "text": f"<p>It heals in {n} days.</p>" if n % 2 else f"{n} days"} for n in range(9)
    ]
    rows += [{"id": 10, "Title": "", "text": "  "}, {"id": 11, "Title": "", "text": "rest " * 10_000}]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (tmp_path / "q.csv").write_text("id;text\n1;a cold\n2;\n")
    asked = ("init", "--queries", "q.csv", "--corpus", "c.jsonl", "--name", "m")
    said = ran(tmp_path, *asked).stdout
    assert "queries    q.csv   CSV, semicolons, UTF-8, 2 rows\n             id    id    the usual name\n" in said
    assert "title  Title  named like a title\n" in said
    texts = said.partition("\ntexts      ")[2].partition("\njudges")[0].split("\n           ")
    assert texts == [
        "1 of 2 queries are empty; `ingest` leaves them out",
        "4 of 11 documents hold HTML: `html: strip` in the file, or --set ingest.html=strip, takes it out",
        "1 of 11 documents are longer than 32,000 characters (longest 50,000); a judge is shown the first 1,500 tokens",
        "1 of 11 documents are empty; `ingest` leaves them out",
    ]
    written = (tmp_path / "m.yaml").read_text()
    assert "  # html: strip   # 4 texts hold HTML; without this line it is kept\n" in written
    (tmp_path / "m.yaml").write_text(written.replace("  # html: strip", "  html: strip"))
    ran(tmp_path, "run", "m.yaml", "--set", "stages=[ingest]")
    kept = pl.read_parquet(tmp_path / "runs" / "m" / "ingest" / "corpus.parquet")["text"]
    assert not kept.str.contains("<").any()


def test_a_sheet_that_is_not_told_is_asked_with_the_command(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for name in ("Fragen", "Antworten"):
        page = book.create_sheet(name)
        page.append(["id", "text"])
        page.append([1, name])
    book.save(tmp_path / "b.xlsx")
    said = complaint(tmp_path, "init", "--queries", "b.xlsx", "--corpus", "b.xlsx", "--name", "m")
    assert "found data in the sheets Fragen, Antworten" in said
    commands = [line.partition("try: ")[2] for line in said.splitlines() if "try: curate" in line]
    assert [each.partition("--set ")[2] for each in commands] == [
        "'ingest.queries.sheet=\"Fragen\"'",
        "'ingest.queries.sheet=\"Antworten\"'",
    ]
    more = ("--set", "ingest.corpus.sheet=Antworten")
    ran(tmp_path, *shlex.split(commands[0])[1:], *more)
    section = yaml.safe_load((tmp_path / "m.yaml").read_text())["ingest"]
    assert section["queries"] == {"path": "b.xlsx", "sheet": "Fragen"}
    assert section["corpus"] == {"path": "b.xlsx", "sheet": "Antworten"}


def test_a_file_that_came_to_be_there_is_not_replaced(tmp_path: Path) -> None:
    made = draft(look(InitCommand(source="demo", models="lexical", file=tmp_path / "m.yaml")))
    (tmp_path / "m.yaml").symlink_to(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match=r"m\.yaml: is there already"):
        write(made)
    assert not (tmp_path / "nowhere.yaml").exists()


def test_dates_and_numbers_of_tickets_are_no_texts(tmp_path: Path) -> None:
    """A ticket system's export has a time beside question and answer; nothing has to be asked."""
    rows = [
        f"W{n:04},2026/10/{n % 28 + 1} 8:{n:02},内科,头痛第{n}天要不要去医院？,先测血压，第{n}次复诊时带上结果。\n"
        for n in range(20)
    ]
    (tmp_path / "工单.csv").write_text("工单号,提交时间,科室,患者咨询内容,医生回复\n" + "".join(rows), encoding="utf-8")
    done = ran(
        tmp_path, "init", "--queries", "工单.csv", "--corpus", "工单.csv", "--name", "tickets", "--models", "lexical"
    )
    assert re.search(r"text\s+患者咨询内容", done.stdout)
    assert re.search(r"text\s+医生回复", done.stdout)
