"""`curate check judge` against judges with known habits, who are really asked."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.ask import panel_run
from curate.commands.check.judge import CheckJudgeCommand, check, planned
from curate.commands.check.repeat import load_rubric
from curate.core.errors import BudgetError, ConfigError, DataError, UserError
from curate.ledger import Ledger
from curate.pipeline.stage import Consent
from curate.review import Desk, drawing
from curate.review.desk import Answer
from curate.runs.runner import Run
from tests import vendor as fake
from tests.support import machine
from tests.support.controlled import DOCUMENTS, PAIRS, executed, known, model, truth
from tests.support.pools import grades_file
from tests.support.rows import sql
from tests.support.runs import curate, ran
from tests.vendor import Call, Vendor, vendor

JUDGED = ["ingest", "mask", "diversify", "pool", "judge"]
PROMPTS = len(PAIRS) // 5
AGAIN = CheckJudgeCommand(again=["reversed", "alone", "repeat"], prompts=20)


def by_slot(call: Call) -> fake.Fault:
    """Answer A, B, C, D by the place, whatever was asked."""
    return fake.says(json.dumps({label: "ABCD"[at % 4] for at, label in enumerate(call.passages)}))


@pytest.fixture
def server() -> Iterator[Vendor]:
    with vendor(truth) as running:
        yield running


def replicates(run: Run) -> dict[int, int]:
    with Ledger(run.beside("judge").home / "ledger.db") as ledger:
        return dict(sql(ledger, "SELECT replicate, count(*) FROM ratings GROUP BY replicate"))


def test_without_an_order_nothing_is_sent_and_the_places_are_looked_at(tmp_path: Path, server: Vendor) -> None:
    run = executed(tmp_path, {"m": model(server)}, JUDGED)
    run.consent = Consent()
    found: Any = check(run, CheckJudgeCommand()).to_json()
    assert len(server.calls) == PROMPTS
    assert found["judges"]["m"]["position"]["biased"] is False
    assert found["judges"]["m"]["controls"] is None
    assert found["judges"]["m"]["relevant"]["value"] == 0.4
    assert found["gate"]["failed"] is None  # nobody was measured, which is not "nobody failed"
    assert found["panel"]["kappa"] is None  # one judge agrees with nobody
    assert found["warnings"] == []
    assert json.loads((run.folder / "checks" / "judge.json").read_text("utf-8")) == found
    assert run.states()["judge"][0] == "done"


def test_a_judge_that_answers_by_place_is_flagged_without_and_with_asking_again(tmp_path: Path, server: Vendor) -> None:
    server.faults = by_slot
    run = executed(tmp_path, {"m": model(server)}, JUDGED, allow_weak_judges=True)
    found: Any = check(run, CheckJudgeCommand()).to_json()
    assert found["warnings"] == ["m: its grades depend on the place in the prompt"]
    found = check(run, AGAIN).to_json()
    assert found["warnings"][1] == "m: its grades change with the order of the passages"
    again = found["judges"]["m"]["again"]
    assert again["repeat"]["grade_flips"]["value"] == 0
    assert again["reversed"]["grade_flips"]["value"] == pytest.approx(0.4)  # A B C D A becomes A D C B A
    assert again["alone"]["shift"]["low"] > 0.5  # alone everything is an A


def test_a_faithful_judge_is_asked_in_other_ways_and_says_the_same(tmp_path: Path, server: Vendor) -> None:
    run = executed(tmp_path, {"m": model(server)}, JUDGED)
    first = {(call.query, tuple(call.passages.values())) for call in server.calls}
    ratings = (run.folder / "judge" / "ratings.parquet").read_bytes()
    found: Any = check(run, AGAIN).to_json()
    asked = [(call.query, tuple(call.passages.values())) for call in server.calls[PROMPTS:]]
    back, alone, same = asked[:20], asked[20:40], asked[40:]
    assert {(query, texts[::-1]) for query, texts in back} <= first
    assert set(same) == {(query, texts[::-1]) for query, texts in back}
    assert {len(texts) for _, texts in alone} == {1}
    assert found["warnings"] == []
    for kind, pairs in (("reversed", 100), ("alone", 20), ("repeat", 100)):
        again = found["judges"]["m"]["again"][kind]
        assert (again["pairs"], again["lost"], again["cut_flips"]["value"]) == (pairs, 0, 0)
    assert replicates(run) == {0: len(PAIRS), 2: 100, 3: 20, 4: 100}
    assert check(run, AGAIN).to_json() == found  # the ledger holds it all
    assert len(server.calls) == PROMPTS + 60
    assert (run.folder / "judge" / "ratings.parquet").read_bytes() == ratings
    run.execute(["judge"], force=True)
    assert (run.folder / "judge" / "ratings.parquet").read_bytes() == ratings


def test_a_check_quotes_its_cost_and_needs_consent(tmp_path: Path, server: Vendor) -> None:
    run = executed(tmp_path, {"m": model(server)}, JUDGED)
    order = CheckJudgeCommand(controls=True, positives=known(tmp_path), again=["reversed", "alone"], prompts=10)
    rows = planned(run, order)
    assert [row.judge for row in rows] == ["m, controls", "m, reversed", "m, alone", "in all"]
    assert [row.calls for row in rows[1:3]] == [10, 10]
    run.consent = Consent()
    with pytest.raises(BudgetError, match=r"(?s)m, controls: .*m, reversed: 10 calls.*--max-cost"):
        check(run, order)
    run.consent = Consent(offline=True)
    with pytest.raises(UserError, match="--offline sends none"):
        check(run, order)
    assert len(server.calls) == PROMPTS
    run.consent = Consent(max_cost=rows[-1].online)
    check(run, order)
    assert planned(run, order) == []


def test_another_rubric_shows_how_far_grades_hang_on_wording(tmp_path: Path, server: Vendor) -> None:
    other = load_rubric("rubric-zh-paraphrase")
    run = executed(tmp_path, {"m": model(server)}, JUDGED)

    def stricter(call: Call) -> fake.Fault | None:
        return fake.faults.reworded(lambda text: text.replace("A", "B")) if asked(call) else None

    def asked(call: Call) -> bool:
        return bool(call.body["messages"][0]["content"] == other.prefix)

    server.faults = stricter
    found: Any = check(run, CheckJudgeCommand(rubric=("rubric-zh-paraphrase",), prompts=PROMPTS)).to_json()
    assert sum(asked(call) for call in server.calls) == PROMPTS
    again = found["judges"]["m"]["again"]["rubric rubric-zh-paraphrase"]
    assert again["pairs"] == len(PAIRS)
    assert again["cut_flips"]["value"] == pytest.approx(0.2)
    assert again["cut_shift"]["value"] == pytest.approx(-0.2)
    assert again["shift"]["high"] < 0


def test_rubrics_and_kinds_that_do_not_exist_are_named(tmp_path: Path, server: Vendor) -> None:
    run = executed(tmp_path, {"m": model(server)}, JUDGED)
    with pytest.raises(ConfigError, match="no prompt named 'nothing'"):
        check(run, CheckJudgeCommand(rubric=("nothing",)))
    with pytest.raises(ConfigError, match="--again 'twice': expected reversed, alone, repeat"):
        check(run, CheckJudgeCommand(again=["twice"]))


def test_a_judge_that_has_not_rated_cannot_be_asked_again_but_answers_controls(tmp_path: Path, server: Vendor) -> None:
    run = executed(tmp_path, {"m": model(server)}, JUDGED[:-1])
    with pytest.raises(UserError, match=r"judges\.m: no prompt was rated in whole yet"):
        check(run, CheckJudgeCommand(again=["reversed"]))
    found: Any = check(run, CheckJudgeCommand(controls=True, positives=known(tmp_path))).to_json()
    assert found["judges"]["m"]["controls"]["state"] == "passed"
    assert found["judges"]["m"]["position"]["slope"] is None
    assert found["judges"]["m"]["position"]["biased"] is None  # not measured, which is not "no"
    assert set(replicates(run)) == {1}


def test_controls_are_asked_for_only_with_positives_of_this_run(tmp_path: Path, server: Vendor) -> None:
    run = executed(tmp_path, {"m": model(server)}, JUDGED)
    with pytest.raises(DataError, match="found no relevant pair among 0 known"):
        check(run, CheckJudgeCommand(controls=True))
    bad = grades_file(tmp_path / "bad.tsv", [(*pair, "D") for pair in PAIRS if pair[1][-1] == "9"])
    found: Any = check(run, CheckJudgeCommand(positives=bad)).to_json()  # nothing is asked, so nothing is wrong
    assert found["judges"]["m"]["controls"] is None
    assert found["judges"]["m"]["against_people"]["specificity"]["value"] == 1
    assert found["judges"]["m"]["against_people"]["sensitivity"] is None
    assert found["judges"]["m"]["prevalence"] is None
    twice = grades_file(tmp_path / "twice.tsv", [(*PAIRS[0], "S"), (*PAIRS[1], "S"), (*PAIRS[0], "D")])
    with pytest.raises(DataError, match=r"twice\.tsv, line 4: found a pair for the second time.*leave one out"):
        check(run, CheckJudgeCommand(positives=twice))
    assert len(server.calls) == PROMPTS


def test_people_say_how_strict_a_judge_is_and_how_many_judges_a_panel_is_worth(tmp_path: Path, server: Vendor) -> None:
    """Two judges find every B relevant, and a third what the assessor does, who reads a sample of the pairs."""

    def habits(call: Call) -> fake.Fault | None:
        return fake.faults.reworded(lambda text: text.replace("B", "A")) if call.model != "strict" else None

    server.faults = habits
    judges = {name: model(server, model=name) for name in ("gpt-1", "gpt-2", "strict")}
    run = executed(tmp_path, judges, [*JUDGED, "consensus"])
    sample = drawing.draw(run.folder, drawing.SampleOptions(name="s", size=120, controls=4, assessors=["li"]))
    right = [
        Answer(row_id, DOCUMENTS[ids[1]][-1])
        for row_id, ids, expected in sample.survey.select("row_id", "ids", "expected").iter_rows()
        if expected is None
    ]
    Desk(sample).record("li", right)
    sent = len(server.calls)
    found: Any = check(run, CheckJudgeCommand(controls=True)).to_json()
    assert len(server.calls) > sent
    assert found["people"] == 120
    loose, strict = found["judges"]["gpt-1"], found["judges"]["strict"]
    assert (strict["against_people"]["sensitivity"]["value"], strict["against_people"]["specificity"]["value"]) == (
        1,
        1,
    )
    assert loose["against_people"]["steps"]["low"] > 0
    assert loose["against_people"]["precision"]["A"]["value"] == pytest.approx(0.5, abs=0.1)
    assert loose["against_people"]["confusion"][1][2] > 0
    assert loose["relevant"]["value"] == 0.6
    assert loose["prevalence"]["source"] == "people"
    assert loose["prevalence"]["low"] <= 0.4 <= loose["prevalence"]["high"]
    assert loose["strictness"]["value"] > 0 > strict["strictness"]["value"]
    assert strict["controls"]["value"] == 1
    assert loose["controls"]["rejected"]["value"] < 1
    assert found["panel"]["effective"] is None  # the strict one never errs
    assert found["panel"]["not_measured"] == "errors"
    assert found["warnings"][-1].startswith("effective number of judges: not measured (on what people and all")
    assert found["panel"]["clones"] == [["gpt-1", "gpt-2"]]
    assert any(
        each.startswith("near-identical judges: gpt-1 and gpt-2: one family (gpt), errors")
        for each in found["warnings"]
    )


def test_the_command(tmp_path: Path, server: Vendor) -> None:
    server.script = lambda _query, passage: "D" if "第9条" in passage else "A"
    run = executed(tmp_path, {"m": model(server), "lexical": {"kind": "lexical"}}, JUDGED)
    home = {"CURATE_HOME": str(run.beside("judge").home)}
    words = ("check", "judge", "--run", str(run.folder), "--controls", "--positives", str(known(tmp_path)))
    plan = ran(tmp_path, *words, "--plan", **home)
    assert plan.stdout.splitlines()[1].startswith("m, controls")
    assert machine.data(curate(tmp_path, *words, "--plan", "--json", **home).stdout)[0]["judge"] == "m, controls"
    refused = curate(tmp_path, *words, **home)
    assert (refused.returncode, "--max-cost" in refused.stderr) == (2, True)
    done = curate(tmp_path, *words, "--max-cost", "10", **home)
    assert done.returncode == 1
    sums = re.findall(r"this command paid (\S+ [A-Z]{3}) for (\d+) calls", done.stderr + done.stdout)
    assert [int(calls) for _, calls in sums] == [len(server.calls) - PROMPTS]
    status = ran(tmp_path, "status", "--run", str(run.folder), **home).stdout
    assert f"further paid, for checks of judges and answers no longer used: {sums[0][0]}" in status
    rows = machine.data(curate(tmp_path, "status", "--run", str(run.folder), "--json", **home).stdout)
    assert list(rows[-1]["further"]) == [sums[0][0].split()[1]]
    assert (
        "judges did not pass the gate: m, lexical; take other judges, or go on with --allow-weak-judges" in done.stderr
    )
    assert "under 50 queries: these intervals are too narrow" in done.stdout
    assert "m did not pass the gate: weak" in done.stdout
    assert "lexical is a heuristic: its figures are no evidence about relevance" in done.stdout
    allowed = ran(tmp_path, *words, "--allow-weak-judges", "--offline", "--json", **home)
    figures: dict[str, Any] = machine.data(allowed.stdout)
    assert figures["judges"]["m"]["controls"]["state"] == "weak"
    assert figures["panel"]["effective"] is not None
    settings = run.folder / "pipeline.yaml"
    settings.write_text(
        settings.read_text("utf-8").replace("  batch: 5", "  allow_weak_judges: true\n  batch: 5"), "utf-8"
    )
    assert "allow_weak_judges: true" in settings.read_text("utf-8")
    ran(tmp_path, *words, "--offline", **home)


def test_after_a_cascade_kappa_is_that_of_the_sample(
    tmp_path: Path, server: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cascade spares the second judge what the first rejects; on what is left they seem to disagree."""
    monkeypatch.setattr(panel_run, "LEAST", 60)  # a pool large enough for the usual one would take minutes
    server.faults = lambda call: fake.faults.reworded(lambda t: t.replace("B", "A")) if call.model == "b" else None
    judges = {name: model(server, model=name) for name in ("a", "b")}
    run = executed(tmp_path, judges, [*JUDGED, "consensus"], cascade="positives", cascade_sample=0.3)
    found: Any
    found, home = check(run, CheckJudgeCommand()).to_json(), {"CURATE_HOME": str(run.beside("judge").home)}
    agreed = json.loads((run.folder / "consensus" / "agreement.json").read_text("utf-8"))
    sample = len(pl.read_parquet(run.folder / "judge" / "samples.parquet"))
    assert 0 < sample < len(PAIRS)
    assert found["panel"]["kappa"] == agreed["all_grades"]["fleiss"]
    assert found["panel"]["kappa_cut"] == agreed["cut"]["fleiss"]
    said = curate(tmp_path, "agree", "--run", str(run.folder), **home).stdout
    assert f"after a cascade agreement is measured on the {sample} pairs" in said


def test_real_assessors_show_no_position_effect(shared_data: Path, tmp_path: Path) -> None:
    """Three runs of one language model family on 600 real pairs, each in an order of its own, replayed."""
    panel = shared_data / "panel"
    pairs = (
        pl.read_csv(panel / "ratings.tsv", separator="\t")
        .select("query_id", "doc_id")
        .unique()
        .sort("query_id", "doc_id")
    )
    (tmp_path / "rated.trec").write_text("".join(f"{q} Q0 {d} 1 1 r\n" for q, d in pairs.iter_rows()), "utf-8")
    names = {"first": "assessor-1", "second": "assessor-2", "third": "assessor-3"}
    assign = [
        f"--set=judges.{name}={{kind: replay, path: {panel / 'ratings.tsv'}, assessor: {who}, family: one}}"
        for name, who in names.items()
    ]
    done = ran(
        tmp_path, "run", "replay", f"--set=ingest.source={panel}", "--set=judge.models=[first, second, third]", *assign
    )
    done = ran(tmp_path, "check", "judge", "--json")
    found = machine.data(done.stdout)
    slopes = {name: found["judges"][name]["position"] for name in names}
    assert [round(each["slope"]["value"], 4) for each in slopes.values()] == [0.0074, -0.0094, -0.0098]
    assert not any(each["biased"] for each in slopes.values())
    assert (round(found["panel"]["kappa"], 3), round(found["panel"]["kappa_cut"], 3)) == (0.828, 0.886)
    assert [round(found["judges"][name]["strictness"]["value"], 3) for name in names] == [-0.024, 0.048, -0.024]
    assert (found["panel"]["clones"], found["panel"]["families"]) == ([], {"one": list(names)})
    assert "judges of one family (one): first, second, third" in found["warnings"]
    assert found["panel"]["effective"] is None  # no assessor graded them
    for words, said in ((("--again", "reversed"), "no language model to ask"), (("--controls",), "no relevant pair")):
        refused = curate(tmp_path, "check", "judge", *words)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    known = grades_file(tmp_path / "k.tsv", [(*pair, "S") for pair in pairs.iter_rows()])
    refused = curate(tmp_path, "check", "judge", "--controls", "--positives", str(known))
    assert (refused.returncode, "all judges replay grades" in refused.stderr) == (2, True), refused.stderr
