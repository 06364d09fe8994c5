"""A pilot in front of real calls: what it asks is never paid twice, and what is wrong is said before anything is."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from curate.commands.check.judge import CheckJudgeCommand, check
from curate.commands.pilot.pilot_figures import PeopleKappa
from curate.commands.pilot.report import PilotReportCommand, changes, compare, planned
from curate.core.config import override
from curate.core.errors import BudgetError, ConfigError, NotFound, RunFailed, UserError
from curate.panel.voting import loaded
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Consent
from curate.review import relevance_desks
from curate.review.desk import settled
from curate.runs.runner import Run
from tests.support.controlled import PAIRS, QUERIES, executed, model, truth
from tests.support.defined import defined
from tests.support.piloted import drawn, read, true
from tests.support.pools import grades_file
from tests.vendor import Vendor, vendor

BEFORE = ["ingest", "mask", "diversify", "pool"]
NAMES = ("good", "strict", "random")


def strict(query: str, passage: str) -> str:
    return {"A": "B"}.get(grade := truth(query, passage), grade)


def by_length(_query: str, passage: str) -> str:
    return "SABCD"[sum(map(ord, passage)) % 5]


@dataclass(frozen=True)
class Bench:
    """A run before its judges, who are three vendors."""

    run: Run
    servers: dict[str, Vendor]

    @property
    def folder(self) -> Path:
        return self.run.folder / "reviews" / "pilot"

    def asked(self) -> dict[str, Counter[tuple[str, str]]]:
        """Return judge -> how often each query and passage was sent to it."""
        return {
            name: Counter((call.query, text) for call in server.calls for text in call.passages.values())
            for name, server in self.servers.items()
        }


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as stack:
        scripts = zip(NAMES, (truth, strict, by_length), strict=True)
        servers = {name: stack.enter_context(vendor(script)) for name, script in scripts}
        judges = {name: model(server, model=name) for name, server in servers.items()}
        yield Bench(executed(tmp_path, judges, BEFORE), servers)


def command(**options: Any) -> PilotReportCommand:
    return PilotReportCommand(models=NAMES, **options)


def test_pairs_are_drawn_over_all_queries_and_fifty_are_read_twice(bench: Bench) -> None:
    rows = drawn(bench.run).survey
    per_query = Counter(ids[0] for ids in rows["ids"])
    assert (len(rows), set(per_query), set(per_query.values())) == (120, set(QUERIES), {4, 5})
    assert Counter(map(len, rows["assessors"])) == {1: 70, 2: 50}
    assert set(rows["probability"]) == {120 / len(PAIRS)}
    assert rows["verdict"].null_count() == 120
    assert Counter(PAIRS.index(tuple(ids)) % 10 for ids in rows["ids"]).total() == 120
    with pytest.raises(UserError, match="holds a sample already"):
        drawn(bench.run)


def test_what_the_pilot_asked_is_not_paid_again(bench: Bench) -> None:
    drawn(bench.run)
    read(bench.folder, most=110)
    found = compare(bench.run, command())
    first = bench.asked()
    assert {name: (len(each), set(each.values())) for name, each in first.items()} == dict.fromkeys(NAMES, (110, {1}))
    assert (found.answered, found.judges) == (110, dict.fromkeys(NAMES, 110))
    assert compare(bench.run, command()) == found
    assert bench.asked() == first, "the ledger holds it all"
    assert (
        json.loads((bench.run.folder / "checks" / "pilot.json").read_text("utf-8")) | {"written": None}
        == found.to_json()
    )
    bench.run.execute(["judge"])
    every = bench.asked()
    assert {name: (len(each), set(each.values())) for name, each in every.items()} == dict.fromkeys(
        NAMES, (len(PAIRS), {1})
    )


def test_a_good_judge_is_in_what_is_proposed_and_one_alone_only_by_choice(bench: Bench) -> None:
    drawn(bench.run)
    read(bench.folder)
    found = compare(bench.run, command())
    assert found.people == PeopleKappa(50, 1.0, 1.0, 1.0)
    assert len(found.rules) == 3 * 4 + 2 * 3 + 3
    assert found.rules[0].rule == "good ≥ A"
    assert found.default is not None
    assert found.default.rule == "2 of good + strict + random"
    taken = found.proposal
    assert taken is not None
    assert (taken.rule, taken.calls, taken.kappa) == ("1 of good + strict", 2, 1.0)
    price = {row.rule: row.price or 0.0 for row in found.rules}
    assert taken.price == pytest.approx(price["good ≥ A"] + price["strict ≥ A"])
    assert found.currency == "USD"
    policy = {"positive": {"at_least": 1, "of": 2}, "negative": {"at_least": 2}}
    assert changes(found, bench.run) == {
        ("judge", "models"): ["good", "strict"],
        ("consensus", "policy"): policy,
    }
    assert loaded(policy).bound(["good", "strict"])  # type: ignore[union-attr]  # a rule that the panel can have
    alone = compare(bench.run, command(single=True))
    assert alone.settings["judge.models"] == ["good"]


def test_a_pilot_is_no_review_of_labels_but_its_pairs_may_be_controls(bench: Bench) -> None:
    drawn(bench.run)
    read(bench.folder)
    assert relevance_desks(bench.run.folder) == []
    assert settled(bench.run.folder).is_empty(), "the panel is chosen on it, so nothing is estimated from it"
    found = check(bench.run, CheckJudgeCommand(controls=True))
    assert found.people == 0
    controls = defined(found.judges["good"].controls)
    assert defined(controls.positives).answered > 20


def test_it_is_planned_and_needs_consent(bench: Bench) -> None:
    drawn(bench.run)
    read(bench.folder)
    rows = planned(bench.run, command())
    assert [row.judge for row in rows] == [*(f"{name}, pilot" for name in NAMES), "in all"]
    bench.run.consent = Consent()
    with pytest.raises(BudgetError, match=r"(?s)good, pilot: .*--max-cost"):
        compare(bench.run, command())
    bench.run.consent = Consent(offline=True)
    with pytest.raises(UserError, match="--offline sends none"):
        compare(bench.run, command())
    assert not any(server.calls for server in bench.servers.values())
    bench.run.consent = Consent(max_cost=rows[-1].online)
    compare(bench.run, command())
    assert planned(bench.run, command()) == []


def test_a_pilot_that_was_cut_short_goes_on(bench: Bench) -> None:
    drawn(bench.run)
    read(bench.folder)
    part = (planned(bench.run, command())[-1].online or 0.0) / 3
    bench.run.consent = Consent(max_cost=part)
    with pytest.raises(BudgetError):
        compare(bench.run, command())
    assert any(bench.asked().values())
    bench.run.consent = Consent(yes=True)
    compare(bench.run, command())
    assert {each.total() for each in bench.asked().values()} == {120}


def one_sided(_row: int, _doc: str) -> str:
    return "D"


def test_too_few_answers_or_one_class_are_said_before_anything_is_sent(bench: Bench) -> None:
    with pytest.raises(NotFound, match="no such pilot; draw one with `curate pilot export"):
        compare(bench.run, command())
    drawn(bench.run)
    read(bench.folder, most=99)
    with pytest.raises(UserError, match="found answers to 99 of 120 pairs, expected 100 or more; read on"):
        compare(bench.run, command())
    read(bench.folder, one_sided)
    with pytest.raises(UserError, match="found 120 answers, and all of them are not relevant"):
        compare(bench.run, command())
    assert not any(server.calls for server in bench.servers.values())


def test_a_judge_without_grades_is_left_out_and_named(bench: Bench, tmp_path: Path) -> None:
    path = grades_file(tmp_path / "few.tsv", [(*pair, "A") for pair in PAIRS[:9]])
    few = override(bench.run.pipeline.settings, [f"judges.random={{kind: replay, path: {path}}}"])
    bench = replace(bench, run=Run(bench.run.folder, Pipeline.check(few, "t.yaml"), consent=Consent(yes=True)))
    drawn(bench.run)
    read(bench.folder, lambda row, doc: true(row, doc) if row % 7 else "D")
    found = compare(bench.run, command())
    assert re.match(r"random graded \d of 120 pairs, so it is in no rule", found.warnings[0])
    assert {name for row in found.rules for name in row.judges} == {"good", "strict"}
    assert found.default is not None
    assert found.default.rule == "2 of good + strict"


def nonsense(_query: str, _passage: str) -> str:
    return "?"


def test_a_judge_that_nobody_can_read_is_left_out_and_the_others_are_compared(tmp_path: Path) -> None:
    with ExitStack() as stack:
        scripts = zip(NAMES, (truth, strict, nonsense), strict=True)
        servers = {name: stack.enter_context(vendor(script)) for name, script in scripts}
        judges = {name: model(server, model=name) for name, server in servers.items()}
        bench = Bench(executed(tmp_path, judges, BEFORE), servers)
        drawn(bench.run)
        read(bench.folder, lambda row, doc: true(row, doc) if row % 7 else "D")
        found = compare(bench.run, command())
        assert list(found.unreadable) == ["random"]
        assert "answers in a row gave nothing that can be read" in found.warnings[0]
        assert found.warnings[0].startswith("random is in no rule: ")
        assert found.judges["good"] == found.judges["strict"] == 120
        assert {name for row in found.rules for name in row.judges} == {"good", "strict"}
        assert "random" not in str(changes(found, bench.run)[("judge", "models")])
        paid = bench.asked()
        assert set(paid["good"].values()) == set(paid["strict"].values()) == {1}
        with pytest.raises(RunFailed, match="random, pilot: 10 answers in a row"):
            compare(bench.run, PilotReportCommand(models=("good", "random")))


def test_a_proposal_that_may_agree_by_chance_is_warned_of(bench: Bench) -> None:
    drawn(bench.run)
    read(bench.folder, lambda row, _doc: "S" if row % 2 else "D")
    chance = [each for each in compare(bench.run, command()).warnings if "than by chance" in each]
    assert len(chance) == 1
    read(bench.folder)
    assert not [each for each in compare(bench.run, command()).warnings if "than by chance" in each]


def test_answers_to_texts_that_changed_are_left_out(bench: Bench, tmp_path: Path) -> None:
    drawn(bench.run)
    read(bench.folder)
    corpus = tmp_path / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text("utf-8").replace("第0条", "第零条"), encoding="utf-8")
    again = Run(bench.run.folder, bench.run.pipeline, consent=Consent(yes=True))
    again.execute(BEFORE)
    found = compare(again, command())
    assert found.warnings[0] == (
        f"{120 - found.answered} answers are of pairs or texts that the run no longer has, and are left out"
    )
    assert 100 < found.answered < 120


def test_grades_of_another_scale_than_the_judges_are_refused(bench: Bench) -> None:
    drawn(bench.run)
    read(bench.folder)
    changed = override(bench.run.pipeline.settings, ["judge.rubric=rubric-zh-trec"])
    with pytest.raises(UserError, match=r"people graded S A \| B C D, but the judges' rubric .* has 3 2 \| 1 0"):
        compare(Run(bench.run.folder, Pipeline.check(changed, "t.yaml")), command())


@pytest.mark.parametrize("names", [("good",), ("good", "good"), tuple("abcdefghi")])
def test_candidates_are_two_to_eight_different_judges(bench: Bench, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"--models: found .*, expected two to 8 different judges"):
        compare(bench.run, PilotReportCommand(models=names))
