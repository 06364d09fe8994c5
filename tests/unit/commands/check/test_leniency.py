"""How strict a judge is, and the share of relevant pairs corrected for its errors."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from curate.commands.check.leniency import against, prevalence
from curate.core.scale import FIVE
from curate.panel.position_bias import steps
from curate.stats.sample_estimates import wilson

Row = tuple[str, str]


def table(rows: Sequence[Row], weights: list[float] | None = None) -> pl.DataFrame:
    found = pl.DataFrame(rows, {"grade": pl.String, "reference": pl.String}, orient="row")
    found = found.with_columns(query_id=pl.Series([f"q{n % 4}" for n in range(len(rows))], dtype=pl.String))
    return found if weights is None else found.with_columns(weight=pl.Series(weights, dtype=pl.Float64))


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(FIVE.labels), st.sampled_from(FIVE.labels)), min_size=1, max_size=50))
def test_every_figure_counted_by_hand(rows: list[Row]) -> None:
    found = against(table(rows), 7, FIVE)
    assert found.pairs == len(rows)
    assert found.steps is not None
    assert found.steps.value == pytest.approx(np.mean([steps(FIVE)[a] - steps(FIVE)[b] for a, b in rows]))
    assert sum(map(sum, found.confusion)) == len(rows)
    for one, line in zip(FIVE.labels, found.confusion, strict=True):
        assert line == tuple(rows.count((one, two)) for two in FIVE.labels)
        mine = [b in "SA" for a, b in rows if a == one]
        precision = found.precision[one]
        assert (precision and precision.value) == (pytest.approx(np.mean(mine)) if mine else None)
    good = [a in "SA" for a, b in rows if b in "SA"]
    bad = [a not in "SA" for a, b in rows if b not in "SA"]
    assert (found.sensitivity and found.sensitivity.value) == (pytest.approx(np.mean(good)) if good else None)
    assert (found.specificity and found.specificity.value) == (pytest.approx(np.mean(bad)) if bad else None)


def test_weights_stand_for_pairs_and_cost_precision() -> None:
    rows: list[Row] = [*[("S", "S")] * 10, *[("B", "S")] * 10]
    plain, weighted = against(table(rows), 7, FIVE), against(table(rows, [1.0] * 10 + [3.0] * 10), 7, FIVE)
    assert plain.sensitivity is not None
    assert weighted.sensitivity is not None
    assert (plain.sensitivity.value, weighted.sensitivity.value) == (0.5, 0.25)
    assert weighted.sensitivity.answered == 16  # (10 + 30)^2 / (10 + 90)
    same = against(table(rows, [2.5] * 20), 7, FIVE)
    assert same.sensitivity == plain.sensitivity


def test_a_missing_grade_is_no_grade() -> None:
    rows = table([("S", "S"), ("A", "B")]).with_columns(grade=pl.Series(["S", None]))
    found = against(rows, 7, FIVE)
    assert (found.pairs, found.specificity) == (1, None)


@given(st.floats(0.05, 0.95), st.floats(0.55, 1), st.floats(0.55, 1))
def test_the_correction_undoes_known_errors(true: float, hit: float, right: float) -> None:
    pairs = 100_000
    apparent = round(pairs * (true * hit + (1 - true) * (1 - right)))
    one, two = (wilson(round(10_000 * share), 10_000) for share in (hit, right))
    found = prevalence(apparent, pairs, one, two)
    assert found is not None
    assert found.value == pytest.approx(true, abs=0.01)
    assert found.low <= found.value <= found.high


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 200))
def test_a_judge_no_better_than_chance_corrects_nothing(hits: int, right: int, relevant: int) -> None:
    one, two = wilson(hits, 50), wilson(right, 50)
    found = prevalence(relevant, 200, one, two)
    assume(hits + right <= 50)
    assert found is None


def test_what_was_not_measured_is_not_corrected() -> None:
    assert prevalence(3, 10, None, wilson(5, 5)) is None
    assert prevalence(0, 0, wilson(5, 5), wilson(5, 5)) is None


@pytest.mark.parametrize(
    ("true", "hit", "right", "size"), [(0.2, 0.9, 0.95, 100), (0.5, 0.8, 0.9, 50), (0.05, 0.95, 0.9, 100)]
)
def test_the_interval_covers_the_true_share(true: float, hit: float, right: float, size: int) -> None:
    random, inside = np.random.default_rng(11), 0
    for _ in range(2000):
        relevant = int(random.binomial(600, true * hit + (1 - true) * (1 - right)))
        one, two = (wilson(int(random.binomial(size, rate)), size) for rate in (hit, right))
        found = prevalence(relevant, 600, one, two)
        assert found is not None
        inside += found.low <= true <= found.high
    assert inside / 2000 >= 0.93
