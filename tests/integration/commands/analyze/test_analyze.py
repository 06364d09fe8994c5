"""`curate analyze`: counted from a run's tables, and labelled by a model that is paid once."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jieba
import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from curate.ask.panel import packaged_question
from curate.pipeline.stage import Context
from curate.stats.difficulty import Measured, by_rank, grouped, measure, overlap
from tests import ROOT
from tests.support import machine
from tests.support.defined import defined
from tests.support.runs import complaint, curate, ran, tiny
from tests.vendor import Call, Fault, Vendor, refusal, says, vendor

KILLER = ROOT / "tests/support/killer.py"
RUN = ("--run", "runs/tiny")
PRICE = {"input": 10.0, "output": 100.0, "date": "2026-01-01", "currency": "EUR"}


def labelled(call: Call) -> Fault:
    """Answer each question by the first character of the query's digest, so that labels differ."""
    hard = "L1" in call.body["messages"][0]["content"]
    labels = ("L1", "L2", "L3") if hard else ("boundary", "hallucination", "noise")
    label = labels[len(next(iter(call.passages.values()))) % 3]
    return says(json.dumps({"label": label, "reason": f"因为{label}。"}, ensure_ascii=False))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    ran(folder, "run", tiny(folder), "--set", "export.formats=[beir]")
    return folder


Answering = Callable[[Callable[[Call], Fault | None]], tuple[Path, Vendor]]


@pytest.fixture
def answering(finished: Path, tmp_path: Path) -> Iterator[Answering]:
    """Return what starts a model `m` of a given behaviour, and a folder with a finished run that knows it."""
    running: list[Any] = []

    def start(faults: Callable[[Call], Fault | None]) -> tuple[Path, Vendor]:
        server = vendor(lambda _query, _passage: "S", faults)
        running.append(server)
        state = server.__enter__()
        folder = Path(shutil.copytree(finished, tmp_path / "work"))
        path = folder / "runs" / "tiny" / "pipeline.yaml"
        settings = yaml.safe_load(path.read_text("utf-8"))
        settings["judges"]["m"] = {
            "kind": "openai",
            "model": "m-1",
            "base_url": state.url,
            "concurrency": 1,
            "price": PRICE,
        }
        path.write_text(yaml.safe_dump(settings, allow_unicode=True), "utf-8")
        return folder, state

    yield start
    for server in running:
        server.__exit__(None, None, None)


def figures(folder: Path, *words: str) -> dict[str, Any]:
    done = ran(folder, "analyze", *RUN, "--json", *words)
    found: dict[str, Any] = machine.data(done.stdout)
    return found


def table(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / "runs" / "tiny" / f"{name}.parquet")


# What can be counted


def test_counted_again_from_the_tables(finished: Path) -> None:
    found = figures(finished)
    assert found["bm25"] == {"retriever": "words", "tokens": "words", "depth": 8}
    assert found["questions"] == {}
    assert found["heuristic"] is True
    rankings = table(finished, "pool/rankings").filter(pl.col("retriever") == "words")
    ranks = {(query, doc): rank for query, doc, rank in rankings.select("query_id", "doc_id", "rank").iter_rows()}
    texts = dict(table(finished, "diversify/corpus").select("doc_id", "text").iter_rows())
    queries = dict(table(finished, "diversify/queries").select("query_id", "text").iter_rows())

    def cut(text: str) -> set[str]:
        return {word for word in jieba.lcut_for_search(text.lower()) if any(map(str.isalnum, word))}

    positives: dict[str, list[str]] = {}
    for query, doc in table(finished, "resolve/qrels").select("query_id", "doc_id").iter_rows():
        positives.setdefault(query, []).append(doc)
    assert len(found["queries"]) == len(positives) > 0
    for each in found["queries"]:
        query, docs = each["query_id"], positives[each["query_id"]]
        asked = cut(queries[query])
        shares = [len(asked & cut(texts[doc])) / len(asked) for doc in docs]
        assert each["overlap"] == max(shares)
        assert each["overlap_mean"] == pytest.approx(statistics.fmean(shares))
        assert each["rank"] == min((ranks[query, doc] for doc in docs if (query, doc) in ranks), default=None)
        assert each["length"] == len(queries[query])


def test_without_a_pooled_bm25_one_is_computed(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    qrels = [row.split("\t") for row in (tmp_path / "data/qrels/test.tsv").read_text("utf-8").splitlines()[1:]]
    grid = [(query, f"d{n:02}") for query, *_ in qrels for n in range(20)]
    (tmp_path / "all.trec").write_text("".join(f"{q} Q0 {d} 1 1 x\n" for q, d in grid), "utf-8")
    settings = ["--set", "retrievers.all={kind: runfile, path: all.trec}", "--set", "pool.retrievers=[all]"]
    ran(tmp_path, "run", name, *settings, "--set", "pool.depth=20", "--set", "pool.size=20")
    found = figures(tmp_path)
    assert found["bm25"]["retriever"] == "computed"
    assert {each["rank"] for each in found["queries"]} == {1}  # positives by word overlap are found first
    assert found["by_bm25_rank"][0]["name"] == "1"


WORDS = st.frozensets(st.sampled_from("abcdef"), max_size=6)


@given(WORDS, st.lists(WORDS, min_size=1))
def test_overlap_is_a_share(query: frozenset[str], passages: list[frozenset[str]]) -> None:
    found = measure("q", "abc", query, passages, None)
    if not query:
        assert found.overlap is found.overlap_mean is None
        return
    assert 0 <= defined(found.overlap_mean) <= defined(found.overlap) + 1e-12 <= 1 + 1e-12
    assert overlap(query, query) == 1.0
    assert defined(found.overlap) == max(sum(word in each for word in query) / len(query) for each in passages)


def ranked(*ranks: int | None) -> list[Measured]:
    return [Measured(f"q{n}", 5, 2, 1, 0.5, 0.5, rank) for n, rank in enumerate(ranks)]


def test_bands_of_ranks() -> None:
    found = by_rank(ranked(1, 2, 10, 11, 100, 101, None, None), seed=1)
    assert [(each.name, each.queries, each.found) for each in found] == [
        *(("1", 1, 1), ("2-10", 2, 2), ("11-100", 2, 2), ("below 100", 1, 1), ("not found", 2, 0))
    ]
    assert [each.median_rank for each in found] == [1, 6, 55.5, 101, None]


def test_groups_hold_only_who_was_labelled() -> None:
    found = grouped(ranked(1, 5, 7), {"q0": "L1", "q2": "L3"}, ["L1", "L2", "L3"], seed=1)
    assert [(each.name, each.queries, each.share) for each in found] == [("L1", 1, 0.5), ("L3", 1, 0.5)]


# What a model says


def test_a_plan_is_printed_and_nothing_is_sent(answering: Answering) -> None:
    folder, server = answering(labelled)
    plan = ran(folder, "analyze", *RUN, "--model", "m", "--plan")
    assert [line.split()[0] for line in plan.stdout.splitlines()[1:-1]] == [
        "analyze-reasons-zh",
        "analyze-difficulty-zh",
    ]
    rows = machine.data(curate(folder, "analyze", *RUN, "--model", "m", "--plan", "--json").stdout)
    assert [row["question"] for row in rows] == ["analyze-reasons-zh", "analyze-difficulty-zh", "in all"]
    stopped = complaint(folder, "analyze", *RUN, "--model", "m")
    assert "analyzing would send:" in stopped
    assert "EUR" in stopped
    assert curate(folder, "analyze", *RUN, "--plan").returncode == 2
    offline = curate(folder, "analyze", *RUN, "--model", "m", "--offline")
    assert offline.returncode == 2
    assert server.calls == []


def test_labelled_paid_once_and_replayed_offline(answering: Answering) -> None:
    folder, server = answering(labelled)
    contested = table(folder, "consensus/contested")
    found = figures(folder, "--model", "m", "--yes", "--sample", "4")
    reasons, difficulty = found["questions"]["reasons"], found["questions"]["difficulty"]
    assert (reasons["population"], reasons["drawn"]) == (len(contested), 4)
    assert reasons["statuses"] == {"labelled": 4, "refused": 0, "unparsed": 0, "failed": 0}
    for each in reasons["shares"]:
        bounds = proportion_confint(each["count"], 4, method="wilson")
        assert (each["value"], each["low"], each["high"]) == pytest.approx((each["count"] / 4, *bounds), abs=1e-4)
    assert sum(each["count"] for each in reasons["shares"]) == 4
    assert [each["label"] for each in difficulty["shares"]] == ["L1", "L2", "L3"]
    assert sum(each["queries"] for each in difficulty["groups"]) == difficulty["drawn"]
    sent = len(server.calls)
    assert sent == 4 + difficulty["drawn"]
    pairs = set(contested.select("query_id", "doc_id").iter_rows())
    assert all((row["query_id"], row["doc_id"]) in pairs for row in reasons["rows"])
    assert all(row["reason"] == f"因为{row['label']}。" for row in reasons["rows"])
    kept = (folder / "runs/tiny/checks/analyze.json").read_bytes()

    assert figures(folder, "--model", "m", "--offline", "--sample", "4") == found
    assert (folder / "runs/tiny/checks/analyze.json").read_bytes() == kept
    larger = figures(folder, "--model", "m", "--max-cost", "5", "--sample", "6")
    assert len(server.calls) == sent + 2 + larger["questions"]["difficulty"]["drawn"] - difficulty["drawn"]
    assert max(server.paid.values()) == 1
    first = larger["questions"]["reasons"]["rows"][:4]
    assert first == reasons["rows"]

    text = curate(folder, "analyze", *RUN, "--model", "m", "--sample", "6").stdout
    assert "Why judges disagree: 6 of" in text
    assert "boundary / hallucination / noise: " in text
    assert "judged by heuristics alone" in text
    ran(folder, "ledger", "check")


def test_judges_are_not_named_to_the_model(answering: Answering) -> None:
    folder, server = answering(labelled)
    figures(folder, "--model", "m", "--yes", "--sample", "5")
    sent = [turn["content"] for call in server.calls for turn in call.body["messages"]]
    assert not any(word in text for text in sent for word in ("lexical", "strict"))


NONSENSE: tuple[Fault, ...] = (
    says("boundary"),
    says('{"label": "S", "reason": "好。"}'),
    says('{"label": "noise"}'),
    says('{"P1": "S"}'),
    refusal,
)


def test_nonsense_and_refusals_are_never_a_label(answering: Answering) -> None:
    count = 0

    def nonsense(_call: Call) -> Fault:
        nonlocal count
        count += 1
        return NONSENSE[count % len(NONSENSE)]

    folder, server = answering(nonsense)
    found = figures(folder, "--model", "m", "--yes", "--sample", "5")
    for asked in found["questions"].values():
        assert asked["statuses"]["labelled"] == 0
        assert sum(asked["statuses"].values()) == asked["drawn"]
        assert all(each["value"] is None and each["count"] == 0 for each in asked["shares"])
        assert all(row["label"] is None and row["reason"] is None for row in asked["rows"])
    statuses = [asked["statuses"] for asked in found["questions"].values()]
    assert sum(each["refused"] for each in statuses) == 2
    assert sum(each["unparsed"] for each in statuses) == len(server.calls) - 2
    shown = curate(folder, "analyze", *RUN, "--model", "m", "--sample", "5")
    assert "not defined, for nothing was labelled" in shown.stdout
    sent = len(server.calls)
    figures(folder, "--model", "m", "--yes", "--sample", "5")
    assert len(server.calls) == sent, "what was answered is paid, so it is asked again only with --retry"
    figures(folder, "--model", "m", "--yes", "--sample", "5", "--retry")
    assert len(server.calls) == 2 * sent


@pytest.mark.parametrize("step", [1, 4])
def test_a_kill_and_a_second_try_pay_nothing_twice(answering: Answering, step: int) -> None:
    folder, server = answering(labelled)
    words = ["analyze", *RUN, "--model", "m", "--yes", "--sample", "6"]
    environment = {**os.environ, "CURATE_HOME": str(folder / "home")}
    killed = subprocess.run(
        [sys.executable, KILLER, "after", str(step), *words], cwd=folder, env=environment, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(server.calls) == step
    found = figures(folder, *words[3:])
    drawn = sum(asked["drawn"] for asked in found["questions"].values())
    assert len(server.calls) == drawn > step
    assert max(server.paid.values()) == 1


def test_who_can_be_asked(answering: Answering) -> None:
    folder, _ = answering(labelled)
    heuristic = complaint(folder, "analyze", *RUN, "--model", "lexical")
    assert "'lexical' is no language model" in heuristic
    capped = complaint(folder, "analyze", *RUN, "--model", "m", "--max-cost", "0.0000001")
    assert "the next call may pass the cap" in capped


@pytest.mark.parametrize(("language", "name"), [("zh", "zh"), ("zh-Hant", "zh"), ("en-GB", "en"), ("de", "en")])
def test_texts_of_other_languages_are_asked_about_in_english(tmp_path: Path, language: str, name: str) -> None:
    context = Context(tmp_path, tmp_path, tmp_path, language=language)
    assert packaged_question(context, "analyze-reasons").name == f"analyze-reasons-{name}"
