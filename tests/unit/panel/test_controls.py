"""Controls: which pairs are drawn, how they are mixed in, and what the accuracy on them proves."""

import math
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from curate.core.scale import FIVE
from curate.panel.controls import FAMILIES, among, draw, left_out, measure

QUERIES = [f"q{n}" for n in range(10)]
DOCUMENTS = [f"d{n:03}" for n in range(200)]


def pool(depth: int = 30) -> pl.DataFrame:
    """Every query pools documents of its own."""
    rows = [(q, DOCUMENTS[(at * 17 + n) % 200], n + 1) for at, q in enumerate(QUERIES) for n in range(depth)]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "position": pl.Int32}, orient="row")


def known(grade_at: dict[int, str]) -> pl.DataFrame:
    """Grades by position in the pool, the same for every query."""
    graded = pool().filter(pl.col("position").is_in(list(grade_at)))
    return graded.select(
        "query_id", "doc_id", grade=pl.col("position").replace_strict(grade_at, return_dtype=pl.String)
    )


def said(right: int, wrong: int, misses: int, alarms: int, silent: int = 0) -> pl.DataFrame:
    """`right` negatives and `misses`..: counts of right and wrong answers in both classes."""
    rows = [
        *[("positive", "A")] * right,
        *[("positive", "B")] * misses,
        *[("random", "D")] * wrong,
        *[("rejected", "S")] * alarms,
        *[("positive", None)] * silent,
    ]
    return pl.DataFrame(rows, {"kind": pl.String, "grade": pl.String}, orient="row")


# Drawing


def test_positives_rejected_and_random_negatives_are_drawn() -> None:
    drawn = draw(known({1: "S", 2: "B", 3: "A", 25: "D"}), pool(), DOCUMENTS, 20, 7, FIVE)
    counts = dict(drawn.group_by("kind").len().iter_rows())
    assert counts == {"positive": 20, "rejected": 10, "random": 10}
    places = drawn.join(pool(), on=["query_id", "doc_id"], how="left")
    assert set(places.filter(pl.col("kind") == "positive")["position"]) <= {1, 3}
    assert set(places.filter(pl.col("kind") == "rejected")["position"]) == {2}  # 25 is below the top
    assert places.filter(pl.col("kind") == "random")["position"].null_count() == 10  # nobody pooled them


def test_random_negatives_fill_up_where_few_were_rejected() -> None:
    drawn = draw(known({1: "S"}), pool(), DOCUMENTS, 10, 7, FIVE)
    assert dict(drawn.group_by("kind").len().iter_rows()) == {"positive": 10, "random": 10}
    assert set(drawn.filter(pl.col("kind") == "random")["query_id"]) == set(QUERIES)


def test_a_known_pair_of_another_run_is_left_out() -> None:
    stranger = pl.DataFrame({"query_id": ["elsewhere"], "doc_id": ["d000"], "grade": ["S"]})
    drawn = draw(pl.concat([known({1: "S"}), stranger]), pool(), DOCUMENTS, 100, 7, FIVE)
    assert "elsewhere" not in set(drawn["query_id"])


def test_a_pool_of_everything_leaves_no_stranger() -> None:
    whole = pl.DataFrame(
        [(q, d, n) for q in QUERIES for n, d in enumerate(DOCUMENTS, 1)],
        {"query_id": pl.String, "doc_id": pl.String, "position": pl.Int32},
        orient="row",
    )
    drawn = draw(known({1: "S"}), whole, DOCUMENTS, 10, 7, FIVE)
    assert set(drawn["kind"]) == {"positive"}


@pytest.mark.slow
@given(st.integers(0, 1000), st.integers(1, 60))
def test_a_draw_repeats_itself_and_names_no_pair_twice(seed: int, size: int) -> None:
    one = draw(known({1: "S", 2: "C", 3: "A"}), pool(), DOCUMENTS, size, seed, FIVE)
    assert one.equals(draw(known({3: "A", 2: "C", 1: "S"}), pool(), DOCUMENTS, size, seed, FIVE))
    assert one.select("query_id", "doc_id").is_unique().all()
    assert one["kind"].value_counts().filter(pl.col("kind") == "positive")["count"].item() == min(size, 20)


@pytest.mark.slow
@given(st.integers(1, 12), st.integers(1, 20))
def test_controls_are_at_most_half_of_prompts_of_the_usual_size(batch: int, size: int) -> None:
    drawn = draw(known({1: "S", 2: "C"}), pool(), DOCUMENTS, size, 3, FIVE)
    pairs = among(drawn, pool(), batch, 3)
    assert drawn.join(pairs, on=["query_id", "doc_id"], how="anti").is_empty()
    for (query_id,), group in pairs.group_by("query_id"):
        mine = drawn.filter(pl.col("query_id") == query_id)
        assert len(group) % batch == 0
        assert len(mine) <= max(len(group) / 2, 1) or batch == 1
        beside = group.join(mine, on=["query_id", "doc_id"], how="anti")
        assert beside.join(pool(), on=["query_id", "doc_id"], how="anti").is_empty()


# Measuring


@pytest.mark.parametrize(("right", "misses", "wrong", "alarms"), [(50, 0, 50, 0), (45, 5, 40, 10), (10, 40, 55, 0)])
def test_balanced_accuracy_has_newcombes_interval(right: int, misses: int, wrong: int, alarms: int) -> None:
    found = measure(said(right, wrong, misses, alarms), FIVE)
    parts = [(right, right + misses), (wrong, wrong + alarms)]
    shares = [hits / count for hits, count in parts]
    ends = [proportion_confint(hits, count, method="wilson") for hits, count in parts]
    middle = sum(shares) / 2
    low = middle - math.sqrt(sum((p - low) ** 2 for p, (low, _) in zip(shares, ends, strict=True))) / 2
    high = middle + math.sqrt(sum((high - p) ** 2 for p, (_, high) in zip(shares, ends, strict=True))) / 2
    assert (found.value, found.low, found.high) == pytest.approx((middle, max(low, 0), min(high, 1)))
    assert found.state == ("passed" if low >= 0.8 else "weak")


def test_a_judge_that_says_the_same_of_everything_is_weak() -> None:
    for grade in FIVE.labels:
        rows = said(50, 50, 0, 0).with_columns(grade=pl.lit(grade))
        found = measure(rows, FIVE)
        assert (found.value, found.state) == (0.5, "weak")


def test_few_answers_are_never_enough_however_right() -> None:
    found = measure(said(49, 80, 0, 0, silent=30), FIVE)
    assert (found.state, found.value, found.unanswered) == ("not enough", 1.0, 30)


def test_few_answers_are_enough_to_see_that_a_judge_is_weak() -> None:
    assert measure(said(2, 10, 10, 8), FIVE).state == "weak"


def test_without_answers_nothing_is_defined() -> None:
    found = measure(said(0, 0, 0, 0, silent=5), FIVE)
    assert (found.state, found.value, found.low, found.positives) == ("not enough", None, None, None)


@pytest.mark.slow
def test_the_interval_covers_the_true_accuracy() -> None:
    random = np.random.default_rng(5)
    for good, bad in product((0.8, 0.95), (0.7, 0.99)):
        inside = below = 0
        for _ in range(500):
            yes, no = int(random.binomial(50, good)), int(random.binomial(50, bad))
            found = measure(said(yes, no, 50 - yes, 50 - no), FIVE)
            assert found.low is not None
            assert found.high is not None
            inside += found.low <= (good + bad) / 2 <= found.high
            below += found.low <= (good + bad) / 2
        assert inside / 500 >= 0.93
        assert below / 500 >= 0.95


def test_a_family_that_no_judge_can_fail_is_said_to_have_too_few_controls() -> None:
    rows = pl.DataFrame(
        [("negated", "A")] + [("claim", "A")] * 10, {"kind": pl.String, "grade": pl.String}, orient="row"
    )
    measured = measure(rows, FIVE).adversarial
    assert (measured["negated"].failed, measured["negated"].too_few) == (False, True)
    assert (measured["claim"].failed, measured["claim"].too_few) == (True, False)
    lines = left_out({**dict.fromkeys(FAMILIES, 10), "negated": 1, "claim": 0})
    assert [line.partition(":")[0] for line in lines] == [
        "no controls of the family 'claim', so no judge is tested on it",
        "1 controls of the family 'negated' are too few to test a judge",
    ]
