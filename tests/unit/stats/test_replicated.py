"""Scores of resampled items, against scikit-learn and scipy on the items as often as they were drawn."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, f1_score, v_measure_score

from curate.stats.confusion import confusions, macro_f1
from curate.stats.rank_correlation import correct, rising, within_rho
from curate.stats.significance import (
    average_precision,
    best,
    compare_bootstrapped,
    figures,
    grouped,
    mean_value,
    spearman,
    v_measure,
)
from curate.stats.tally import Floats, Ints
from tests.support.defined import defined

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12)
Score = Callable[[Floats], Floats]


def drawn(rows: list[tuple[int, int, int]]) -> tuple[Ints, Ints, Ints]:
    one, other, times = (np.array(column) for column in zip(*rows, strict=True))
    return one, other, times


def on(score: Score, times: Ints) -> float:
    return float(score(times[None, :].astype(float))[0])


@pytest.mark.slow
@given(ROWS)
def test_average_precision_is_scikit_learn_s(rows: list[tuple[int, int, int]]) -> None:
    scores, marks, times = drawn(rows)
    labels = (marks > 1).astype(float)
    found = on(average_precision(scores.astype(float), labels), times)
    if not (labels * times).sum():
        assert np.isnan(found)
        return
    expected = average_precision_score(np.repeat(labels, times), np.repeat(scores, times))
    assert found == pytest.approx(expected)


@pytest.mark.slow
@given(ROWS)
def test_spearman_is_scipy_s(rows: list[tuple[int, int, int]]) -> None:
    one, other, times = drawn(rows)
    found = on(spearman(one.astype(float), other.astype(float)), times)
    here, there = np.repeat(one, times), np.repeat(other, times)
    if len(set(here)) < 2 or len(set(there)) < 2:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(here, there)[0], abs=1e-9)


@pytest.mark.slow
@given(ROWS)
def test_v_measure_is_scikit_learn_s(rows: list[tuple[int, int, int]]) -> None:
    labels, clusters, times = drawn(rows)
    if not times.sum():
        return
    expected = v_measure_score(np.repeat(labels, times), np.repeat(clusters, times))
    assert on(v_measure(labels, clusters, times), np.ones_like(times)) == pytest.approx(expected, abs=1e-9)
    whole = v_measure(labels, clusters, np.ones_like(times))
    assert on(whole, times) == pytest.approx(expected, abs=1e-9), "drawn by the resample instead"


@pytest.mark.slow
@given(ROWS)
def test_macro_f1_is_scikit_learn_s_mean_over_classifiers(rows: list[tuple[int, int, int]]) -> None:
    labels, predicted, times = drawn(rows)
    if not times.sum():
        return
    sums = confusions(labels, [predicted, labels], 5)
    here, there = np.repeat(labels, times), np.repeat(predicted, times)
    expected = (f1_score(here, there, average="macro", zero_division=0) + 1) / 2
    # Rows are resampled to the same number, as a bootstrap does.
    assert float(macro_f1(times @ sums * (1 / times.mean()))) == pytest.approx(expected)


def test_sources_are_drawn_with_all_their_pairs() -> None:
    score = grouped(mean_value(np.array([1.0, 3.0, 10.0])), np.array([0, 0, 1]))
    assert on(score, np.array([2, 0])) == 2
    assert on(score, np.array([0, 2])) == 10


def test_the_best_similarity_is_chosen_in_every_resample() -> None:
    one, other = mean_value(np.array([0.0, 4.0])), mean_value(np.array([3.0, 0.0]))
    assert [on(best([one, other]), np.array(times)) for times in ([2, 0], [0, 2])] == [3, 4]


def test_intervals_hold_the_value_and_undefined_figures_are_none() -> None:
    values = np.arange(30.0)
    whole, nothing = figures([mean_value(values), mean_value(np.full(30, np.nan))], 30, seed=1)
    assert whole.value == 14.5
    assert defined(whole.low) < 14.5 < defined(whole.high)
    assert (nothing.value, nothing.low) == (None, None)


def test_within_a_source_order_and_ties() -> None:
    scores, levels = np.array([0.1, 0.2, 0.3, 0.5, 0.5, 0.9]), np.array([0.0, 1, 2, 0, 1, 0])
    source = np.array([0, 0, 0, 1, 1, 2])
    assert rising(scores, levels, source)[:2].tolist() == [1, 0]
    assert np.isnan(rising(scores, levels, source)[2]), "a single level has no order"
    rho = within_rho(scores, levels, source)
    assert rho[0] == 1
    assert np.isnan(rho[1:]).all(), "equal scores have no rank correlation"
    assert correct(scores, (levels > 0).astype(float), source)[:2].tolist() == [1, 0.5]
    assert np.isnan(correct(scores, (levels > 0).astype(float), source)[2])


def test_a_paired_bootstrap_finds_nothing_where_there_is_nothing() -> None:
    random = np.random.default_rng(3)
    chances = []
    for _ in range(200):
        apart = random.normal(0, 1, 60)
        drawn = apart[random.integers(0, 60, (300, 60))].mean(axis=1)
        both = np.column_stack([drawn, np.zeros(300)])
        chances.append(compare_bootstrapped(["a", "b"], [float(apart.mean()), 0.0], both, 60)[0].p)
    assert 0.01 <= np.mean([p <= 0.05 for p in chances]) <= 0.1
    assert compare_bootstrapped(["a", "b"], [1.0, 0.0], both + np.array([1.0, 0.0]), 60)[0].p < 0.01
