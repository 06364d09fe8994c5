"""The gate before a pool is paid for: controls first, blindly, and a weak judge stops the run."""

from pathlib import Path
from typing import Any

import pytest

from curate.api.cost_plan import CostPlan
from curate.ask.gate import REPLICATE
from curate.ask.quote import quote
from curate.core.config import Settings
from curate.core.errors import BudgetError, ConfigError, DataError, UserError
from curate.ledger import Ledger
from curate.pipeline.stage import Report
from curate.pipeline.stages import NAMES
from tests.support.controlled import (
    DOCUMENTS,
    PAIRS,
    before_judging,
    counts_words,
    executed,
    known,
    model,
    obeys,
    truth,
)
from tests.support.pools import grades_file, step, table
from tests.support.rows import sql
from tests.vendor import Rules, vendor

POOL = len(PAIRS) // 10
"""Prompts of ten that hold the pool."""


def lenient(_query: str, _passage: str) -> str:
    return "A"


def settings(run: Path, **more: Any) -> dict[str, Any]:
    return {"models": ["m"], "gate": {"positives": str(known(run)), **more.pop("gate", {})}, **more}


def replicates(run: Path) -> dict[int, int]:
    with Ledger(run / "home" / "ledger.db") as ledger:
        return dict(sql(ledger, "SELECT replicate, count(*) FROM ratings GROUP BY replicate"))


def measured(report: Report) -> Any:
    """Return what a run's report says of the judge at the gate."""
    found: Any = report.facts["gate"]
    return found["judges"]["m"]


def own(call: Any) -> int:
    """Return how many passages of a prompt are of its query."""
    return sum(call.query[:5] in text for text in call.passages.values())


def test_a_good_judge_passes_and_then_rates_the_pool(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    with vendor(truth) as server:
        report = step(run, "judge", settings(run), {"m": model(server)}, yes=True)
        controls, pool = server.calls[:-POOL], server.calls[-POOL:]
    assert all(own(call) == 10 for call in pool)
    assert any(own(call) < 10 for call in controls)  # random documents are of other queries
    found = measured(report)
    assert (found["state"], found["value"], found["unanswered"]) == ("passed", 1.0, 0)
    assert (found["positives"]["answered"], found["negatives"]["answered"]) == (100, 100)
    unmade = ("gate: no controls of the family 'negated'", "gate: no controls of the family 'answer removed'")
    assert [note.startswith(start) for note, start in zip(report.notes, unmade, strict=True)] == [True, True]
    assert replicates(run)[0] == len(PAIRS)
    assert replicates(run)[REPLICATE] == sum(len(call.passages) for call in controls)
    assert len(table(run, "judge", "ratings")) == len(PAIRS)


def test_controls_stand_blindly_in_prompts_like_all_others(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    with vendor(truth) as server:
        step(run, "judge", settings(run, batch=5, gate={"size": 50, "adversarial": 0}), {"m": model(server)}, yes=True)
        controls, pool = server.calls[: -2 * POOL], server.calls[-2 * POOL :]
    assert {len(call.passages) for call in controls} == {5}
    for call in controls:
        assert call.body["messages"][0] == pool[0].body["messages"][0]
        assert call.body.keys() == pool[0].body.keys()
        assert list(call.passages) == list(pool[0].passages)
    slots = {
        slot for call in controls for slot, text in enumerate(call.passages.values()) if call.query[:5] not in text
    }
    assert slots == set(range(5))  # strangers stand everywhere


def test_a_weak_judge_stops_the_run_before_the_pool_is_paid(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    with vendor(lenient) as server, vendor(truth) as good:
        judges = {"m": model(server), "n": model(good, model="m-2")}
        with pytest.raises(UserError) as caught:
            step(run, "judge", settings(run, models=["m", "n"]), judges, yes=True)
        sent = len(server.calls)
    lines = str(caught.value).splitlines()
    assert lines[1].startswith("  m: weak, balanced accuracy 0.500 (")
    assert lines[2].startswith("  n: passed, balanced accuracy 1.000 (")
    assert "--allow-weak-judges" in lines[3]
    assert set(replicates(run)) == {REPLICATE}
    assert sent <= 2 * POOL


def test_judges_that_count_words_or_obey_are_named_with_what_fooled_them(tmp_path: Path) -> None:
    """Plumbing: three scripted judges behind HTTP, one honest."""
    run = before_judging(tmp_path)
    with vendor(truth) as honest, vendor(counts_words) as counter, vendor(obeys) as servant:
        servers = {"honest": honest, "counter": counter, "servant": servant}
        judges = {name: model(server, model=name) for name, server in servers.items()}
        with pytest.raises(UserError) as caught:
            step(run, "judge", settings(run, models=list(judges)), judges, yes=True)
    lines = {line.split(":")[0].strip(): line for line in str(caught.value).splitlines()}
    assert "passed" in lines["honest"]
    assert "fooled" not in lines["honest"]
    assert lines["counter"].endswith("fooled by query words (right on 0 of 20)")
    assert "weak" in lines["servant"]
    assert "claim (right on" in lines["servant"]
    assert "injection (right on 0 of 20)" in lines["servant"]
    assert "query words" not in lines["servant"]


@pytest.mark.parametrize("way", ["consent", "setting"])
def test_a_weak_judge_may_be_allowed_and_the_report_says_so(tmp_path: Path, way: str) -> None:
    run = before_judging(tmp_path)
    with vendor(lenient) as server:
        allowed: dict[str, Any] = {"allow_weak_judges": True}
        more, consent = ({}, allowed) if way == "consent" else (allowed, {})
        report = step(run, "judge", settings(run, **more), {"m": model(server)}, yes=True, **consent)
    assert report.notes[0].startswith("m did not pass the gate: ")
    assert [note for note in report.notes[1:] if "no controls of" not in note] == [
        f"m gives S or A to {len(PAIRS)} of {len(PAIRS)} pairs: it may not judge at all"
    ]
    assert measured(report)["state"] == "weak"
    assert replicates(run)[0] == len(PAIRS)


def test_too_few_controls_are_not_enough_to_pass(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    few = grades_file(tmp_path / "few.tsv", [(*pair, DOCUMENTS[pair[1]][-1]) for pair in PAIRS[:60]])
    with vendor(truth) as server:
        with pytest.raises(UserError, match=r"m: not enough, balanced accuracy 1\.000"):
            step(run, "judge", settings(run, gate={"positives": str(few)}), {"m": model(server)}, yes=True)
        passed = settings(run, gate={"positives": str(few), "least": 10})
        sent = len(server.calls)
        step(run, "judge", passed, {"m": model(server)}, yes=True)
        assert len(server.calls) == sent + POOL  # the controls were answered before


def test_controls_are_in_the_plan_and_under_the_cap(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    with vendor(truth) as server:
        with pytest.raises(BudgetError) as caught:
            step(run, "judge", settings(run), {"m": model(server)})
        assert server.calls == []
        lines = str(caught.value).splitlines()
        assert [line.partition(":")[0] for line in lines[1:3]] == ["  m, controls", "  m"]
        with pytest.raises(BudgetError):
            step(run, "judge", settings(run), {"m": model(server)}, max_cost=0.1)
        spent = sum(server.usage[kind] * price / 1e6 for kind, price in (("prompt", 2.0), ("output", 10.0)))
    assert 0 < spent <= 0.1


def test_a_second_run_pays_for_no_control_again(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    with vendor(truth) as server:
        step(run, "judge", settings(run), {"m": model(server)}, yes=True)
        sent = len(server.calls)
        report = step(run, "judge", settings(run), {"m": model(server)}, offline=True)
        assert len(server.calls) == sent
    assert measured(report)["state"] == "passed"


def test_heuristics_are_measured_for_nothing(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    harsh: Settings = {"kind": "lexical", "thresholds": {"S": 1.0, "A": 1.0, "B": 1.0, "C": 1.0}}
    with pytest.raises(UserError, match=r"m: weak, balanced accuracy 0\.500"):
        step(run, "judge", settings(run), {"m": harsh})


def test_recorded_grades_are_not_asked_of_pairs_that_were_not_recorded(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    report = step(run, "judge", settings(run), {"m": {"kind": "replay", "path": str(known(tmp_path))}})
    assert report.facts["gate"] == {"allow_weak_judges": False, "judges": {}}
    assert report.facts["rated"] == len(PAIRS)


def test_without_controls_there_is_no_gate_but_a_word_if_that_was_allowed(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    plain = step(run, "judge", {"models": ["lexical"]})
    assert plain.facts["gate"] is None
    assert not any("gate" in note or "controls" in note for note in plain.notes)
    report = step(run, "judge", {"models": ["lexical"], "allow_weak_judges": True})
    assert "nothing shows that these judges can judge" in report.notes[0]


def test_what_is_wrong_with_the_controls_is_said(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        step(run, "judge", {"models": ["lexical"], "gate": {"positives": str(tmp_path / "none.tsv")}})
    foreign = grades_file(tmp_path / "foreign.tsv", [("x", "y", "S")])
    with pytest.raises(DataError, match="found no relevant pair among 1 known"):
        step(run, "judge", {"models": ["lexical"], "gate": {"positives": str(foreign)}})
    wrong = grades_file(tmp_path / "wrong.tsv", [(*PAIRS[0], "good")])
    with pytest.raises(DataError, match="line 2: found the grade 'good'"):
        step(run, "judge", {"models": ["lexical"], "gate": {"positives": str(wrong)}})


def test_the_plan_of_a_run_names_the_controls(tmp_path: Path) -> None:
    with vendor(truth) as server:
        gate = {"positives": str(known(tmp_path))}
        run = executed(tmp_path, {"m": model(server)}, ["ingest", "mask", "diversify", "pool"], gate=gate)
        rows = run.look("judge", quote)
        assert server.calls == []
    assert [row.judge for row in rows] == ["m, controls", "m", "in all"]
    assert rows[1].calls == 2 * POOL
    assert rows[0].cascade_least == rows[0].online
    assert isinstance(CostPlan(rows).frame["online"].sum(), float)


def test_report_and_card_name_who_did_not_pass(tmp_path: Path) -> None:
    with vendor(truth) as server, vendor(lenient) as weak:
        judges = {"m": model(server), "n": model(weak, model="m-2")}
        gate = {"positives": str(known(tmp_path))}
        run = executed(tmp_path, judges, NAMES, gate=gate, allow_weak_judges=True)
    page = (run.folder / "report.html").read_text("utf-8")
    assert "有评审未通过资格测试" in page
    assert "<li>n</li>" in page
    assert "<li>m</li>" not in page
    cards = [path.read_text("utf-8") for path in (run.folder / "export").rglob("README.md")]
    assert any("n (did not pass its controls)" in card for card in cards)
    assert not any("m (did not pass" in card for card in cards)


def test_controls_go_by_batches_where_the_pool_does(tmp_path: Path) -> None:
    run = before_judging(tmp_path)
    with vendor(truth, batches=Rules(steps=())) as server:
        report = step(run, "judge", settings(run), {"m": model(server, batch=True)}, yes=True, batch=True)
        assert server.calls == []
        assert max(server.paid_in_batches.values()) == 2  # once as a control or beside one, once in the pool
    assert measured(report)["state"] == "passed"
    assert replicates(run)[0] == len(PAIRS)
