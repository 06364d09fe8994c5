"""Scores corrected by a sample of the top tens: real judges and systems, coverage, and answers that are missing."""

from pathlib import Path

import numpy as np
import pytest

from curate.core.errors import DataError
from curate.stats.corrected_scores import WEIGHTS, CorrectedScore, Frame, corrected, weights
from tests.support.assessed import Assessed, Ints

QUERIES = 8


@pytest.fixture(scope="module")
def real(shared_data: Path) -> Assessed:
    return Assessed.read(shared_data)


def systems(real: Assessed) -> dict[str, Ints]:
    olz, nist = real.grades["Olz-gpt4o"], real.grades["NISTRetrieval-reason0"]
    keys = {"Olz": -olz, "NIST": -nist, "id": 0 * olz, "down": olz}
    return {name: real.ranks(key) for name, key in keys.items()}


def sampled(real: Assessed, top: np.ndarray, step: int = 3) -> Frame:
    """Return the frame of the top tens of which every third pair of each stratum was read."""
    answers = np.full(len(top), -1)
    for votes in range(4):
        places = np.flatnonzero(top & (real.votes == votes))[::step]
        answers[places] = real.relevant[places]
    return Frame(real.query[top], real.votes[top], answers[top], QUERIES)


def shown(each: CorrectedScore) -> tuple[float, float]:
    return round(each.value, 4), round(each.half, 4)


def test_corrected_scores_of_four_systems_by_every_third_pair_of_each_stratum(real: Assessed) -> None:
    ranks = systems(real)
    top = np.any([each <= 10 for each in ranks.values()], axis=0)
    assert (top.sum(), np.bincount(real.votes[top]).tolist()) == (210, [95, 40, 8, 67])
    frame = sampled(real, top)
    precision, gain = ({name: weights(each[top], m, QUERIES) for name, each in ranks.items()} for m in WEIGHTS)
    found = {name: shown(corrected(frame, each)) for name, each in precision.items()}
    assert found == {
        "Olz": (0.6129, 0.1336),
        "NIST": (0.4381, 0.1235),
        "id": (0.2190, 0.0911),
        "down": (0.0434, 0.0637),
    }
    assert shown(corrected(frame, precision["Olz"] - precision["NIST"])) == (0.1748, 0.1311)
    assert shown(corrected(frame, gain["Olz"])) == (0.6660, 0.1467)
    assert shown(corrected(frame, gain["Olz"] - gain["NIST"])) == (0.2045, 0.1254)
    truth = [round(float((each * real.relevant[top]).sum()), 4) for each in precision.values()]
    assert truth == [0.6, 0.4125, 0.1375, 0.025]


def test_all_pairs_read_give_the_truth_and_no_width(real: Assessed) -> None:
    ranks = systems(real)
    top = np.any([each <= 10 for each in ranks.values()], axis=0)
    weight = weights(ranks["Olz"][top], "precision_at_10", QUERIES)
    whole = corrected(sampled(real, top, step=1), weight)
    assert shown(whole) == (0.6, 0.0)
    assert whole.new_queries is not None
    assert whole.new_queries > 0.1


@pytest.mark.slow
def test_the_interval_holds_the_truth_in_93_of_100_samples_for_differences_too() -> None:
    """2,000 samples of 200 of the 1,000 pairs in the top tens of two systems, 50 queries, four strata of votes."""
    random = np.random.default_rng(3)
    votes = np.sort(random.choice(4, 1000, p=(0.45, 0.15, 0.1, 0.3)))
    truth = (random.random(1000) < np.array([0.08, 0.3, 0.45, 0.75])[votes]).astype(np.int64)
    query = random.permutation(np.repeat(np.arange(50), 20))
    one, two = (weights(random.integers(0, 18, 1000), "precision_at_10", 50) for _ in range(2))
    held = np.zeros(2)
    for _ in range(2000):
        answers = np.full(1000, -1)
        for stratum, drawn in enumerate((70, 40, 25, 65)):
            places = random.choice(np.flatnonzero(votes == stratum), drawn, replace=False)
            answers[places] = truth[places]
        frame = Frame(query, votes, answers, 50)
        for at, weight in enumerate((one, one - two)):
            found = corrected(frame, weight)
            held[at] += abs(found.value - (weight * truth).sum()) <= found.half
    assert (held / 2000 >= 0.93).all()
    assert (held / 2000 <= 0.985).all()


@pytest.mark.slow
@pytest.mark.parametrize("read", [60, 200])
def test_the_interval_holds_where_relevant_pairs_stand_higher_than_votes_show(read: int) -> None:
    """The variance that supposes them to weigh as much as others held .911 (60 read) and .915 (200)."""
    random = np.random.default_rng(11)
    weight = weights(random.integers(1, 16, 600), "scaled_dcg_at_10", 30)
    truth = (random.random(600) < 0.15 + 0.5 * weight / weight.max()).astype(np.int64)
    query, held = np.repeat(np.arange(30), 20), 0
    for _ in range(2000):
        answers = np.full(600, -1)
        places = random.choice(600, read, replace=False)
        answers[places] = truth[places]
        found = corrected(Frame(query, np.zeros(600, np.int64), answers, 30), weight)
        held += abs(found.value - (weight * truth).sum()) <= found.half
    assert held / 2000 >= 0.93


def test_new_queries_are_never_surer_than_these(real: Assessed) -> None:
    """The lowest system's half width was .0637 for these queries and .0518 for new ones."""
    ranks = systems(real)
    top = np.any([each <= 10 for each in ranks.values()], axis=0)
    given = {name: weights(each[top], "precision_at_10", QUERIES) for name, each in ranks.items()}
    for step in (2, 3, 5):
        for one in given.values():
            for other in (0 * one, *given.values()):
                found = corrected(sampled(real, top, step), one - other)
                assert found.new_queries is not None
                assert found.new_queries >= found.half


def test_a_stratum_that_nobody_read_is_refused_and_few_queries_give_no_interval_for_new_ones() -> None:
    with pytest.raises(DataError, match="strata 1"):
        Frame(np.array([0, 0]), np.array([0, 1]), np.array([1, -1]), 1)
    frame = Frame(np.array([0, 0]), np.array([0, 0]), np.array([1, -1]), 1)
    assert corrected(frame, weights(np.array([1, 2]), "precision_at_10", 1)).new_queries is None
    assert weights(np.array([0, 1, 11]), "scaled_dcg_at_10", 1)[[0, 2]].tolist() == [0.0, 0.0]
