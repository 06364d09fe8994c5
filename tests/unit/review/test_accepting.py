"""A review for a threshold on the sum of grades: its plan, its draw, and what its answers prove or cannot prove."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.review import contested
from curate.core.config import Settings
from curate.core.errors import ConfigError, DataError
from curate.core.scale import FIVE
from curate.pipeline.stage import Context
from curate.review import Answer, Desk, acceptance, acceptance_plan, drawing, relevance_desks
from curate.review.acceptance import ProvedThreshold
from curate.review.agreement import CheckedRow, checked
from curate.review.drawing import SampleOptions, draw
from curate.system.files import frame, read_table, write_table
from tests.support.judged import judged

Truth = dict[tuple[str, str], str]
SIZE = 120


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def truth(run: Path) -> Truth:
    """Write a judged run of 1,200 pairs, of which 180 or so are in the frame; people never err."""
    rows = judged(run, 40, 30)
    (run / "judge").mkdir()
    write_table(run / "judge", "ratings", frame("ratings"))
    return {(query, doc): grade for query, doc, grade in rows.iter_rows()}


def drawn(run: Path, size: int = SIZE, wrong: float = 0.4, **more: object) -> Desk:
    return Desk(acceptance_plan.draw(run, SampleOptions(name="accept", size=size, controls=0, **more), wrong, 0.9))  # type: ignore[arg-type]


def answer(desk: Desk, truth: Truth, which: Callable[[CheckedRow], bool] = lambda _row: True) -> Desk:
    rows = [row for row in checked(desk) if which(row)]
    desk.record("assessor", [Answer(row.row_id, truth[row.ids[0], row.ids[1]]) for row in rows])
    return desk


def proved(run: Path, desk: Desk, wrong: float = 0.4) -> ProvedThreshold:
    now = acceptance_plan.frame_of(run / "judge", run / "consensus")
    return acceptance.judged(desk, now, wrong, 0.9, FIVE)


def test_equal_numbers_of_every_sum_and_the_plan_says_how_often_a_threshold_is_found(run: Path, truth: Truth) -> None:
    found = acceptance_plan.plan(run, SIZE, 0.4, 0.9)
    assert [each.sum for each in found.strata] == list(range(12, 2, -1))
    assert sum(each.drawn for each in found.strata) == SIZE
    assert {each.drawn for each in found.strata} == {SIZE // 10}
    assert acceptance_plan.allocate({9: 4, 8: 100, 7: 90}, 44) == {9: 4, 8: 20, 7: 20}, (
        "a small sum leaves its rows to others"
    )
    assert found.odds.enough
    assert found.needed == SIZE
    assert {row.ids[0] for row in checked(drawn(run))} <= {query for query, _ in truth}


@pytest.mark.usefixtures("truth")
def test_a_review_that_would_seldom_find_a_threshold_is_not_drawn_and_says_what_is_needed(run: Path) -> None:
    short = acceptance_plan.plan(run, 50, 0.03, 0.9)
    assert not short.odds.enough
    with pytest.raises(ConfigError, match=r"--target accept --size 50: \d+% of such reviews .* is announced"):
        drawn(run, 50, 0.03)
    assert not (run / "reviews" / "accept" / "design.json").exists()
    if short.needed is not None:
        assert acceptance_plan.plan(run, short.needed, 0.03, 0.9).odds.enough
    hopeless = acceptance_plan.plan(run, 100, 0.001, 0.9)
    assert hopeless.needed is None
    with pytest.raises(ConfigError, match=r"no size gives that: raise consensus\.accept\.wrong"):
        acceptance_plan.refuse_hopeless(hopeless, 100)


def test_the_loosest_sum_that_holds_is_announced_with_both_error_rates(run: Path, truth: Truth) -> None:
    found = proved(run, answer(drawn(run, 250), truth))
    assert found.least == 7
    now = acceptance_plan.frame_of(run / "judge", run / "consensus").filter(pl.col("sum") >= found.least)
    wrong = [truth[pair] not in FIVE.relevant for pair in now.select("query_id", "doc_id").rows()]
    assert sum(wrong) / len(wrong) <= 0.4
    first, second = acceptance.sentences(found.facts)
    assert f"relevant are the {len(wrong):,} pairs whose grades add up to {found.least} or more" in first
    assert "of all reviews, which is" in second
    assert "not for new queries" in second


def test_no_threshold_is_a_normal_answer_with_the_best_share_and_what_to_do(run: Path, truth: Truth) -> None:
    bad = dict.fromkeys(truth, "D")
    found = proved(run, answer(drawn(run), bad))
    assert found.least is None
    [said] = acceptance.sentences(found.facts)
    assert "no threshold keeps the wrong share at 40% or below; the best share is 100.0% wrong" in said
    assert "curate review export --target precision" in said


def test_another_promise_or_another_sample_is_refused(run: Path, truth: Truth) -> None:
    desk = answer(drawn(run), truth)
    with pytest.raises(ConfigError, match=r"found wrong 0\.5 .* was drawn for 0\.4"):
        proved(run, desk, wrong=0.5)
    other = Desk(draw(run, SampleOptions(name="expert", size=60, controls=0)))
    with pytest.raises(ConfigError, match=r"'expert' was not drawn for a threshold"):
        proved(run, other)


def test_pairs_that_came_after_the_draw_are_refused(run: Path, truth: Truth) -> None:
    desk = answer(drawn(run), truth)
    verdicts = read_table(run / "consensus", "verdicts")
    first = acceptance_plan.frame_of(run / "judge", run / "consensus")["query_id"][0]
    new = verdicts.filter(pl.col("query_id") == first).with_columns(query_id=pl.lit("q9999"))
    write_table(run / "consensus", "verdicts", pl.concat([verdicts, new]))
    with pytest.raises(DataError, match=r"came into its frame \(1 queries are new\)"):
        proved(run, desk)


def test_answers_by_whole_queries_and_sums_without_any_are_refused(run: Path, truth: Truth) -> None:
    queries = sorted({query for query, _ in truth})
    desk = answer(drawn(run), truth, lambda row: row.ids[0] in queries[:20])
    with pytest.raises(DataError, match=r"was read by whole queries"):
        proved(run, desk)
    answer(desk, truth, lambda row: row.stratum != "sum 3")
    with pytest.raises(DataError, match=r"nobody answered a pair whose grades add up to (\d+, )*3"):
        proved(run, replaced(desk, truth))


def test_a_half_answered_review_is_a_sentence_of_resolve(
    run: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = answer(drawn(run), truth, lambda row: row.stratum != "sum 3")
    settings: Settings = {"consensus": {"accept": {"wrong": 0.4, "sample": desk.sample.design.name}}}
    monkeypatch.setattr(drawing, "outdated", lambda *_: ())
    found = acceptance.proved(Context(run=run, out=run / "resolve", home=run, settings=settings))
    assert found is not None
    assert found.least is None
    [said] = acceptance.sentences(found.facts)
    assert "nobody answered a pair whose grades add up to 3" in said
    assert "the labels are the policy's" in said


def replaced(desk: Desk, truth: Truth) -> Desk:
    """Take back the answers to one sum."""
    gone = [Answer(row.row_id, None) for row in checked(desk) if row.stratum == "sum 3"]
    desk.record("assessor", gone)
    return desk


def test_many_pairs_without_an_answer_are_a_warning_with_the_rates_by_sum(run: Path, truth: Truth) -> None:
    """What is left out is what is not relevant, in no order of queries: it looks like a better panel."""
    seen: Counter[str] = Counter()

    def fewer(row: CheckedRow) -> bool:
        seen[row.stratum] += truth[row.ids[0], row.ids[1]] not in FIVE.relevant
        return truth[row.ids[0], row.ids[1]] in FIVE.relevant or seen[row.stratum] % 4 != 0

    desk = answer(drawn(run), truth, fewer)
    found = proved(run, desk)
    warning = acceptance.sentences(found.facts)[-1]
    assert warning.startswith("WARNING: consensus.accept:")
    assert "drawn pairs were not answered (answers by sum: 12: " in warning
    assert "were all of those wrong" in warning


def test_where_few_reviews_were_expected_to_find_a_threshold_none_is_announced(run: Path, truth: Truth) -> None:
    desk = answer(drawn(run), truth)
    plan: dict[str, Any] = dict(desk.sample.design.facts)
    accept = {**plan["accept"], "rates": dict.fromkeys(plan["accept"]["rates"], 0.6)}
    doubtful = Desk(replace(desk.sample, design=replace(desk.sample.design, facts={**plan, "accept": accept})))
    found = proved(run, doubtful)
    assert found.least is None
    [said] = acceptance.sentences(found.facts)
    assert "0% of reviews were expected to find a threshold" in said


def test_contested_pairs_of_top_tens_come_first_and_are_in_no_estimate(run: Path, truth: Truth) -> None:
    verdicts = read_table(run / "consensus", "verdicts")
    open_ = verdicts.filter(pl.col("verdict") == "contested").select("query_id", "doc_id").sort("doc_id")
    ranks = [
        {"query_id": query, "doc_id": doc, "retriever": "r", "rank": 1 + (at % 30), "score": 1.0}
        for at, (query, doc) in enumerate(open_.rows())
    ]
    write_table(run / "pool", "rankings", frame("rankings", ranks))
    tens = sum(each["rank"] <= 10 for each in ranks)
    assert contested.in_top_tens(run) == tens
    desk = Desk(contested.draw(run, SampleOptions(name="contested", size=tens + 2, controls=0)))
    assert Counter(row.stratum for row in checked(desk)) == {contested.TENS: tens, contested.REST: 2}
    answer(desk, truth)
    assert desk.reviews()["sampled_weight"].null_count() == tens + 2, "none was drawn by chance"
    assert relevance_desks(run) == []


def test_where_a_cascade_gave_pairs_up_nothing_of_this_can_be_drawn(run: Path, truth: Truth) -> None:
    verdicts = read_table(run / "consensus", "verdicts")
    gave_up = pl.when(pl.col("verdict") == "not relevant").then(pl.lit("not positive")).otherwise("verdict")
    one = pl.struct(judge=pl.lit("one"), grade=pl.lit("C"))
    none = [pl.struct(judge=pl.lit(name), grade=pl.lit(None, pl.String)) for name in ("three", "two")]
    write_table(
        run / "consensus",
        "verdicts",
        verdicts.with_columns(
            votes=pl.when(pl.col("verdict") == "not relevant").then(pl.concat_list(one, *none)).otherwise("votes"),
            verdict=gave_up,
        ),
    )
    stopped = [{"query_id": query, "doc_id": doc, "status": "stopped", "judge": "two"} for query, doc in truth]
    write_table(run / "judge", "ratings", frame("ratings", stopped))
    with pytest.raises(DataError, match=r"whose sum of grades may lie in the frame.*judge.cascade=null"):
        acceptance_plan.plan(run, SIZE, 0.4, 0.9)
    with pytest.raises(DataError, match=r"which of them are contested is not known"):
        contested.ranked(run)
