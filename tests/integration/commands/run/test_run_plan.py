"""The bill of a whole pipeline before its first stage: bounds of what the stages plan themselves, in one currency."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import machine
from tests.support.runs import complaint, curate, ran, tiny

PRICE = "{input: 2, output: 10, currency: CNY, date: 2026-01-01}"
DEAR = "{input: 3, output: 10, currency: USD, date: 2026-01-01}"
MODEL = "kind: openai, base_url: 'http://127.0.0.1:9/v1'"
JUDGES = (
    "--set",
    f"judges={{near: {{{MODEL}, model: m-1, price: {PRICE}}}, far: {{{MODEL}, model: n-1, price: {DEAR}}}}}",
    "--set",
    "judge.models=[far, near]",
    "--set",
    "rates={USD: {CNY: 7, date: 2026-01-01}}",
    "--set",
    "currency=CNY",
)


def plan(folder: Path, *words: str) -> Any:
    return machine.data(ran(folder, "run", *words, "--plan", "--json").stdout)


def by(found: Any, name: str) -> dict[str, Any]:
    return {row["asked"]: row[name] for row in found["rows"]}


def test_the_paper_is_planned_without_source_key_or_network(tmp_path: Path) -> None:
    small = ("--set", "assume.queries=40", "--set", "assume.documents=700")
    found = plan(tmp_path, "cmedteb", *small)
    kept = [path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*.*")]
    assert kept == [("home", "planned")], "a plan keeps nothing but which pool it was of"
    calls = {(row["stage"], row["asked"]): row["calls"] for row in found["rows"]}
    assert calls["mask", "mask.model=masker"] == 740
    assert [calls["judge", name] for name in ("deepseek-v3", "doubao-1.5-pro", "gpt-4o")] == [40 * 50] * 3
    assert calls["sts", "sts.generator=gpt-4o"] == 40, "a word of the dictionary stands in every assumed query"
    row = next(each for each in found["rows"] if (each["stage"], each["asked"]) == ("judge", "gpt-4o"))
    price = next(each for each in found["prices"] if each["model"] == "gpt-4o")
    assert (row["currency"], price["currency"], price["input"]) == ("CNY", "CNY", pytest.approx(2.5 * 7.0197, abs=1e-4))
    most = (row["prompt_tokens"] * price["input"] + row["answer_tokens"] * price["output"]) / 1e6
    assert row["most"] == pytest.approx(most, rel=1e-4)
    assert (found["most"], found["least"]) == (None, None)
    assert found["known"] == pytest.approx(sum(each["most"] or 0 for each in found["rows"]), abs=0.01)
    assert any("judges.deepseek-v3.price=" in said for said in found["unknown"])
    assert "data/medical" in found["assumed"][0]
    assert "40 queries of 20.68" in found["assumed"][0]


def test_the_price_that_lacks_is_set_as_the_plan_says(tmp_path: Path) -> None:
    small = ("--set", "assume.queries=40", "--set", "assume.documents=700")
    done = ran(tmp_path, "run", "cmedteb", *small, "--plan")
    assert "in all: not known; what has a price: at most" in done.stdout
    said = next(line for line in done.stdout.splitlines() if "judges.deepseek-v3.price=" in line)
    setting = said.partition("--set '")[2].rstrip("'").replace("PRICE", "2").replace("YYYY-MM-DD", "2026-01-01")
    found = plan(tmp_path, "cmedteb", *small, "--set", setting)
    assert (found["unknown"], found["most"]) == ([], found["known"])


def test_the_forecast_bounds_what_the_stage_plans_itself(tmp_path: Path) -> None:
    words = (tiny(tmp_path), *JUDGES, "--set", "judge.batch=4")
    before = plan(tmp_path, *words)
    assert not (tmp_path / "runs").exists()
    assert by(before, "calls") == {"far": 5 * 3, "near": 5 * 3}
    assert not any(by(before, "exact").values())
    stopped = curate(tmp_path, "run", *words)
    assert stopped.returncode == 2
    assert "allow it with --max-cost" in stopped.stderr
    after = plan(tmp_path, *words)
    assert all(by(after, "exact").values())
    assert 0 < after["most"] <= 1.2 * before["most"]
    assert all(by(after, "calls")[name] <= calls for name, calls in by(before, "calls").items())
    assert before["most"] == pytest.approx(sum(by(before, "most").values()), abs=0.001)


def test_controls_and_a_cascade_are_priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (tiny(tmp_path), *JUDGES, "--set", "judge.batch=4")
    (tmp_path / "known.csv").write_text("query_id,doc_id,grade\n" + "".join(f"q{n},d{4 * n:02},S\n" for n in range(5)))
    gate = ("--set", "judge.gate={positives: known.csv, size: 5}")
    plain, gated = plan(tmp_path, *words), plan(tmp_path, *words, *gate)
    assert by(gated, "calls").keys() == {"far, controls", "near, controls", "far", "near"}
    assert curate(tmp_path, "run", *words).returncode == 2
    exact = by(plan(tmp_path, *words, *gate), "calls")
    assert all(0 < exact[name] <= calls for name, calls in by(gated, "calls").items())
    assert gated["most"] > plain["most"]
    monkeypatch.setattr("curate.ask.panel_run.LEAST", 10)
    there = {row["asked"]: row for row in plan(tmp_path, *words, "--set", "judge.cascade=exact")["rows"]}
    assert (there["near"]["least"], there["near"]["exact"]) == (there["near"]["most"], True)
    assert there["far"]["least"] == pytest.approx(there["far"]["most"] * 10 / 40, rel=1e-3)
    many = [{"_id": f"q{n}", "text": f"第{n}种病能喝咖啡吗"} for n in range(300)]
    (tmp_path / "data" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in many))
    cascade = plan(tmp_path, *words, "--set", "judge.cascade=positives", "--run", "other")
    rows = {row["asked"]: row for row in cascade["rows"]}
    assert rows["near"]["least"] == rows["near"]["most"], "the first is asked for everything"
    assert rows["far"]["least"] == pytest.approx(rows["far"]["most"] * 1000 / 3000, rel=1e-3)
    assert cascade["least"] < cascade["most"]


def test_a_source_that_is_not_there_asks_for_its_size(tmp_path: Path) -> None:
    tiny(tmp_path)
    words = ("tiny.yaml", *JUDGES, "--set", "ingest.source=nowhere")
    said = complaint(tmp_path, "run", *words, "--plan")
    assert "language: zh, for the source cannot be read" in said
    assert "'nowhere' is neither a folder" in said
    size = said.partition("as in `")[2].partition("`")[0].removeprefix("assume: ")
    asked = {"far": 1000, "near": 1000, "far, controls": 12, "near, controls": 12}
    assert by(plan(tmp_path, *words, "--set", f"assume={size}"), "calls") == asked


def test_a_judge_that_settles_costs_nothing_at_least(tmp_path: Path) -> None:
    words = (tiny(tmp_path), *JUDGES, "--set", "judge.models=[lexical, near]", "--set", "consensus.settle=far")
    rows = {row["asked"]: row for row in plan(tmp_path, *words)["rows"]}
    assert (rows["far"]["stage"], rows["far"]["least"]) == ("resolve", 0.0)
    assert rows["far"]["most"] > 0


def test_embeddings_of_a_vendor_are_counted_and_have_no_price(tmp_path: Path) -> None:
    words = ("--set", "encoders={dear: {kind: api, base_url: 'https://e.example/v1', model: e, dim: 4}}")
    found = plan(tmp_path, tiny(tmp_path), *words, "--set", "pool.retrievers=[words, dear]")
    (row,) = found["rows"]
    assert (row["stage"], row["calls"], row["most"], found["most"]) == ("pool", 2, None, None)


def test_without_models_nothing_is_left_to_send(tmp_path: Path) -> None:
    assert ran(tmp_path, "run", tiny(tmp_path), "--plan").stdout == "nothing is left to send\n"
    assert "expected both" in complaint(tmp_path, "run", "tiny.yaml", "--json")


def test_what_cannot_be_counted_or_added_up_is_said(tmp_path: Path) -> None:
    kinds = "[ingest, mask, diversify, pool, judge, consensus, resolve, gradient, export]"
    series = "{generator: paraphrase, panel: [near]}"
    words = (tiny(tmp_path), *JUDGES[:4], "--set", f"stages={kinds}", "--set", f"gradient={series}")
    found = plan(tmp_path, *words)
    (row,) = [row for row in found["rows"] if row["stage"] == "gradient"]
    assert (row["calls"], row["most"], found["most"], found["known"]) == (None, None, None, None)
    assert any("gradient: gradient.generator: found paraphrase" in said for said in found["assumed"])
    assert any("write `currency: CNY` and `rates: {USD: {CNY: RATE" in said for said in found["unknown"])
    said = complaint(tmp_path, "run", *words, "--set", "judge.models=[nobody]", "--plan")
    assert "nobody" in said
