"""Orders of models on two benchmarks: scipy, and what the intervals cover."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from curate.commands.evaluate.correlation import BenchmarkScores, compare
from curate.stats.rank_correlation import kendall, spearman_of_scores
from curate.stats.significance import mean, means, of_sums
from curate.stats.tally import Floats
from tests.support.defined import defined

COLUMNS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=15)


def side(scores: Floats, queries: int, seed: int, noise: float = 0.2) -> BenchmarkScores:
    """Return models whose queries scatter around these scores."""
    random = np.random.default_rng(seed)
    rows = [score + random.normal(0, noise, queries) for score in scores]
    sums = [means(each - each.mean() + score) for each, score in zip(rows, scores, strict=True)]
    return BenchmarkScores([of_sums(each, mean) for each in sums], queries)


@pytest.mark.slow
@given(COLUMNS)
def test_both_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    one, other = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    for ours, theirs in ((spearman_of_scores, spearmanr), (kendall, kendalltau)):
        found = float(ours(one, other))
        if one.std() == 0 or other.std() == 0:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(theirs(one, other)[0])


def test_below_eight_models_nothing_is_said() -> None:
    scores = np.linspace(0, 1, 7)
    found = compare(side(scores, 50, 1), side(scores, 50, 2), seed=1)
    assert found == (None, None)


def test_models_that_all_score_the_same_have_no_order() -> None:
    same = side(np.full(9, 0.5), 20, 1, noise=0)
    assert compare(same, side(np.linspace(0, 1, 9), 20, 2), seed=1)[0] is None


def test_the_same_order_is_found_and_an_opposite_one_too() -> None:
    scores = np.linspace(0.1, 0.9, 10)
    new = side(scores, 100, 1)
    alike = defined(compare(new, side(scores, 300, 2), seed=1)[0])
    opposite = defined(compare(new, side(scores[::-1], 300, 2), seed=1)[1])
    assert (alike.value, opposite.value) == (1, -1)
    assert alike.p < 0.001
    assert defined(alike.low) > 0.8


def test_p_is_near_that_of_scipy() -> None:
    random = np.random.default_rng(4)
    one, other = random.random((2, 14))
    found = compare(side(one, 30, 1), side(other, 30, 2), seed=1)
    assert defined(found[0]).p == pytest.approx(spearmanr(one, other).pvalue, abs=0.03)
    assert defined(found[1]).p == pytest.approx(kendalltau(one, other).pvalue, abs=0.03)


def test_with_the_same_queries_both_sides_resample_them_together() -> None:
    scores = np.linspace(0.4, 0.6, 10)
    both = side(scores, 20, 1, noise=0.5)
    together = defined(compare(both, both, seed=1, same_queries=True)[0])
    apart = defined(compare(both, both, seed=1)[0])
    assert together.low == 1, "a benchmark is not another one than itself"
    assert defined(apart.low) < 1


def test_fourteen_models_at_rho_a_third_prove_nothing() -> None:
    """The published 0.354 of 14 models: its interval holds 0 and reaches far beyond 0.5."""
    random = np.random.default_rng(0)
    one = np.arange(14.0) / 14
    other = next(
        each
        for each in (random.permutation(one) for _ in range(10_000))
        if abs(spearman_of_scores(one, each) - 0.354) < 0.01
    )
    found = defined(compare(side(one, 200, 1), side(other, 200, 2), seed=1)[0])
    assert defined(found.low) < 0
    assert defined(found.high) > 0.6
    assert found.p > 0.1
