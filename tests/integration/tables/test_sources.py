"""Sources that people have, from a command line with their names to an export that mteb and pytrec_eval read."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from curate.system import files
from tests.conftest import DATA
from tests.support.runs import curate

CASES = DATA.parent / "cases" / "sources"
EXPECTED: dict[str, Any] = json.loads((CASES / "expect.json").read_text("utf-8")) if CASES.is_dir() else {}
QUICK = ("ingest.keep_raw=true", "diversify.enabled=false", "pool.retrievers=[bm25]", "export.rerank.negatives=1")
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
