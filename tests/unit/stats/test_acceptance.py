"""Acceptance thresholds: real judges' sums, and how often the promise is broken."""

from pathlib import Path

import numpy as np
import pytest

from curate.core.errors import DataError
from curate.stats.acceptance import Acceptance, accept, least_answers
from curate.stats.sample_estimates import StratumCounts
from tests.support.assessed import Assessed


def read(sums: np.ndarray, wrong: np.ndarray, chosen: np.ndarray) -> list[tuple[float, StratumCounts]]:
    """Return the strata 9 to 3 of a review in which the pairs `chosen` were read."""
    return [
        (float(least), StratumCounts(int(here.sum()), int((here & chosen).sum()), int(wrong[here & chosen].sum())))
        for least in range(9, 2, -1)
        for here in [sums == least]
    ]


def test_every_second_pair_of_each_sum_of_three_real_judges(shared_data: Path) -> None:
    real = Assessed.read(shared_data)
    sums, wrong = sum(real.grades[name] for name in real.panel), 1 - real.relevant
    chosen = np.zeros(len(wrong), dtype=bool)
    for least in range(3, 10):
        chosen[np.flatnonzero(sums == least)[::2]] = True
    assert chosen.sum() == 296
    strata = read(np.asarray(sums), wrong, chosen)
    found = {share: accept(strata, share) for share in (0.1, 0.2, 0.3, 0.4, 0.45)}
    assert found[0.1].threshold is found[0.2].threshold is None
    assert found[0.2].best is not None
    assert round(found[0.2].best.bound, 4) == 0.2540

    def shown(each: Acceptance) -> tuple[float, ...]:
        assert each.threshold is not None
        inside = np.asarray(sums) >= each.threshold.least
        kept = real.relevant[inside].sum() / real.relevant.sum()
        known = (each.threshold.wrong, each.threshold.bound, wrong[inside].mean(), kept)
        return each.threshold.least, *(round(float(number), 4) for number in known)

    assert shown(found[0.3]) == (8, 0.2361, 0.2840, 0.2817, 0.2965)
    assert shown(found[0.4]) == (7, 0.3037, 0.3458, 0.3367, 0.3779)
    assert shown(found[0.45]) == (6, 0.3753, 0.4118, 0.3903, 0.4767)


@pytest.mark.slow
def test_the_promise_is_broken_in_a_tenth_of_reviews_at_most_and_more_often_among_those_that_announce() -> None:
    """2,000 reviews of a pool of which the true wrong shares by sum are known."""
    random = np.random.default_rng(5)
    shares, sizes, drawn = [0.15, 0.25, 0.32, 0.5], [200, 150, 200, 300], 40
    wrong = [np.arange(size) < round(size * share) for size, share in zip(sizes, shares, strict=True)]
    announced = broken = 0
    for _ in range(2000):
        strata = [
            (float(9 - at), StratumCounts(len(each), drawn, int(random.choice(each, drawn, replace=False).sum())))
            for at, each in enumerate(wrong)
        ]
        if (held := accept(strata, 0.3).threshold) is not None:
            inside = np.concatenate(wrong[: int(10 - held.least)])
            announced += 1
            broken += bool(inside.mean() > 0.3)
    assert announced / 2000 > 0.5
    assert broken / 2000 <= 0.10


def test_nothing_is_promised_before_there_are_answers_enough_and_an_unread_stratum_is_refused() -> None:
    assert (least_answers(0.3, 0.9), least_answers(0.1, 0.9), least_answers(0.5, 0.75)) == (7, 22, 2)
    few = [(9.0, StratumCounts(50, 6, 0))]
    assert accept(few, 0.3) == Acceptance(None, None)
    assert accept([*few, (8.0, StratumCounts(50, 20, 0))], 0.3).threshold is not None
    with pytest.raises(DataError, match="add up to 8"):
        accept([*few, (8.0, StratumCounts(50, 0, 0))], 0.3)
