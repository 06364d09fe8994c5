"""Scores of single queries: by eye, and against pytrec_eval, ties and graded labels included."""

from math import log2

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.evaluate import item_scores
from curate.commands.evaluate.item_scores import MEASURES, look
from curate.retrieval import ranking

DOCS = [f"d{place}" for place in range(14)]
# Few values, so that there are ties; 0.1 + 0.2 and 0.3 differ as doubles and not as the floats that trec_eval keeps.
FOUND = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 0.1 + 0.2, 0.3, 0.5, 1.0]), min_size=1)
GAINS = st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3), min_size=1).filter(lambda gains: any(gains.values()))


@pytest.mark.slow
@given(FOUND, GAINS)
def test_equals_pytrec_eval(found: dict[str, float], gains: dict[str, int]) -> None:
    theirs = pytrec_eval.RelevanceEvaluator({"q": gains}, {"ndcg_cut.10", "map_cut.10"}).evaluate({"q": found})["q"]
    order = item_scores.ordered(found)
    assert item_scores.ndcg(order, gains) == pytest.approx(theirs["ndcg_cut_10"], abs=1e-6)
    assert item_scores.average_precision(order, gains) == pytest.approx(theirs["map_cut_10"], abs=1e-6)


@pytest.mark.slow
@given(FOUND, GAINS)
def test_binary_labels_give_what_the_pool_measures(found: dict[str, float], gains: dict[str, int]) -> None:
    relevant = {doc for doc, gain in gains.items() if gain}
    order = item_scores.ordered(found)
    assert item_scores.ndcg(order, dict.fromkeys(relevant, 1)) == pytest.approx(ranking.ndcg(order, relevant))


@pytest.mark.parametrize("measure", sorted(MEASURES))
def test_without_a_relevant_document_nothing_is_defined(measure: str) -> None:
    with pytest.raises(ValueError, match="not defined"):
        MEASURES[measure](["a"], {"a": 0})


def test_three_readings_of_doubt_by_eye() -> None:
    verdicts = {"a": "contested", "b": "relevant", "c": "not relevant", "d": "incomplete", "e": "relevant"}
    seen = look(["a", "b", "x", "d", "e"], {"b": 1, "e": 1}, verdicts, "ndcg_at_10")
    best_of_two, best_of_three = 1 + 1 / log2(3), 1 + 1 / log2(3) + 1 / 2
    assert seen.scores["stock"] == pytest.approx((1 / log2(3) + 1 / log2(6)) / best_of_two)
    assert seen.scores["condensed"] == pytest.approx((1 + 1 / 2) / best_of_two), "b, x, e are left"
    assert seen.scores["optimistic"] == pytest.approx((1 + 1 / log2(3) + 1 / log2(6)) / best_of_three)
    assert (seen.first, seen.shown, seen.holes, seen.doubtful) == (2, 5, 1, 2)


def test_a_contested_document_that_nobody_finds_lowers_the_optimistic_score() -> None:
    seen = look(["b"], {"b": 1}, {"b": "relevant", "a": "contested"}, "ndcg_at_10")
    assert seen.scores["stock"] == 1
    assert seen.scores["optimistic"] == pytest.approx(1 / (1 + 1 / log2(3)))


def test_without_verdicts_all_readings_are_one() -> None:
    seen = look(["a", "b"], {"b": 2, "a": 1}, {}, "ndcg_at_10")
    assert len(set(seen.scores.values())) == 1
