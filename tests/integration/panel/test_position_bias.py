"""What the place in a prompt does to a grade: judges with known habits, and each figure computed a second way."""

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from curate.core.scale import FIVE
from curate.panel.position_bias import changes, slots, turned

SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.String, "slot": pl.Int64}


def judged(
    queries: int = 40, depth: int = 20, batch: int = 10, habit: str = "none", seed: int = 1
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return ratings by a judge with a habit, and those of the same prompts in reversed order."""
    random = np.random.default_rng(seed)
    order = random.permuted(np.tile(np.arange(depth), (queries, 1)), axis=1)
    true = random.choice(5, (queries, depth), p=[0.1, 0.15, 0.2, 0.25, 0.3])
    place = np.argsort(order, axis=1) % batch
    return (_table(true, place, habit, random), _table(true, batch - 1 - place, habit, random))


def _table(
    true: npt.NDArray[np.int64], place: npt.NDArray[np.int64], habit: str, random: np.random.Generator
) -> pl.DataFrame:
    rows = []
    for query, line in enumerate(true):
        for doc, code in enumerate(line):
            slot = int(place[query, doc])
            said = {
                "none": int(code),
                "by slot": 1 + slot % 4,
                "tired": min(int(code) + int(random.random() < slot / 12), 4),
                "noisy": int(np.clip(code + random.integers(-2, 3), 0, 4)),
            }[habit]
            rows.append((f"q{query}", f"d{doc}", FIVE.labels[said], slot))
    return pl.DataFrame(rows, SCHEMA, orient="row")


@pytest.mark.parametrize("batch", [4, 5, 10])
def test_a_judge_that_answers_a_b_c_d_by_place_is_flagged(batch: int) -> None:
    ratings, back = judged(batch=batch, habit="by slot")
    found = slots(ratings, 7, FIVE)
    assert found.biased
    assert found.share is not None
    assert found.share > 0.95
    assert turned(changes(ratings, back, 7, FIVE), changes(ratings, ratings, 7, FIVE), batch)


def test_a_judge_that_tires_is_flagged_by_both() -> None:
    ratings, back = judged(habit="tired")
    found, again = slots(ratings, 7, FIVE), changes(ratings, back, 7, FIVE)
    assert found.biased
    assert found.slope is not None
    assert again.slope is not None
    assert found.slope.high is not None
    assert found.slope.high < 0
    assert again.slope.high is not None
    assert again.slope.high < 0
    assert turned(again, None, 10)


def test_a_faithful_judge_changes_nothing() -> None:
    ratings, back = judged()
    again = changes(ratings, back, 7, FIVE)
    assert not slots(ratings, 7, FIVE).biased
    assert (again.pairs, again.lost) == (800, 0)
    for figure in (again.cut_flips, again.grade_flips, again.shift, again.cut_shift, again.slope):
        assert figure is not None
        assert (figure.value, figure.low, figure.high) == (0, 0, 0)
    assert not turned(again, None, 10)


def test_noise_is_not_taken_for_an_effect_of_the_order() -> None:
    ratings, back = judged(habit="noisy")
    repeat, _ = judged(habit="noisy", seed=1)
    noise = changes(ratings, repeat.with_columns(grade=judged(habit="noisy", seed=1)[1]["grade"]), 7, FIVE)
    assert turned(changes(ratings, back, 7, FIVE), None, 10)  # many flips, and nothing to put them down to
    assert not turned(changes(ratings, back, 7, FIVE), noise, 10)


def test_false_alarms_are_rare() -> None:
    alarms = sum(bool(slots(judged(seed=seed)[0], 7, FIVE).biased) for seed in range(100))
    assert alarms <= 2


def test_the_slope_is_that_of_a_regression_with_a_level_for_each_query() -> None:
    ratings, _ = judged(habit="tired", queries=15)
    y = (
        ratings["grade"]
        .replace_strict({g: 4 - n for n, g in enumerate(FIVE.labels)}, return_dtype=pl.Float64)
        .to_numpy()
    )
    dummies = ratings["query_id"].to_dummies().to_numpy()
    fit = sm.OLS(y, np.column_stack([ratings["slot"].to_numpy(), dummies])).fit()
    found = slots(ratings, 7, FIVE)
    assert found.slope is not None
    assert found.slope.value == pytest.approx(fit.params[0])
    cut = (y >= 3).astype(float)
    fit = sm.OLS(cut, np.column_stack([ratings["slot"].to_numpy(), dummies])).fit()
    assert found.cut_slope is not None
    assert found.cut_slope.value == pytest.approx(fit.params[0])


def test_the_share_is_that_of_a_regression_on_places_where_every_place_occurs_alike() -> None:
    ratings, _ = judged(habit="tired", queries=15, batch=10)
    y = (
        ratings["grade"]
        .replace_strict({g: 4 - n for n, g in enumerate(FIVE.labels)}, return_dtype=pl.Float64)
        .to_numpy()
    )
    queries = ratings["query_id"].to_dummies().to_numpy()
    places = ratings["slot"].cast(pl.String).to_dummies().to_numpy()[:, 1:]
    both, plain = sm.OLS(y, np.column_stack([places, queries])).fit(), sm.OLS(y, queries).fit()
    compared = both.compare_f_test(plain)
    found = slots(ratings, 7, FIVE)
    assert found.p == pytest.approx(compared[1])
    assert found.share == pytest.approx(1 - (both.ssr / both.df_resid) / (plain.ssr / plain.df_resid))


def test_the_interval_of_the_slope_covers_the_truth() -> None:
    """A judge whose grades fall by half a step over ten places, on the average, 300 times."""
    random, inside = np.random.default_rng(3), 0
    for _ in range(300):
        place = np.tile(np.arange(10), 60)
        base = np.repeat(random.integers(1, 3, 60), 10)
        falls = random.random(600) < place * 0.05
        grades = [FIVE.labels[int(each)] for each in base + falls]
        rows = {"query_id": np.repeat([f"q{n}" for n in range(60)], 10), "grade": grades, "slot": place}
        found = slots(pl.DataFrame(rows), 7, FIVE).slope
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= -0.05 <= found.high
    assert inside / 300 >= 0.91


def test_what_is_not_defined_is_none() -> None:
    empty = slots(pl.DataFrame(schema=SCHEMA), 7, FIVE)
    assert (empty.pairs, empty.slope, empty.share, empty.p, empty.biased) == (0, None, None, None, None)
    rows = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "grade": ["S", None], "slot": [0, 1]})
    alone = slots(rows, 7, FIVE)
    assert (alone.pairs, alone.slope, alone.p, alone.biased) == (1, None, None, None)
    again = changes(rows, rows.with_columns(grade=pl.Series(["A", "B"])), 7, FIVE)
    assert (again.pairs, again.lost, again.slope) == (1, 1, None)
    assert again.shift is not None
    assert (again.shift.value, again.shift.low) == (-1, None)
    assert turned(again, None, 10) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(FIVE.labels), st.sampled_from(FIVE.labels), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=40,
    )
)
def test_changes_are_plain_means_and_turn_with_the_order(rows: list[tuple[str, str, int, int]]) -> None:
    one = pl.DataFrame([(f"q{n % 3}", f"d{n}", row[0], row[2]) for n, row in enumerate(rows)], SCHEMA, orient="row")
    two = pl.DataFrame([(f"q{n % 3}", f"d{n}", row[1], row[3]) for n, row in enumerate(rows)], SCHEMA, orient="row")
    there, back = changes(one, two, 1, FIVE), changes(two, one, 1, FIVE)
    flips = [(a in "SA") != (b in "SA") for a, b, _, _ in rows]
    shift = [FIVE.labels.index(a) - FIVE.labels.index(b) for a, b, _, _ in rows]
    assert there.cut_flips is not None
    assert there.shift is not None
    assert back.shift is not None
    assert there.cut_flips.value == pytest.approx(np.mean(flips))
    assert there.shift.value == pytest.approx(np.mean(shift))
    assert there.shift.value is not None
    assert back.shift.value == pytest.approx(-there.shift.value)
    assert (there.slope is None) == (back.slope is None)
    if there.slope and back.slope:
        assert there.slope.value == pytest.approx(back.slope.value)
