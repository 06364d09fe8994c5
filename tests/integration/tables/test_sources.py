"""Sources that people have, from a command line with their names to an export that mteb and pytrec_eval read."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.system import files
from tests.conftest import DATA
from tests.support.runs import curate

CASES = DATA.parent / "cases" / "sources"
EXPECTED: dict[str, Any] = json.loads((CASES / "expect.json").read_text("utf-8")) if CASES.is_dir() else {}
QUICK = (
    "ingest.keep_raw=true",
    "diversify.enabled=false",
    "pool.retrievers=[bm25]",
    "export.rerank.negatives=1",
    "export.small=true",
)
COMMAND = re.compile(r"(curate init .*)")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources, with the binary ones that a program beside them writes."""
    if not EXPECTED:
        pytest.skip(f"{CASES} is absent")
    folder = tmp_path_factory.mktemp("sources") / "all"
    shutil.copytree(CASES, folder)
    subprocess.run([sys.executable, CASES / "make.py", folder], check=True, capture_output=True)
    return folder


def options(case: dict[str, Any], sources: Path) -> list[str]:
    return [word.replace("@", f"{sources}/") for word in case["init"]]


def fits(count: int, expected: int | list[int] | None) -> bool:
    return expected is None or count in (expected if isinstance(expected, list) else [expected])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_source_is_read_for_what_it_is(name: str, sources: Path, tmp_path: Path) -> None:
    """Right at once, or a question whose last answer, which takes everything, is right."""
    case = EXPECTED[name]
    done = curate(tmp_path, "init", *options(case, sources), "--name", "mine", "--models", "lexical")
    if case.get("asks"):
        assert done.returncode == 2, done.stdout
        assert all(word in done.stderr for word in case["asks"])
        *_, command = COMMAND.findall(done.stderr)
        done = curate(tmp_path, *shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    ran = curate(tmp_path, "run", "mine.yaml", *(word for setting in QUICK for word in ("--set", setting)))
    assert ran.returncode == 0, ran.stderr
    run = tmp_path / "runs" / "mine"
    queries, corpus, qrels = (files.read_table(run / "ingest", table) for table in ("queries", "corpus", "qrels"))
    for table, frame in (("queries", queries), ("corpus", corpus), ("qrels", qrels)):
        assert fits(frame.height, case.get(table)), (table, frame.height)
    asked = queries["text"].to_list()
    documents = [f"{title} {text}" for title, text in corpus.select("title", "text").iter_rows()]
    assert any(case.get("queries_text", "") in text for text in asked)
    assert any(case.get("corpus_text", "") in text for text in documents)
    assert not [text for text in asked for word in case.get("queries_not", []) if word in text]
    assert not [text for text in documents for word in case.get("corpus_not", []) if word in text]
    _load(run / "export")


def _load(export: Path) -> None:
    """Load an export with stock mteb and pytrec_eval; both hold the same labels."""
    import pytrec_eval

    from curate import load_task

    task = load_task(export / "mteb" / "retrieval")
    task.load_data()
    labels = task.dataset["default"]["test"]["relevant_docs"]
    with next((export / "trec").glob("qrels*")).open(encoding="utf-8") as stream:
        parsed = pytrec_eval.parse_qrel(stream)
    assert {query: set(documents) for query, documents in labels.items()} == {
        query: {document for document, grade in documents.items() if grade > 0} for query, documents in parsed.items()
    }


# Sources of our own, from `init` to `ingest`: those that a question leads to are right after its printed answer.

QUESTIONS = ("How long does a cold last?", "Is aspirin safe for children?", "What is a normal pulse?")
ANSWERS = (
    "Most colds clear up within ten days without treatment.",
    "Aspirin should not be given to anyone under sixteen.",
    "Sixty to one hundred beats per minute are normal.",
)
BOTH = list(zip(QUESTIONS, ANSWERS, strict=True))


def _lines(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def tickets(folder: Path) -> list[str]:
    rows = [f"{n},2024-01-0{n},{q[:9]},<p>Hello.<br>{q}</p>,<b>{a}</b>" for n, (q, a) in enumerate(BOTH, start=1)]
    (folder / "t.csv").write_text("\n".join(["Ticket ID,Created At,Subject,Description,Resolution", *rows]) + "\n")
    return ["--queries", "t.csv", "--corpus", "t.csv"]


def conversations(folder: Path) -> list[str]:
    turns = [[("system", "Be kind."), ("user", question), ("assistant", answer)] for question, answer in BOTH]
    _lines(folder / "c.jsonl", [{"messages": [{"role": r, "content": c} for r, c in record]} for record in turns])
    return ["--queries", "c.jsonl", "--corpus", "c.jsonl"]


def questions_of_bioasq(folder: Path) -> list[str]:
    questions = [{"id": f"b{n}", "body": q, "snippets": [{"text": a}]} for n, (q, a) in enumerate(BOTH)]
    (folder / "b.json").write_text(json.dumps({"questions": questions}, indent=1))
    return ["--queries", "b.json", "--corpus", "b.json"]


def subsets_of_mteb(folder: Path) -> list[str]:
    tables: dict[str, list[dict[str, Any]]] = {
        "queries": [{"id": f"q{n}", "text": question} for n, question in enumerate(QUESTIONS)],
        "corpus": [{"id": f"d{n}", "title": "", "text": answer} for n, answer in enumerate(ANSWERS)],
        "qrels": [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": 1} for n in range(3)],
        "top_ranked": [{"query-id": f"q{n}", "corpus-ids": ["d0", "d1"]} for n in range(3)],
    }
    for name, rows in tables.items():
        (folder / "archive" / "task" / f"en-{name}").mkdir(parents=True)
        pl.DataFrame(rows).write_parquet(folder / "archive" / "task" / f"en-{name}" / "test-00000-of-00001.parquet")
    return ["archive"]


def sheets_by_role(folder: Path) -> list[str]:
    import openpyxl

    book = openpyxl.Workbook()
    rows: dict[str, list[list[Any]]] = {
        "问题": [["编号", "问题"], *([f"q{n}", question] for n, question in enumerate(QUESTIONS))],
        "文档": [["编号", "标题", "内容"], *([f"d{n}", "", answer] for n, answer in enumerate(ANSWERS))],
        "相关性": [["问题编号", "文档编号", "结果"], *([f"q{n}", f"d{n}", 1] for n in range(3))],
    }
    for title, cells in rows.items():
        sheet = book.create_sheet(title)
        for row in cells:
            sheet.append(row)
    book.remove(book["Sheet"])
    book.save(folder / "b.xlsx")
    return ["b.xlsx"]


def files_without_endings(folder: Path) -> list[str]:
    topics = "".join(f"<top>\n<num> Number: q{n}\n<title> {q}\n</top>\n" for n, q in enumerate(QUESTIONS))
    (folder / "topics").write_text(topics)
    _lines(folder / "texts", [{"docid": f"d{n}", "contents": answer} for n, answer in enumerate(ANSWERS)])
    (folder / "labels").write_text("".join(f"q{n},d{n},1\n" for n in range(3)))
    return ["--queries", "topics", "--corpus", "texts", "--qrels", "labels"]


def hits_of_a_search(folder: Path) -> list[str]:
    hits = [{"_index": "i", "_id": f"d{n}", "_source": {"body": answer}} for n, answer in enumerate(ANSWERS)]
    (folder / "hits.json").write_text(json.dumps({"took": 3, "hits": {"total": {"value": 3}, "hits": hits}}))
    cells = [f'q{n}\t"{question[:7]}\r\n{question[7:]}"' for n, question in enumerate(QUESTIONS)]
    (folder / "q.tsv").write_text("\ufeff" + "\r\n".join(["id\tquestion", *cells]) + "\r\n", newline="")
    (folder / "r.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(3)))
    return ["--queries", "q.tsv", "--corpus", "hits.json", "--qrels", "r.txt"]


@pytest.mark.parametrize(
    "source",
    [
        tickets,
        conversations,
        questions_of_bioasq,
        subsets_of_mteb,
        sheets_by_role,
        files_without_endings,
        hits_of_a_search,
    ],
)
def test_a_source_is_right_at_once_or_after_a_printed_command(
    source: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    printed = [["init", *source(tmp_path), "--name", "mine", "--models", "lexical"]]
    done = curate(tmp_path, *printed[0])
    if done.returncode:
        printed = [shlex.split(command)[1:] for command in COMMAND.findall(done.stderr)]
    assert any(_reads_pairs(tmp_path, command) for command in printed), done.stdout + done.stderr


def _reads_pairs(folder: Path, command: list[str]) -> bool:
    (folder / "mine.yaml").unlink(missing_ok=True)
    shutil.rmtree(folder / "runs", ignore_errors=True)
    if curate(folder, *command).returncode or curate(folder, "ingest", "--pipeline", "mine.yaml").returncode:
        return False
    tables = (files.read_table(folder / "runs" / "mine" / "ingest", name) for name in ("queries", "corpus", "qrels"))
    queries, corpus, qrels = (table.rows() for table in tables)
    asked = {query_id: " ".join(text.split()) for query_id, text, *_ in queries}
    told = {doc_id: text for doc_id, _, text, *_ in corpus}
    pairs = {(asked[query_id], told[doc_id]) for query_id, doc_id, *_ in qrels}
    return len(told) == len(pairs) == 3 and all(
        any(question[7:] in query and answer in text for query, text in pairs) for question, answer in BOTH
    )
