"""Plans of acceptance reviews: the same bounds as the review itself, and what non-response does to the promise."""

from pathlib import Path

import numpy as np

from curate.stats.acceptance import accept, odds, upper_bounds
from curate.stats.sample_estimates import StratumCounts
from tests.support.assessed import Assessed

REVIEWS = 2000


def test_the_bounds_of_many_reviews_are_those_of_each() -> None:
    random = np.random.default_rng(3)
    for _ in range(100):
        size = random.integers(1, 300, random.integers(1, 7)).astype(float)
        drawn = np.array([random.integers(1, each + 1) for each in size], dtype=float)
        hits = np.array([random.integers(0, each + 1) for each in drawn], dtype=float)
        bounds = upper_bounds(size, drawn, hits[None], 0.9)[0]
        rows = zip(size.astype(int), drawn.astype(int), hits, strict=True)
        strata = [(float(-at), StratumCounts(int(one), int(two), three)) for at, (one, two, three) in enumerate(rows)]
        found = accept(strata, 0.999, 0.9)
        assert found.best is not None
        assert bounds[int(-found.best.least)] == np.min(bounds)
        assert abs(np.min(bounds) - found.best.bound) < 1e-12


def test_odds_are_the_shares_of_simulated_reviews_that_announce_and_that_break_the_promise() -> None:
    random = np.random.default_rng(5)
    shares, sizes, drawn = [0.15, 0.25, 0.32, 0.5], [200, 150, 200, 300], 40
    wrong = [np.arange(size) < round(size * share) for size, share in zip(sizes, shares, strict=True)]
    announced = broken = 0
    for _ in range(400):
        strata = [
            (float(9 - at), StratumCounts(len(each), drawn, int(random.choice(each, drawn, replace=False).sum())))
            for at, each in enumerate(wrong)
        ]
        if (held := accept(strata, 0.3).threshold) is not None:
            announced += 1
            broken += bool(np.concatenate(wrong[: int(10 - held.least)]).mean() > 0.3)
    found = odds(sizes, shares, [drawn] * 4, 0.3, 0.9)
    assert abs(found.found - announced / 400) < 0.05
    assert abs(found.broken - broken / 400) < 0.02
    assert found.enough
    hopeless = odds(sizes, [0.6] * 4, [drawn] * 4, 0.3, 0.9)
    assert (hopeless.found, hopeless.broken_announced, hopeless.enough) == (0.0, None, False)


def test_on_real_judges_more_answers_find_a_threshold_more_often_and_it_holds(shared_data: Path) -> None:
    """Reviews of the slice, whose true wrong shares by sum are known: broken in a tenth of all reviews at most."""
    real = Assessed.read(shared_data)
    sums = np.asarray(sum(real.grades[name] for name in real.panel))
    sizes = [int((sums == least).sum()) for least in range(9, 2, -1)]
    rates = [1 - float(real.relevant[sums == least].mean()) for least in range(9, 2, -1)]
    few, many = (odds(sizes, rates, [each] * len(sizes), 0.4, 0.9) for each in (10, 30))
    assert few.found < many.found
    assert max(few.broken, many.broken) <= 0.1


def test_answers_that_lack_by_relevance_break_the_promise_and_are_always_warned_of() -> None:
    """2,000 reviews in which people leave out what is wrong: the silent pairs pass the 5 % of the warning."""
    random = np.random.default_rng(9)
    size, rates = np.array([200.0, 200.0, 300.0]), np.array([0.25, 0.38, 0.55])
    bad = np.rint(size * rates).astype(int)
    drawn = np.array([80, 80, 80])
    wrong = random.hypergeometric(bad, size.astype(int) - bad, drawn, size=(REVIEWS, 3))
    answered_wrong = random.binomial(wrong, 0.6).astype(float)
    answered = random.binomial(drawn - wrong, 0.98) + answered_wrong
    held = np.logical_and.accumulate(upper_bounds(size, answered, answered_wrong, 0.9) <= 0.35, axis=1)
    true = np.cumsum(bad) / np.cumsum(size)
    last = held.sum(axis=1) - 1
    broken = held.any(axis=1) & (true[last] > 0.35)
    assert broken.mean() > 0.3, "without a warning the promise would be worth nothing"
    silent = 1 - answered.sum(axis=1) / drawn.sum()
    assert (silent > 0.05).all()
