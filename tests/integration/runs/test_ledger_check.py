"""Figures and checks of a ledger, and the commands: what is wrong is found, and nothing else."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from curate.cli.app import app
from curate.core.config import digest, read_yaml
from curate.ledger import Call, Ledger, Rating
from curate.ledger.stats import stats
from curate.llm.prompts import rubric
from curate.runs.ledger_check import check
from tests import ROOT
from tests import vendor as fake
from tests.support import asking, machine
from tests.support.asking import FAST, judged, llm, script, work
from tests.support.rows import CALL, RATING, sql
from tests.vendor import vendor

IDENTITY = {"model": {"model": "m"}}
JUDGE = digest(IDENTITY)
CALLED = replace(CALL, judge_digest=JUDGE, rubric_digest="rubric", query_digest="q", slots='["p0","p1"]')
RATINGS = [Rating("q", f"p{slot}", JUDGE, "rubric", 0, "A", "rated", slot, 2) for slot in range(2)]


@pytest.fixture
def good(ledger: Ledger) -> Ledger:
    """Return a ledger in which nothing is wrong: a model with calls of every kind, and a heuristic."""
    ledger.register(IDENTITY)
    free = ledger.register({"heuristic": "lexical"})
    failed = [replace(rating, grade=None, status="failed") for rating in RATINGS]
    ledger.append(failed, replace(CALLED, finish="error", model="", created="2026-11-20T00:00:00+00:00"))
    known = replace(CALLED, prompt_tokens=100, cached_tokens=40, written_tokens=0, output_tokens=7, reasoning_tokens=0)
    ledger.append(RATINGS, replace(known, cost=0.25))
    ledger.append([RATINGS[1]], replace(known, cost=0.5, created="2026-11-22T00:00:00+00:00"))
    ledger.append([Rating("q", "p", free, "", 0, None, "refused", 0, 1)])
    return ledger


def test_a_good_ledger_has_no_findings(good: Ledger) -> None:
    assert check(good) == []


WRONG: list[tuple[str, Rating, Call | None]] = [
    ("ratings of an unknown judge", replace(RATINGS[0], judge_digest="x", rubric_digest=""), None),
    ("ratings under a rubric without a call", RATINGS[0], None),
    ("ratings of another judge, rubric, replicate or query", replace(RATINGS[0], replicate=1), CALLED),
    ("ratings of another judge, rubric, replicate or query", replace(RATINGS[0], query_digest="x"), CALLED),
    ("ratings that are grades though their call got no reply", RATINGS[0], replace(CALLED, finish="error")),
    ("passage, slot or batch size", replace(RATINGS[0], slot=1), CALLED),
    ("passage, slot or batch size", replace(RATINGS[0], slot=2), CALLED),
    ("passage, slot or batch size", replace(RATINGS[0], slot=-1), CALLED),
    ("passage, slot or batch size", replace(RATINGS[0], batch_size=3), CALLED),
    ("passage, slot or batch size", RATINGS[0], replace(CALLED, slots="no JSON")),
    ("passage, slot or batch size", RATINGS[0], replace(CALLED, slots="7")),
]


@pytest.mark.parametrize(("said", "rating", "call"), WRONG)
def test_what_contradicts_itself_is_found(good: Ledger, said: str, rating: Rating, call: Call | None) -> None:
    good.append([rating], call)
    [finding] = check(good)
    assert said in str(finding)
    assert finding.rows == 1
    assert sql(good, f"SELECT count(*) FROM ratings WHERE rating_id = '{finding.example}'") == [(1,)]


def test_calls_and_identities_of_unknown_judges_are_found(good: Ledger) -> None:
    good.append([], replace(CALLED, judge_digest="x"))
    good.merge("judges", [("y", "{}"), ("z", "no JSON")])
    assert [(finding.what, finding.rows) for finding in check(good)] == [
        ("judges that are not what their digest says", 2),
        ("calls of an unknown judge", 1),
    ]


def test_a_call_that_is_gone_is_found(good: Ledger) -> None:
    sql(good, "DELETE FROM calls WHERE cost = 0.25")
    assert [(finding.what, finding.rows) for finding in check(good)] == [("ratings of a call that is not there", 2)]


def test_grades_that_were_let_in_are_found(good: Ledger) -> None:
    if good.database.path is None:
        sql(good, "ALTER TABLE ratings DROP CONSTRAINT grade_means_rated")
        sql(good, "UPDATE ratings SET grade = 'E' WHERE status = 'rated' AND slot = 0")
    else:
        with good.database.transaction() as connection:
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
            connection.exec_driver_sql("UPDATE ratings SET grade = 'E' WHERE status = 'rated' AND slot = 0")
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = OFF")
    found = {finding.what: finding.rows for finding in check(good)}
    assert found.pop("ratings whose grade is not of their status or scale") == 1
    assert set(found) <= {"places where the file is damaged"}  # SQLite's own check may see it too


@pytest.fixture
def paid(ledger: Ledger) -> Ledger:
    """Return a ledger with replies of every form, of two vendors, as the engine wrote them down."""
    faults = [None, fake.missing("P2"), fake.refusal, fake.cut(12), fake.null_content, fake.says("no JSON")]
    faults += [fake.error(400, "content_filter", "filtered"), fake.repeated("P1", "D"), fake.extra("P9")]
    for kind in ("openai", "anthropic"):
        with vendor(script, faults) as server:
            more: dict[str, Any] = {"kind": kind, "json_mode": "none"} if kind == "anthropic" else {}
            ledger.register(llm(server, **more)[0].identity)
            judged(server, ledger, work("SABCDSABCD"), replace(FAST, mixed_models=True), batch=3, **more)
    return ledger


def test_replies_of_every_form_give_their_ratings_again(paid: Ledger) -> None:
    forms = {form for (form,) in sql(paid, "SELECT form FROM calls")}
    assert {"whole", "partial", "refused", "foreign", "unreadable"} <= forms
    assert check(paid) == []


REREAD = "ratings that are not what the reply of their call says"
LACKING = "ratings that the reply of a call says, and that are not there"
ONE = "(SELECT max(rating_id) FROM ratings WHERE grade = 'S')"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (f"UPDATE ratings SET grade = 'D' WHERE rating_id = {ONE}", [(REREAD, 1)]),
        (f"UPDATE ratings SET grade = NULL, status = 'refused' WHERE rating_id = {ONE}", [(REREAD, 1)]),
        (f"DELETE FROM ratings WHERE rating_id = {ONE}", [(LACKING, 1)]),
        ("DELETE FROM ratings WHERE grade = 'S'", [(LACKING, 4)]),
        (
            "UPDATE calls SET raw = '{}' WHERE call_id = (SELECT max(call_id) FROM calls WHERE form = 'whole')",
            [("calls whose reply is in no form that its provider knows", 1)],
        ),
    ],
)
def test_ratings_that_are_not_their_replys_are_found(paid: Ledger, statement: str, expected: list[object]) -> None:
    sql(paid, statement)
    assert [(finding.what, finding.rows) for finding in check(paid)] == expected


def test_what_an_older_version_could_not_read_is_no_contradiction(ledger: Ledger) -> None:
    """A pair that was booked as unparsed stays so; one that was rated must still agree with its reply."""

    def prose(call: fake.Call) -> fake.Fault:
        return fake.says(f"So: {json.dumps(dict.fromkeys(call.passages, 'S'))} it is.")

    with vendor(script, prose) as server:
        ledger.register(llm(server)[0].identity)
        judged(server, ledger, work("SA"), batch=1)
        judged(server, ledger, work("BC", name="另"), batch=2)
    sql(ledger, "UPDATE calls SET form = 'unreadable'")
    sql(ledger, "DELETE FROM ratings WHERE batch_size = 2")
    sql(
        ledger,
        "UPDATE ratings SET grade = NULL, status = 'unparsed' WHERE rating_id = (SELECT max(rating_id) FROM ratings)",
    )
    assert check(ledger) == []
    sql(ledger, "UPDATE ratings SET grade = 'D' WHERE status = 'rated'")
    assert [(finding.what, finding.rows) for finding in check(ledger)] == [(REREAD, 1)]


def test_replies_are_read_again_by_the_scale_of_their_rubric(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rubric takes of the same replies what is on its scale."""
    trec = rubric(read_yaml(ROOT / "prompts" / "rubric-zh-trec.yaml"), "rubric-zh-trec")
    with vendor(script) as server:
        for asked, grades in ((asking.RUBRIC, "SABC"), (trec, "3210")):
            monkeypatch.setattr(asking, "RUBRIC", asked)
            ledger.register(llm(server)[0].identity)
            ledger.note_scale(asked.digest, asked.scale)
            judged(server, ledger, work("3S2A1B0C"))
            assert set(asking.standing(server, ledger)["grade"].drop_nulls()) == set(grades)
    assert check(ledger) == []
    sql(ledger, "UPDATE ratings SET grade = '0' WHERE grade = '3'")
    assert [(finding.what, finding.rows) for finding in check(ledger)] == [(REREAD, 1)]


def test_a_grade_that_nobody_gave_is_found(paid: Ledger) -> None:
    columns = "judge_digest, rubric_digest, replicate, query_digest, call_id, slots"
    found = sql(paid, f"SELECT {columns} FROM calls WHERE form = 'refused'")
    judge, rubric, replicate, query, call, slots = found[0]
    shown = json.loads(slots)
    values = (
        f"'x', '{query}', '{shown[0]}', '{judge}', '{rubric}', {replicate}, 'S', 'rated', 0, {len(shown)}, '{call}'"
    )
    sql(paid, f"INSERT INTO ratings VALUES ({values})")
    assert [(finding.what, finding.example) for finding in check(paid)] == [(REREAD, "x")]


def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        for number in range(200):
            ledger.append([], replace(CALLED, judge_digest=ledger.register(IDENTITY), raw=f"{number}" * 100))
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes(whole[:half] + b"\xff" * 64 + whole[half + 64 :])
    result = CliRunner().invoke(app, ["ledger", "check"], env={"CURATE_LEDGER": str(path)})
    assert result.exit_code == 1
    assert "damaged" in f"{result.output} {result.exception}"


def test_the_figures_of_every_judge_and_rubric(good: Ledger) -> None:
    model, heuristic = sorted(stats(good), key=lambda row: -row.calls)
    assert model.to_json() == {
        "judge": JUDGE,
        "rubric": "rubric",
        "scale": "S A | B C D",
        "identity": '{"model":{"model":"m"}}',
        "calls": 3,
        "failed_calls": 1,
        "rated": 3,
        "refused": 0,
        "unparsed": 0,
        "failed": 2,
        "lost_calls": 0,
        "first": "2026-11-20T00:00:00+00:00",
        "last": "2026-11-22T00:00:00+00:00",
        "prompt_tokens": 200,
        "cached_tokens": 80,
        "written_tokens": 0,
        "output_tokens": 14,
        "reasoning_tokens": 0,
        "cost": 0.75,
        "costs": {"": 0.75},
        "models": ["m-1"],
    }
    assert (heuristic.calls, heuristic.refused, heuristic.cost, heuristic.models) == (0, 1, None, ())


def test_a_reply_that_does_not_know_its_tokens_makes_the_sum_unknown(good: Ledger) -> None:
    good.append([], CALLED)
    [row] = [row for row in stats(good) if row.judge == JUDGE]
    assert (row.calls, row.prompt_tokens, row.cost) == (4, None, None)


def run(place: Path | str, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["ledger", *words], env={"CURATE_LEDGER": str(place)})
    return result.exit_code, f"{result.output}{result.exception or ''}"


def test_the_commands(good: Ledger, place: Path | str, tmp_path: Path) -> None:
    code, said = run(place, "stats")
    assert code == 0
    assert "calls: 3, without a reply 1" in said
    assert "cost: 0.7500" in said
    assert machine.data(run(place, "stats", "--json")[1]) == [row.to_json() for row in stats(good)]
    assert run(place, "check") == (0, "nothing is wrong\n")
    assert run(place, "export", str(tmp_path / "copy"))[1].splitlines()[-1] == "ratings: 6 written"
    copy = tmp_path / "copy.db"
    assert run(copy, "import", str(tmp_path / "copy"))[1].splitlines()[-1] == "ratings: 6 new"
    assert machine.data(run(copy, "import", str(tmp_path / "copy"), "--json")[1])["ratings"] == 0
    assert machine.data(run(copy, "export", str(tmp_path / "other"), "--json")[1])["ratings"] == 6
    assert machine.data(run(place, "check", "--json")[1]) == []
    good.append([RATING])
    code, said = run(place, "check")
    assert code == 1
    assert "ratings of an unknown judge: 1, such as" in said
    assert "2 kinds of mistakes in the ledger" in said
    code, said = run(place, "check", "--json")
    found = json.JSONDecoder().raw_decode(said)[0]
    assert (code, len(found["data"]), found["error"]["code"]) == (1, 2, "CHECK_FAILED")


def test_a_ledger_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    for command in (["stats"], ["check"], ["export", str(tmp_path / "out")]):
        code, said = run(tmp_path / "none.db", *command)
        assert code == 1
        assert "no ledger yet" in said
    assert list(tmp_path.iterdir()) == []
