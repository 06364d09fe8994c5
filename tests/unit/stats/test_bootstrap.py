"""Bootstrap intervals against a literal resampling, and what they mean."""

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from curate.core.errors import ConfigError
from curate.stats import bootstrap
from curate.stats.agreement import ac, alpha, cohen, fleiss, measure, percent, scalar
from curate.stats.bootstrap import Interval, interval, resamples
from curate.stats.tally import crosstab, tally
from tests.support.defined import defined


def panel(queries: int, each: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return codes of three judges with gaps, and the query of each item; the judges are worse on some queries."""
    random = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), each)
    skill = random.uniform(0.3, 0.95, queries)[query][:, None]
    truth = random.integers(0, 4, (len(query), 1))
    codes = np.where(random.random((len(query), 3)) < skill, truth, random.integers(0, 4, (len(query), 3)))
    return np.where(random.random(codes.shape) < 0.1, -1, codes), query


def test_equal_to_literal_resampling() -> None:
    """Draw the same queries, put their items end to end, and measure again."""
    codes, query = panel(12, 5, seed=1)
    stacked = tally(codes, 4).by_cluster(query)
    tables = crosstab(codes[:, 0], codes[:, 1], 4, query)
    found = {
        "percent": interval(stacked, percent, seed=5, replicates=40),
        "fleiss": interval(stacked, fleiss, seed=5, replicates=40),
        "alpha_nominal": interval(stacked, alpha, seed=5, replicates=40),
        "alpha_ordinal": interval(stacked, partial(alpha, level="ordinal"), seed=5, replicates=40),
        "ac1": interval(stacked, ac, seed=5, replicates=40),
    }
    (weights,) = resamples(12, 40, seed=5)
    samples = [np.concatenate([codes[query == q] for q in range(12) for _ in range(int(row[q]))]) for row in weights]
    for name, got in found.items():
        figures = [getattr(measure(sample, 4), name) for sample in samples]
        assert got is not None
        assert (got.low, got.high) == pytest.approx(tuple(np.quantile(figures, [0.025, 0.975])), abs=1e-12)
    kappas = [float(cohen(crosstab(sample[:, 0], sample[:, 1], 4), "quadratic")) for sample in samples]
    got = defined(interval(tables, partial(cohen, scheme="quadratic"), seed=5, replicates=40))
    assert (got.low, got.high) == pytest.approx(tuple(np.quantile(kappas, [0.025, 0.975])), abs=1e-12)


def test_seed_and_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, query = panel(30, 4, seed=2)
    stacked = tally(codes, 4).by_cluster(query)
    want = defined(interval(stacked, fleiss, seed=1))
    assert interval(stacked, fleiss, seed=1) == want
    assert interval(stacked, fleiss, seed=2) != want
    assert (want.clusters, want.replicates, want.undefined, want.level) == (30, 1000, 0, 0.95)
    monkeypatch.setattr(bootstrap, "BLOCK", 100)
    got = defined(interval(stacked, fleiss, seed=1))
    assert (got.low, got.high) == pytest.approx((want.low, want.high), abs=1e-12)


def test_order_of_items_and_labels_of_queries_change_nothing() -> None:
    codes, query = panel(20, 6, seed=3)
    want = defined(interval(tally(codes, 4).by_cluster(query), fleiss, seed=1))
    order = np.random.default_rng(0).permutation(len(codes))
    named = [f"q{label:02}" for label in query[order].tolist()]
    got = defined(interval(tally(codes[order], 4).by_cluster(named), fleiss, seed=1))
    assert (got.low, got.high) == pytest.approx((want.low, want.high), abs=1e-12)


def test_copied_items_do_not_narrow_the_interval() -> None:
    """Pairs of one query are not independent: ten copies of each add no query, and the interval knows."""
    codes, query = panel(25, 4, seed=4)
    once = defined(interval(tally(codes, 4).by_cluster(query), percent, seed=1))
    copies = tally(np.repeat(codes, 10, axis=0), 4)
    grouped = defined(interval(copies.by_cluster(np.repeat(query, 10)), percent, seed=1))
    naive = defined(interval(copies.by_cluster(np.arange(len(codes) * 10)), percent, seed=1))
    assert (grouped.low, grouped.high) == pytest.approx((once.low, once.high), abs=1e-12)
    assert naive.high - naive.low < 0.5 * (grouped.high - grouped.low)


def test_two_queries_by_eye() -> None:
    """One query always agrees and one never: a sample of two has agreement 0, 0.5 or 1, a quarter of them 1."""
    stacked = tally([[0, 0], [1, 1], [0, 1], [1, 0]], 2).by_cluster(["a", "a", "b", "b"])
    assert interval(stacked, percent, seed=0) == Interval(0, 1, 0.95, clusters=2, replicates=1000, undefined=0)
    assert percent(stacked.weighted(np.array([[2.0, 0], [1, 1], [0, 2]]))).tolist() == [1, 0.5, 0]


def test_undefined_replicates_are_counted() -> None:
    """Of two queries each uses one category: kappa lives only in samples that hold both, where it is 1."""
    stacked = tally([[0, 0], [1, 1]], 2).by_cluster(["a", "b"])
    (weights,) = resamples(2, 1000, seed=3)
    alone = int((weights.max(axis=1) == 2).sum())
    assert 400 < alone < 600
    assert interval(stacked, fleiss, seed=3) == Interval(1, 1, 0.95, clusters=2, replicates=1000, undefined=alone)


def test_not_defined() -> None:
    same = tally([[0, 0], [0, 0]], 2)
    assert interval(same.by_cluster(["a", "b"]), fleiss, seed=0) is None
    assert interval(same.by_cluster(["a", "a"]), percent, seed=0) is None
    assert interval(tally(np.empty((0, 2)), 2).by_cluster([]), percent, seed=0) is None


@pytest.mark.parametrize(("replicates", "level"), [(0, 0.95), (10, 1.0), (10, 0.0)])
def test_refused(replicates: int, level: float) -> None:
    stacked = tally([[0, 0], [1, 1]], 2).by_cluster(["a", "b"])
    with pytest.raises(ConfigError, match="expected at least one replicate"):
        interval(stacked, percent, seed=0, replicates=replicates, level=level)


def test_resamples_draw_as_many_queries_as_there_are() -> None:
    weights = np.concatenate(list(resamples(50, 400, seed=9)))
    assert weights.shape == (400, 50)
    assert set(weights.sum(axis=1).tolist()) == {50}
    assert weights.mean(axis=0) == pytest.approx(np.ones(50), abs=0.25)
    assert scalar(weights.var()) == pytest.approx(0.98, abs=0.05)
