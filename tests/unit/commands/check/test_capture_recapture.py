"""What nobody found: by hand, derived twice, and in simulated pools whose truth is known."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.check.missed import capture, chao, chapman, missed
from tests.support.defined import defined

COUNTS = st.integers(0, 200)
TABLES = st.lists(st.tuples(st.integers(0, 5), st.lists(st.booleans(), min_size=3, max_size=3)), min_size=1)


def bound(caught: np.ndarray) -> float:
    """Return the bound on the missed ones of one catch, documents x nets."""
    times = caught.sum(axis=1)
    return float(missed((caught & (times == 1)[:, None]).sum(axis=0), np.array((times == 2).sum())))


def test_three_nets_by_hand() -> None:
    # alone 4, 2, 1; two nets caught 5: (4*2 + 4*1 + 2*1) / 6
    assert missed(np.array([4, 2, 1]), np.array(5)) == pytest.approx(14 / 6)


@given(COUNTS, COUNTS, COUNTS)
def test_for_two_nets_it_is_chapmans_estimate(one: int, other: int, both: int) -> None:
    found = one + other + both
    estimate = chapman(np.array(one + both), np.array(other + both), np.array(both))
    assert found + missed(np.array([one, other]), np.array(both)) == pytest.approx(float(estimate))


@given(st.integers(1, 100), st.integers(0, 100), st.integers(2, 6))
def test_for_equal_nets_it_is_chaos_bound_before_its_correction(each: int, twice: int, nets: int) -> None:
    once = each * nets
    wanted = (nets - 1) / nets * once**2 / (2 * (twice + 1))
    assert missed(np.full(nets, each), np.array(twice)) == pytest.approx(wanted)
    assert chao(once, twice, nets) == pytest.approx(wanted * (once - 1) / once)


@pytest.mark.slow
@given(TABLES)
def test_counted_again_with_sets(table: list[tuple[int, list[bool]]]) -> None:
    names = ["a", "b", "c"]
    rows = np.array([row for _, row in table])
    found = capture(rows, [f"q{query}" for query, _ in table], names, seed=1)
    nets = [{n for n, (_, row) in enumerate(table) if row[j]} for j in range(3)]
    union = set.union(*nets)
    if not union:
        assert found is None
        return
    assert found is not None
    alone = [nets[j] - nets[(j + 1) % 3] - nets[(j + 2) % 3] for j in range(3)]
    twice = [n for n in union if sum(n in net for net in nets) == 2]
    least = sum(len(one) * len(other) for one, other in combinations(alone, 2)) / (len(twice) + 1)
    assert found.missed.value == pytest.approx(least, abs=1e-6)
    assert found.share.value == pytest.approx(len(union) / (len(union) + least), abs=1e-6)
    assert found.by == (sum(map(len, alone)), len(twice), len(set.intersection(*nets)))
    for (j, k), (one, other, figure) in zip(combinations(range(3), 2), found.pairs, strict=True):
        wanted = (len(nets[j]) + 1) * (len(nets[k]) + 1) / (len(nets[j] & nets[k]) + 1) - 1
        assert (one, other) == (names[j], names[k])
        assert figure.value == pytest.approx(wanted, abs=1e-6)


@pytest.mark.slow
@given(TABLES, st.permutations([0, 1, 2]))
def test_the_order_of_retrievers_and_documents_changes_nothing(
    table: list[tuple[int, list[bool]]], order: list[int]
) -> None:
    rows, queries = np.array([row for _, row in table]), [str(query) for query, _ in table]
    one = capture(rows, queries, ["a", "b", "c"], seed=1)
    other = capture(rows[::-1][:, order], queries[::-1], [["a", "b", "c"][n] for n in order], seed=1)
    assert (one is None) == (other is None)
    if one and other:
        assert (one.missed, one.share, one.by) == (other.missed, other.share, other.by)


def test_not_defined_for_one_retriever_or_nothing_found() -> None:
    assert capture(np.array([[True]]), ["q"], ["a"], seed=1) is None
    assert capture(np.array([[False, False]]), ["q"], ["a", "b"], seed=1) is None


def simulated(ease: np.ndarray, nets: list[float], seed: int) -> np.ndarray:
    """Return who caught what: document i is caught by net j with the odds ease[i] * nets[j]."""
    odds = ease[:, None] * np.array(nets)
    return np.asarray(np.random.default_rng(seed).random(odds.shape) < odds / (1 + odds))


def test_unbiased_for_independent_nets_of_unequal_reach() -> None:
    documents = np.ones(500)
    totals = [(c := simulated(documents, [2.0, 0.8, 0.4], seed)).any(axis=1).sum() + bound(c) for seed in range(400)]
    assert np.mean(totals) == pytest.approx(500, rel=0.01)
    pairs = [simulated(documents, [1.5, 0.7], seed) for seed in range(400)]
    chapmans = [chapman(c[:, 0].sum(), c[:, 1].sum(), c.all(axis=1).sum()) for c in pairs]
    assert np.mean(chapmans) == pytest.approx(500, rel=0.01)


def test_below_the_truth_where_easy_documents_are_easy_for_all() -> None:
    ease = np.random.default_rng(3).gamma(0.7, 2.0, 500)
    catches = [simulated(ease, [2.0, 0.8, 0.4], seed) for seed in range(400)]
    totals = np.array([c.any(axis=1).sum() + bound(c) for c in catches])
    seen = np.mean([c.any(axis=1).sum() for c in catches])
    assert np.mean(totals) < 490
    assert np.mean(totals > 500) < 0.05
    assert np.mean(totals) > seen + 0.3 * (500 - seen)  # and it says more than what was seen


def test_chaos_own_bound_is_below_the_truth_for_equal_nets() -> None:
    ease = np.random.default_rng(4).gamma(0.7, 2.0, 500)
    times = [simulated(ease, [0.8, 0.8, 0.8], seed).sum(axis=1) for seed in range(200)]
    assert np.mean([(t > 0).sum() + chao((t == 1).sum(), (t == 2).sum(), 3) for t in times]) < 490


def test_chaos_own_bound_is_above_the_truth_for_unequal_nets() -> None:
    catches = [simulated(np.ones(500), [9.0, 0.1, 0.1], seed) for seed in range(200)]
    times = [c.sum(axis=1) for c in catches]
    theirs = np.mean([(t > 0).sum() + chao((t == 1).sum(), (t == 2).sum(), 3) for t in times])
    ours = np.mean([(t > 0).sum() + bound(c) for t, c in zip(times, catches, strict=True)])
    assert theirs > 1000
    assert ours == pytest.approx(500, rel=0.03)


def test_too_high_where_nets_find_what_the_others_cannot() -> None:
    lexical = np.repeat([4.0, 0.05], 250)
    random = np.random.default_rng(5)
    odds = np.stack([lexical, lexical[::-1]], axis=1)
    catches = [random.random(odds.shape) < odds / (1 + odds) for _ in range(100)]
    assert np.mean([c.any(axis=1).sum() + bound(c) for c in catches]) > 600


@pytest.mark.slow
def test_intervals_hold_the_share_that_was_found() -> None:
    held = []
    for seed in range(200):
        random = np.random.default_rng(seed)
        relevant = random.poisson(12, 120) + 1  # documents of each query
        queries = np.repeat(np.arange(120), relevant)
        rows = simulated(np.ones(len(queries)), [2.0, 0.8, 0.4], seed)
        found = defined(capture(rows, [str(query) for query in queries], ["a", "b", "c"], seed))
        truth = 1 - 1 / (3.0 * 1.8 * 1.4)  # chance of a document to be found at all
        held.append(defined(found.share.low) <= truth <= defined(found.share.high))
    assert np.mean(held) >= 0.9
