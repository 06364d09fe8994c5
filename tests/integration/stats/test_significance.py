"""Differences between models: every exchange counted by hand, statsmodels, and what the chances promise."""

import gc
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr
from statsmodels.stats.multitest import multipletests

from curate.stats.significance import _chances, compare, holm, mean, means, needed, pearson, products
from curate.stats.tally import Floats


@pytest.fixture(scope="module")
def no_collection() -> Iterator[None]:
    """Leave out the collection of the whole process's garbage that statsmodels asks for at each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)
        yield


def exact(one: Floats, other: Floats) -> float:
    """Return p over all exchanges of the two models' scores."""
    apart = one - other
    signs = np.array(list(product([1, -1], repeat=len(apart))))
    return float((np.abs(signs @ apart) >= abs(apart.sum()) - 1e-9).mean())


def p(one: Floats, other: Floats, seed: int) -> float:
    """Return p of 400 draws alone, as `compare` has it."""
    sums = [means(one), means(other)]
    return _chances([(0, 1)], sums, [one.mean(), other.mean()], mean, seed, 400)[0]


def test_p_is_that_of_all_exchanges() -> None:
    random = np.random.default_rng(0)
    one, other = random.random(10), random.random(10) - 0.2
    found = compare(["a", "b"], [means(one), means(other)], mean, seed=3)[0]
    assert (found.one, found.other) == ("a", "b")
    assert found.difference == pytest.approx(one.mean() - other.mean())
    assert found.p == pytest.approx(exact(one, other), abs=0.015), "10,000 draws err by 0.005"


def test_equal_models_are_not_told_apart() -> None:
    scores = means(np.array([0.0, 0.5, 1.0]))
    found = compare(["a", "b"], [scores, scores], mean, seed=3)[0]
    assert (found.difference, found.p, found.enough, found.smallest) == (0, 1, None, 0)


def test_the_better_one_stands_first_and_the_surest_pair_too() -> None:
    random = np.random.default_rng(1)
    base = random.random(60)
    sums = [means(base), means(base + 0.3), means(base + random.normal(0, 0.3, 60))]
    found = compare(["low", "high", "noisy"], sums, mean, seed=3)
    assert {(pair.one, pair.other) for pair in found} >= {("high", "low"), ("high", "noisy")}
    assert [pair.p for pair in found] == sorted(pair.p for pair in found)
    assert all(pair.difference >= 0 and pair.adjusted >= pair.p for pair in found)


def test_under_no_difference_five_in_a_hundred_are_called_one() -> None:
    hits = 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        one, other = random.random((2, 30))
        hits += p(one, other, seed) <= 0.05
    assert 3 <= hits <= 27, "15 of 300 are expected; beyond these bounds once in a thousand"


def test_so_many_queries_show_the_difference_as_often_as_promised() -> None:
    queries, _ = needed(0.1, 0.4, 50)
    assert queries == 126
    hits = 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        one = random.normal(0.1, 0.4, queries)
        hits += p(one, np.zeros(queries), seed) <= 0.05
    assert 0.72 <= hits / 300 <= 0.88, "80 % is promised"


def test_what_the_queries_at_hand_show_is_what_needs_them_all() -> None:
    _, smallest = needed(0.1, 0.4, 500)
    assert needed(smallest, 0.4, 500)[0] in (500, 501)


@pytest.mark.usefixtures("no_collection")
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(chances: list[float]) -> None:
    assert holm(chances) == pytest.approx(multipletests(chances, method="holm")[1])


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 1)), min_size=3, max_size=30))
def test_pearson_is_that_of_scipy_and_none_without_spread(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    found = float(pearson(products(x, y).sum(axis=0)))
    if x.std() == 0 or y.std() == 0:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(pearsonr(x, y)[0], abs=1e-9)


def test_models_on_other_scales_are_compared_by_their_correlation() -> None:
    random = np.random.default_rng(5)
    label = random.integers(0, 2, 200).astype(np.float64)
    good, bad = label + random.normal(0, 0.5, 200), 1000 * (label + random.normal(0, 2, 200))
    found = compare(["bad", "good"], [products(bad, label), products(good, label)], pearson, seed=1, draws=2000)[0]
    assert found.one == "good"
    assert found.difference == pytest.approx(pearsonr(good, label)[0] - pearsonr(bad, label)[0])
    assert found.p < 0.01
