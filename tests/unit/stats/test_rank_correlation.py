"""Orders compared: by eye, and against scipy and the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from curate.stats.rank_correlation import rank_biased_overlap, tau_b
from tests.support.defined import defined

SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 5).map(float), min_size=2)


def test_by_eye() -> None:
    up, down = {"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}
    assert (tau_b(up, up), tau_b(up, down)) == (1, -1)
    assert tau_b(up, {"a": 3.0, "b": 1.0, "c": 2.0}) == pytest.approx(1 / 3)
    assert rank_biased_overlap(up, up) == pytest.approx(1)
    # First ranks differ, the first two have one of two in common, the first three all: 0.1 (0 + 0.45 + 0.81) + 0.729.
    assert rank_biased_overlap(up, down) == pytest.approx(0.1 * (0 + 0.9 * 0.5 + 0.81) + 0.729)
    assert rank_biased_overlap({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}, persistence=0.5) == pytest.approx(0.5)


def test_the_top_counts_most() -> None:
    order = dict(zip("abcde", [5.0, 4.0, 3.0, 2.0, 1.0], strict=True))
    top, bottom = order | {"a": 4.0, "b": 5.0}, order | {"d": 1.0, "e": 2.0}
    assert tau_b(order, top) == tau_b(order, bottom)
    high, low = defined(rank_biased_overlap(order, bottom)), defined(rank_biased_overlap(order, top))
    assert high > low


def test_one_system_has_no_order() -> None:
    assert tau_b({"a": 1.0}, {"a": 1.0, "b": 2.0}) is None
    assert rank_biased_overlap({"a": 1.0}, {"a": 1.0}) is None
    assert tau_b({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 2.0}) is None


@pytest.mark.slow
@given(SCORES, SCORES)
def test_tau_is_that_of_scipy(one: dict[str, float], other: dict[str, float]) -> None:
    names = sorted(one.keys() & other.keys())
    found = tau_b(one, other)
    first, second = [one[name] for name in names], [other[name] for name in names]
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(float(kendalltau(first, second).statistic))


@given(SCORES)
def test_overlap_is_symmetric_and_between_0_and_1(one: dict[str, float]) -> None:
    other = {name: -score for name, score in one.items()}
    found = rank_biased_overlap(one, other)
    assert found == rank_biased_overlap(other, one)
    assert found is not None
    assert 0 <= found <= 1
