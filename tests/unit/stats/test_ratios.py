"""Shares of counts whose interval resamples queries, and what is said where every resample is the same."""

import numpy as np
import pytest

from curate.core.figures import Figure
from curate.stats.bootstrap import averages
from curate.stats.ratios import rate
from curate.stats.sample_estimates import wilson


@pytest.mark.parametrize("hits", [0.0, 10.0])
def test_none_and_all_have_an_interval_in_which_a_query_counts_once(hits: float) -> None:
    found, share = rate(np.array([[hits, 10.0]] * 60), seed=1), hits / 10
    bounds = wilson(60 * share, 60)
    assert bounds is not None
    assert found == Figure(share, round(bounds.low, 6), round(bounds.high, 6))
    assert (found.low, found.high) != (share, share)


def test_a_share_in_between_is_resampled() -> None:
    found = rate(np.array([[0.0, 10.0], [10.0, 10.0]] * 30), seed=1)
    assert found.value == 0.5
    assert found.low is not None
    assert found.high is not None
    assert 0.3 < found.low < 0.5 < found.high < 0.7


def test_what_no_resample_changes_has_no_interval() -> None:
    assert averages([np.ones(60), np.array([0.0, 1.0] * 30)], seed=1)[0] == Figure(1.0)
    assert rate(np.array([[1.0, 10.0]] * 60), seed=1) == Figure(0.1)


@pytest.mark.parametrize("sums", [[], [[0.0, 0.0]] * 3])
def test_nothing_counted_is_not_defined(sums: list[list[float]]) -> None:
    assert rate(np.array(sums).reshape(-1, 2), seed=1) == Figure(None)


def test_one_query_has_no_interval() -> None:
    assert rate(np.array([[0.0, 10.0]]), seed=1) == Figure(0.0)
