"""The judge stage on a small run folder: permission, resuming, retrying, caps over a panel, and kill -9."""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curate.commands.judge import stage
from curate.core.config import Settings
from curate.core.errors import AccessError, BudgetError, ConfigError, ProviderError, RunFailed, UserError
from curate.ledger import Ledger
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context
from curate.system.files import read_json
from tests import ROOT
from tests import vendor as fake
from tests.support.asking import RUBRIC, paid_twice, script, sizes
from tests.support.pools import QUERIES, grades_file, pooled, said, step, table
from tests.vendor import Call, Fault, Vendor, vendor

CHILD = ROOT / "tests/support/judge_child.py"
GRADES = {f"d{n}": grade for n, grade in enumerate("SABCDSA")}
TEXTS = {doc_id: f"段落{doc_id} {grade}" for doc_id, grade in GRADES.items()}
PRICE: Settings = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}
ONE: Settings = {"models": ["m"]}


def model(server: Vendor, **more: Any) -> Settings:
    return {"kind": "openai", "model": "m-1", "base_url": server.url, "timeout_s": 20.0, **more}


def expected(texts: Mapping[str, str] = TEXTS) -> dict[tuple[str, str], str]:
    return {(query_id, doc_id): text[-1] for query_id in QUERIES for doc_id, text in texts.items()}


def count(run: Path, what: str) -> int:
    with Ledger(run / "home" / "ledger.db") as ledger:
        return ledger.count(what)  # type: ignore[arg-type]


# Permission


def test_without_permission_the_plan_is_shown_and_nothing_is_sent(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    with vendor(script) as server, pytest.raises(BudgetError) as caught:
        step(run, "judge", {"models": ["m", "n"]}, {"m": model(server, price=PRICE), "n": model(server, model="m-2")})
    lines = str(caught.value).splitlines()
    assert lines[0] == "judging would send:"
    number = r"[\d,]+"
    assert re.fullmatch(
        rf"  m: 2 calls, about {number} prompt and at most 352 answer tokens, at most 0\.\d+ USD", lines[1]
    )
    assert re.fullmatch(rf"  n: 2 calls, about {number} prompt and at most 352 answer tokens, price unknown", lines[2])
    assert re.fullmatch(rf"  in all: 4 calls, about {number} prompt and at most 704 answer .*, price unknown", lines[3])
    assert "--max-cost" in lines[4]
    assert "--yes" in lines[4]
    assert (server.calls, count(run, "ratings")) == ([], 0)


def test_offline_judges_and_paid_ratings_need_no_permission(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    lexical: Settings = {"kind": "lexical"}
    step(run, "judge", {"models": ["words"]}, {"words": lexical})
    with vendor(script) as server:
        judges = {"words": lexical, "m": model(server)}
        step(run, "judge", {"models": ["words", "m"]}, judges, yes=True)
        step(run, "judge", {"models": ["words", "m"]}, judges)
        assert len(server.calls) == 2
    assert said(run, "m") == expected()


def test_a_cap_needs_every_price_unless_the_rest_may_go_without(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    with vendor(script) as server:
        judges = {"m": model(server, price=PRICE), "n": model(server, model="m-2")}
        with pytest.raises(BudgetError, match=r"give judges\.n\.price"):
            step(run, "judge", {"models": ["m", "n"]}, judges, max_cost=1.0)
        assert server.calls == []
        report = step(run, "judge", {"models": ["m", "n"]}, judges, max_cost=1.0, yes=True)
    assert report.cost is None
    assert said(run, "m") == said(run, "n") == expected()


def test_the_cap_holds_for_the_panel_together(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    settings: Settings = {"models": ["m", "n"], "batch": 1}
    with vendor(script, lambda _call: fake.used(prompt=1000, output=100)) as server:  # 0.003 a call
        judges = {name: model(server, model=name, price=PRICE, concurrency=2) for name in ("m", "n")}
        with pytest.raises(BudgetError, match="raise --max-cost"):
            step(run, "judge", settings, judges, max_cost=0.06)
        calls = Counter(call.model for call in server.calls)
        assert 12 <= calls["m"] + calls["n"] <= 20  # up to four calls at a time are held at the most that they may cost
        assert min(calls.values()) >= 3
        report = step(run, "judge", settings, judges, max_cost=0.09)
        assert len(server.calls) == 28
        assert paid_twice(server) == {}
    assert report.cost == pytest.approx(28 * 0.003)
    assert report.facts["bill"]["m"]["calls"] == 14  # type: ignore[index, call-overload]
    assert report.facts["bill"]["m"]["currency"] == report.facts["currency"] == "USD"  # type: ignore[index, call-overload]


def test_two_currencies_have_no_cap_and_no_sum(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    with vendor(script) as server:
        judges = {
            "m": model(server, price=PRICE),
            "n": model(server, model="m-2", price={**PRICE, "currency": "CNY"}),
        }
        with pytest.raises(BudgetError, match=r"CNY \(judges\.n\.price\), .*`rates: {CNY: {USD: RATE, date: .*--yes"):
            step(run, "judge", {"models": ["m", "n"]}, judges, max_cost=9.0, yes=True)
        assert server.calls == []
        with pytest.raises(BudgetError, match=r"at most 0\.\d+ USD\n  n: .* at most 0\.\d+ CNY"):
            step(run, "judge", {"models": ["m", "n"]}, judges)
        report = step(run, "judge", {"models": ["m", "n"]}, judges, yes=True)
    assert report.facts["bill"]["n"]["currency"] == "CNY"  # type: ignore[index, call-overload]
    assert (report.cost, report.facts["currency"]) == (None, None)


def test_a_judge_of_ones_own_costs_nothing_in_any_currency(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    with vendor(script) as server:
        free = {"input": 0, "output": 0, "date": PRICE["date"]}
        judges = {
            "m": model(server, price={**PRICE, "currency": "CNY"}),
            "n": model(server, model="m-2", price=free),
        }
        report = step(run, "judge", {"models": ["m", "n"]}, judges, max_cost=9.0)
    bill: Any = report.facts["bill"]
    assert report.cost == bill["m"]["cost"] > bill["n"]["cost"] == 0
    assert report.facts["currency"] == "CNY"


# What is asked, and what is not


def test_ratings_say_everything_and_the_panel_is_written_down(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    with vendor(script) as server:
        report = step(run, "judge", {**ONE, "batch": 4}, {"m": model(server, price=PRICE)}, yes=True)
    assert (report.rows_in, report.rows_out, report.dropped, report.unfinished) == (14, 14, 0, "")
    ratings = table(run, "judge", "ratings")
    assert ratings.select("query_id", "doc_id").rows() == sorted(expected())
    assert set(ratings["batch_size"]) == {4, 3}
    assert count(run, "calls") == 4
    panel = read_json(run / "judge" / "panel.json")
    assert (list(panel), panel["m"]["rubric"]["name"], panel["m"]["rubric"]["version"]) == (["m"], RUBRIC.name, 1)
    assert panel["m"]["rubric"]["digest"] == RUBRIC.digest
    assert report.facts["models"] == {"m": ["m-1"]}
    assert report.facts["replies"] == {"m": {"whole": 4}}
    assert (report.facts["heuristic"], report.facts["rated"]) == ([], 14)
    assert report.facts["rubric"] == f"{RUBRIC.name} ({RUBRIC.digest[:12]})"


def test_each_judge_has_an_order_of_its_own_that_repeats(tmp_path: Path) -> None:
    orders = []
    for name in ("first", "second"):
        run = pooled(tmp_path / name, TEXTS)
        with vendor(script) as server:
            judges = {each: model(server, model=each, concurrency=1) for each in ("m", "n")}
            step(run, "judge", {"models": ["m", "n"]}, judges, yes=True)
        calls = sorted(server.calls, key=lambda call: call.model)  # the two are asked at the same time
        orders.append([(call.model, call.query, list(call.passages.values())) for call in calls])
    assert orders[0] == orders[1]
    shown = [passages for _, _, passages in orders[0]]
    assert len({tuple(passages) for passages in shown}) == 4
    assert all(passages != sorted(passages) for passages in shown)


def test_identical_texts_are_asked_once_and_rated_everywhere(tmp_path: Path) -> None:
    queries = {**QUERIES, "q3": QUERIES["q1"]}
    texts = {**TEXTS, "copy": TEXTS["d1"]}
    run = pooled(tmp_path, texts, queries)
    with vendor(script) as server:
        report = step(run, "judge", ONE, {"m": model(server)}, yes=True)
    assert sum(sizes(server)) == len(QUERIES) * len(TEXTS)
    assert (report.rows_in, report.rows_out) == (24, 24)
    assert said(run, "m")["q3", "copy"] == said(run, "m")["q1", "d1"] == "A"


def test_only_what_is_new_is_asked(tmp_path: Path) -> None:
    with vendor(script) as server:
        step(pooled(tmp_path / "a", TEXTS), "judge", ONE, {"m": model(server)}, yes=True)
        more = pooled(tmp_path / "b", {**TEXTS, "new": "新的段落 C"})
        (tmp_path / "a" / "home").rename(more / "home")
        step(more, "judge", {**ONE, "batch": 3}, {"m": model(server)}, yes=True)
        assert sizes(server) == [7, 7, 1, 1]
        step(more, "judge", {**ONE, "rubric": "rubric-en"}, {"m": model(server)}, yes=True)
        assert sizes(server) == [7, 7, 1, 1, 8, 8]  # another rubric is another question
    assert said(more, "m") == expected({**TEXTS, "new": "新的段落 C"})


def test_an_empty_pool_is_judged_at_once(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS, pairs=[("q1", "d0")])
    (run / "pool" / "pool.parquet").unlink()
    from curate.system.files import frame, write_table

    write_table(run / "pool", "pool", frame("pool"))
    report = step(run, "judge", {"models": ["words"]}, {"words": {"kind": "lexical"}})
    assert (report.rows_in, report.rows_out, len(table(run, "judge", "ratings"))) == (0, 0, 0)


# What fails


def test_failed_ratings_make_the_stage_partial_and_are_retried(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)

    def faults(call: Call) -> Fault | None:
        return fake.error(500, retry_after=0) if call.query == QUERIES["q2"] else None

    with vendor(script, faults) as server:
        report = step(run, "judge", ONE, {"m": model(server)}, yes=True)
        assert (report.rows_out, report.dropped, report.facts["failed"]) == (7, 7, 7)
        assert report.unfinished.startswith("7 ratings are missing (m: 7 failed); run `curate judge` again")
        assert {status for pair, status in said(run, "m").items() if pair[0] == "q2"} == {"failed"}
        server.faults = lambda _call: None
        server.calls.clear()
        report = step(run, "judge", ONE, {"m": model(server)}, yes=True)
        assert [call.query for call in server.calls] == [QUERIES["q2"]]
    assert (report.unfinished, said(run, "m")) == ("", expected())


@pytest.mark.parametrize(("fault", "status"), [(fake.refusal, "refused"), (fake.says("不知道"), "unparsed")])
def test_refused_and_unparsed_are_asked_again_only_on_retry(tmp_path: Path, fault: Fault, status: str) -> None:
    run = pooled(tmp_path, {"d0": "段落 S", "d1": "毒 A"}, {"q1": QUERIES["q1"]})
    judges: dict[str, Settings] = {}

    def faults(call: Call) -> Fault | None:
        return fault if any("毒" in text for text in call.passages.values()) else None

    with vendor(script, faults) as server:
        judges["m"] = model(server)
        report = step(run, "judge", ONE, judges, yes=True)
        assert (report.unfinished, report.facts[status]) == ("", 1)
        paid = len(server.calls)
        server.faults = lambda _call: None
        step(run, "judge", ONE, judges, yes=True)
        assert (len(server.calls), said(run, "m")["q1", "d1"]) == (paid, status)
        step(run, "judge", ONE, judges, yes=True, retry=True)
        assert (len(server.calls), said(run, "m")["q1", "d1"]) == (paid + 1, "A")


def test_replayed_grades_that_are_missing_are_failed_and_named(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    path = grades_file(tmp_path / "grades.tsv", [("q1", doc_id, grade) for doc_id, grade in GRADES.items()])
    report = step(run, "judge", {"models": ["r"]}, {"r": {"kind": "replay", "path": str(path)}})
    assert "r: 7" in report.unfinished
    assert [said(run, "r")["q1", doc_id] for doc_id in GRADES] == list(GRADES.values())


def test_replayed_grades_go_by_id_and_not_through_the_ledger(tmp_path: Path) -> None:
    run = pooled(tmp_path, {"d1": "同一段话", "d2": "同一段话", "d3": "另一段话"}, {"q1": QUERIES["q1"]})
    path = grades_file(tmp_path / "grades.tsv", [("q1", "d1", "S"), ("q1", "d2", "D")])
    for _ in range(2):
        report = step(run, "judge", {"models": ["r"]}, {"r": {"kind": "replay", "path": str(path)}})
        assert said(run, "r") == {("q1", "d1"): "S", ("q1", "d2"): "D", ("q1", "d3"): "failed"}
        assert (report.rows_in, report.rows_out, report.dropped, count(run, "ratings")) == (3, 2, 1, 0)
    assert report.facts["rubric"] is None
    assert "rubric" not in read_json(run / "judge" / "panel.json")["r"]


def test_quota_stops_and_the_rest_is_asked_later(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    broke = fake.error(402, "insufficient_quota", "You exceeded your current quota")
    with vendor(script, [None, None, broke]) as server:
        judges = {"m": model(server, concurrency=1)}
        with pytest.raises(ProviderError, match="may spend no more"):
            step(run, "judge", {**ONE, "batch": 2}, judges, yes=True)
        assert count(run, "ratings") == 4
        step(run, "judge", {**ONE, "batch": 2}, judges, yes=True)
        assert paid_twice(server) == {}
    assert said(run, "m") == expected()


def test_a_changed_model_stops_and_blocks_reuse_until_it_is_accepted(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    with vendor(script) as server:
        judges = {"m": model(server, concurrency=1)}
        step(run, "judge", ONE, judges, yes=True)
        more = pooled(tmp_path / "more", {**TEXTS, "new": "新的段落 C"})
        (run / "home").rename(more / "home")
        server.faults = lambda _call: lambda answer: replace(answer, model="m-1-new")
        with pytest.raises(RunFailed, match="m-1, m-1-new"):
            step(more, "judge", ONE, judges, yes=True)
        sent = len(server.calls)
        with pytest.raises(RunFailed, match=r"judges\.m: .*m-1, m-1-new"):
            step(more, "judge", ONE, judges, yes=True)
        assert len(server.calls) == sent
        report = step(more, "judge", {**ONE, "mixed_models": True}, judges, yes=True)
    assert report.facts["models"] == {"m": ["m-1", "m-1-new"]}
    assert said(more, "m")["q1", "new"] == "C"


def test_a_mixture_is_not_reused_even_if_nothing_is_missing(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    turns = iter(["old", "new"])
    with vendor(script, lambda _call: lambda answer: replace(answer, model=next(turns))) as server:
        judges = {"m": model(server)}
        with pytest.raises(RunFailed):
            step(run, "judge", ONE, judges, yes=True)
        assert count(run, "ratings") == 14
        with pytest.raises(RunFailed, match=r"(old, new)|(new, old)"):
            step(run, "judge", ONE, judges)


def test_a_run_that_goes_on_sends_the_prompts_that_it_would_have_sent(tmp_path: Path) -> None:
    sent = []
    for name in ("at once", "stopped"):
        run = pooled(tmp_path / name, TEXTS)
        with vendor(script, [None, fake.error(402), None] if name == "stopped" else []) as server:
            judges = {"m": model(server, concurrency=1)}
            if name == "stopped":
                with pytest.raises(ProviderError, match="402"):
                    step(run, "judge", {**ONE, "batch": 3}, judges, yes=True)
                del server.calls[1]
            step(run, "judge", {**ONE, "batch": 3}, judges, yes=True)
        sent.append([(call.query, list(call.passages.values())) for call in server.calls])
    assert len(sent[0]) == 6
    assert sent[0] == sent[1]


def test_equal_ratings_have_equal_bytes_whatever_came_first(tmp_path: Path) -> None:
    tables = []
    for name in ("first", "second"):
        run = pooled(tmp_path / name, TEXTS)
        slow = iter([0.3, 0.0, 0.0, 0.0] if name == "first" else [0.0, 0.3, 0.0, 0.0])
        with vendor(script, lambda _call, waits=slow: fake.slow(next(waits))) as server:  # type: ignore[misc]
            step(run, "judge", {**ONE, "batch": 4}, {"m": model(server, concurrency=2)}, yes=True)
        tables.append((run / "judge" / "ratings.parquet").read_bytes())
    assert tables[0] == tables[1]


def test_each_run_has_a_bill_of_its_own(tmp_path: Path) -> None:
    judges: dict[str, Settings] = {}
    with vendor(script) as server:
        judges["m"] = model(server, price=PRICE)
        first = step(pooled(tmp_path / "a", TEXTS), "judge", ONE, judges, yes=True)
        other = pooled(tmp_path / "b", {**TEXTS, "new": "新的段落 C"})
        (tmp_path / "a" / "home").rename(other / "home")
        second = step(other, "judge", ONE, judges, yes=True)
    assert first.facts["bill"]["m"]["calls"] == second.facts["bill"]["m"]["calls"] == 2  # type: ignore[index, call-overload]
    assert first.cost > second.cost  # type: ignore[operator]


# Configuration


def test_a_panel_has_different_judges(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    for models, words in (
        ([], "one or more different names"),
        (["words", "words"], "one or more different names"),
        (["words", "again"], "words and again are the same judge"),
    ):
        with pytest.raises(ConfigError, match=words):
            step(run, "judge", {"models": models}, {"words": {"kind": "lexical"}, "again": {"kind": "lexical"}})


def test_a_missing_key_is_found_before_anything_runs(tmp_path: Path) -> None:
    run = pooled(tmp_path, TEXTS)
    with pytest.raises(ConfigError, match=r"NO_SUCH_KEY holds no key; type `export NO_SUCH_KEY="):
        step(run, "judge", ONE, {"m": {"kind": "openai", "model": "m-1", "key_env": "NO_SUCH_KEY"}}, yes=True)
    assert not (run / "home").exists()


def test_a_key_that_is_refused_names_the_judge_and_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-refused-0123456789")
    run = pooled(tmp_path, TEXTS)
    with vendor(script, key="sk-right") as server:
        for more, remedy in (
            ({"key_env": "TEST_KEY"}, r"check the key in the environment variable TEST_KEY$"),
            ({}, r"check the key: none was sent, so name its environment variable with key_env$"),
        ):
            with pytest.raises(AccessError, match=rf"^judges\.m: openai:m-1: HTTP 401 .*; {remedy}") as caught:
                step(run, "judge", ONE, {"m": model(server, **more)}, yes=True)
            assert isinstance(caught.value, UserError), "the command ends with exit code 2"
            assert caught.value.fatal
    assert count(run, "calls") == 0


def test_the_fingerprint_needs_no_key_and_changes_with_judge_and_rubric(tmp_path: Path) -> None:
    locked: Settings = {"kind": "openai", "model": "m-1", "key_env": "NO_SUCH_KEY"}
    context = Context(run=tmp_path, out=tmp_path, home=tmp_path, definitions={"judges": {"m": locked}})
    found = [stage.fingerprint(JudgeConfig(models=("m",), rubric=name), context) for name in ("rubric-zh", "rubric-en")]
    assert found[0]["judges"] == found[1]["judges"]  # type: ignore[index, call-overload]
    assert found[0] != found[1]
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        stage.preflight(JudgeConfig(models=("m",)), context)


def test_no_key_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-secret-9876543210"
    monkeypatch.setenv("TEST_KEY", secret)
    run = pooled(tmp_path, TEXTS)
    echo = fake.says(f'{{"P1": "S"}} {secret}')
    with vendor(script, [echo], key=secret) as server:
        step(run, "judge", ONE, {"m": model(server, key_env="TEST_KEY")}, yes=True)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "ledger.db" for path in files)
    assert not any(secret.encode() in path.read_bytes() for path in files)


# Kill


def killed_after(run: Path, settings: Settings, judges: Mapping[str, Settings], server: Vendor, calls: int) -> None:
    """Run the stage in a process of its own and kill it once so many more calls have arrived."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(CHILD), str(run), json.dumps(settings), json.dumps(judges)]
    target = len(server.calls) + calls
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(server.calls) < target and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    _, complaint = process.communicate()
    assert process.returncode == -signal.SIGKILL, complaint.decode()


def test_kill_9_loses_at_most_what_is_in_flight(tmp_path: Path) -> None:
    texts = {f"d{n:02}": f"段落{n} {'SABCD'[n % 5]}" for n in range(40)}
    settings: Settings = {"models": ["m", "n"], "batch": 2}
    chance, kills, concurrency = random.Random(5), 3, 4
    tables = {}
    for name in ("undisturbed", "killed"):
        run = pooled(tmp_path / name, texts)
        with vendor(script, lambda _call: fake.slow(0.02)) as server:
            judges = {each: model(server, model=each, concurrency=concurrency) for each in ("m", "n")}
            for _ in range(kills if name == "killed" else 0):
                killed_after(run, settings, judges, server, chance.randint(5, 20))
            step(run, "judge", settings, judges, yes=True)
            assert paid_twice(server).total() <= kills * concurrency * 2 * 2  # two judges at once, two passages a call
            assert set(server.paid) == {
                (each, query, text) for each in judges for query in QUERIES.values() for text in texts.values()
            }
        tables[name] = table(run, "judge", "ratings").select("query_id", "doc_id", "judge", "grade", "status")
        connection = sqlite3.connect(run / "home" / "ledger.db")
        keys = "judge_digest || rubric_digest || query_digest || passage_digest"
        [(rows, different)] = connection.execute(f"SELECT count(*), count(DISTINCT {keys}) FROM ratings").fetchall()
        connection.close()
        assert rows == different == 2 * len(QUERIES) * len(texts)
    assert tables["killed"].equals(tables["undisturbed"])
    assert said(tmp_path / "killed", "m") == said(tmp_path / "killed", "n") == expected(texts)
