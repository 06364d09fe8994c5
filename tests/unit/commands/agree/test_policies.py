"""Policies side by side, by eye: what each keeps, how right it is, what unanimity removes and what that does."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from curate.commands.agree.policies import TRUTH, PolicyLabels, compare, compare_orders, decide, relevant_pairs, removed
from curate.core.records import TABLES
from curate.core.scale import FIVE
from curate.stats.bootstrap import resamples
from tests.unit.panel.test_voting import SCHEMA

PANEL = ["a", "b", "c"]
VOTES = {
    "q1": {"d1": "SSS", "d2": "SAB", "d3": "DDD", "d4": "ABB"},
    "q2": {"d1": "AAB", "d2": "SSA", "d3": "CDD", "d4": "SS-"},
    "q3": {"d1": "DDD"},
}


@pytest.fixture
def ratings() -> pl.DataFrame:
    rows = [
        (query_id, doc_id, judge, None if grade == "-" else grade)
        for query_id, documents in VOTES.items()
        for doc_id, grades in documents.items()
        for judge, grade in zip(PANEL, grades, strict=True)
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def by_policy(rows: list[PolicyLabels]) -> dict[str, dict[str, Any]]:
    return {row.policy: row.to_json() for row in rows}


def graded(*pairs: tuple[str, str, bool, float]) -> pl.DataFrame:
    return pl.DataFrame(list(pairs), TRUTH, orient="row")


def test_what_each_policy_keeps(ratings: pl.DataFrame) -> None:
    found = by_policy(compare(decide(ratings, PANEL, FIVE), ["q1", "q2", "q3", "q4"], seed=1))
    assert list(found) == ["unanimous", "unanimous-grade", "majority", "dawid-skene"]
    counted = ("kept", "relevant", "not relevant", "contested", "incomplete", "queries_with_a_positive")
    assert [found["unanimous"][name] for name in counted] == [5, 2, 3, 3, 1, 2]
    assert [found["unanimous-grade"][name] for name in counted] == [3, 1, 2, 5, 1, 1]
    assert [found["majority"][name] for name in counted] == [9, 5, 4, 0, 0, 2]
    # q4 was asked and has no candidate, so that its zero counts.
    assert [found[name]["positives_per_query"] for name in ("unanimous", "majority")] == [0.5, 1.25]
    assert "precision" not in found["unanimous"]


def test_precision_and_recall_by_what_people_found(ratings: pl.DataFrame) -> None:
    """Of q1 d1, d2 and q2 d1 people find d1, d1 relevant, d2 not; q1 d3 is relevant and nobody saw it."""
    truth = graded(("q1", "d1", True, 1), ("q1", "d2", False, 1), ("q2", "d1", True, 1), ("q1", "d3", True, 1))
    found = by_policy(compare(decide(ratings, PANEL, FIVE), ["q1", "q2", "q3"], 1, truth))
    assert (found["unanimous"]["precision"], found["unanimous"]["recall"]) == (1, round(1 / 3, 6))
    assert (found["majority"]["precision"], found["majority"]["recall"]) == (round(2 / 3, 6), round(2 / 3, 6))
    assert found["unanimous"]["intervals"].keys() == {"positives_per_query", "precision", "recall"}


def test_a_pair_that_was_drawn_rarely_counts_for_more(ratings: pl.DataFrame) -> None:
    truth = graded(("q1", "d1", True, 1), ("q1", "d2", False, 9), ("q2", "d1", True, 30))
    majority = by_policy(compare(decide(ratings, PANEL, FIVE), ["q1", "q2", "q3"], 1, truth))["majority"]
    assert (majority["precision"], majority["recall"]) == (31 / 40, 1)


def test_without_a_positive_that_people_saw_there_is_no_precision(ratings: pl.DataFrame) -> None:
    row = compare(decide(ratings, PANEL, FIVE), ["q1", "q2", "q3"], 1, graded(("q1", "d3", False, 1)))[0].to_json()
    found: Any = row
    assert (found["precision"], found["recall"]) == (None, None)
    assert (found["intervals"]["precision"], found["intervals"]["recall"]) == (None, None)


def test_intervals_resample_queries(ratings: pl.DataFrame) -> None:
    """Positives per query are 1, 1 and 0: every sample's mean is a literal mean of three draws."""
    found = by_policy(compare(decide(ratings, PANEL, FIVE), ["q1", "q2", "q3"], seed=4))["unanimous"]
    means = np.concatenate(list(resamples(3, 1000, 4))) @ np.array([1, 1, 0]) / 3
    assert found["intervals"]["positives_per_query"] == pytest.approx(
        np.quantile(means, [0.025, 0.975]).tolist(), abs=1e-6
    )


def test_two_judges_are_compared_without_dawid_skene(ratings: pl.DataFrame) -> None:
    assert list(decide(ratings, ["a", "b"], FIVE)) == ["unanimous", "unanimous-grade", "majority"]


def pool() -> pl.DataFrame:
    """Return a pool in which `one` found everything and `two` only q2; positions 1, 11, 21, ... within a query."""
    rows = [
        {
            "query_id": query_id,
            "doc_id": doc_id,
            "position": 10 * place + 1,
            "hits": [{"retriever": name, "rank": 1, "score": 1.0} for name in ("one", "two")[: 1 + (query_id == "q2")]],
        }
        for query_id, documents in VOTES.items()
        for place, doc_id in enumerate(documents)
    ]
    return pl.DataFrame(rows, TABLES["pool"])


def test_what_unanimity_removes(ratings: pl.DataFrame) -> None:
    texts = {"q1": "一二", "q2": "一二三", "q3": "一二三四"}
    rows: list[Any] = [row.to_json() for row in removed(decide(ratings, PANEL, FIVE), pool(), texts, FIVE)]
    found = {(row["by"], row["group"]): row for row in rows}
    assert [row["group"] for row in rows if row["by"] == "grades"] == ["A A B", "A B B", "S A B"]
    assert (found["grades", "S A B"]["lost"], found["grades", "A B B"]["lost"]) == (1, 0)

    def said(by: str, group: str) -> tuple[Any, ...]:
        row = found[by, group]
        return tuple(row[name] for name in ("pairs", "contested", "share", "lost", "lost_share"))

    # A majority finds q1 d1, d2 and q2 d1, d2, d4 relevant; contested are q1 d2, d4 and q2 d1.
    assert said("length of the query", "up to 2") == (4, 2, 0.5, 1, 0.5)
    assert said("length of the query", "3") == (4, 1, 0.25, 1, round(1 / 3, 6))
    assert said("length of the query", "over 3") == (1, 0, 0, 0, None)
    assert said("retriever", "one") == (9, 3, round(1 / 3, 6), 2, 0.4)
    assert said("retriever", "two") == (4, 1, 0.25, 1, round(1 / 3, 6))
    assert said("position in the pool", "up to 10") == (3, 1, round(1 / 3, 6), 1, 0.5)
    assert [row["group"] for row in rows if row["by"] == "position in the pool"] == ["up to 10", "11 to 20", "21 to 50"]


def test_what_that_does_to_the_order_of_systems(ratings: pl.DataFrame) -> None:
    """One retriever has q1's contested d2 first, the other its unanimous d1: the labels of a majority like both."""
    orders = {"first": ["d1", "d3", "d2"], "second": ["d2", "d1", "d3"], "third": ["d3"]}
    rows = [
        ("q1", name, doc, rank, 1.0 / rank) for name, docs in orders.items() for rank, doc in enumerate(docs, start=1)
    ]
    rankings = pl.DataFrame(rows, TABLES["rankings"], orient="row")
    found: Any = compare_orders(
        {name: relevant_pairs(each) for name, each in decide(ratings, PANEL, FIVE).items()}, rankings, 1
    ).to_json()
    # q2 has positives and no ranking, so that it counts as 0.
    second = 1 / math.log2(3)
    assert found["ndcg_at_10"]["unanimous"] == {"first": 0.5, "second": round(second / 2, 6), "third": 0}
    ideal = 1 + second
    assert found["ndcg_at_10"]["majority"] == {"first": round(1.5 / ideal / 2, 6), "second": 0.5, "third": 0}
    assert found["against_unanimous"]["majority"]["tau_b"]["value"] == round(1 / 3, 6)
    assert found["against_unanimous"]["majority"]["rank_biased_overlap"] == round(0.1 * (0 + 0.9 + 0.81) + 0.729, 6)


def test_one_retriever_has_no_order(ratings: pl.DataFrame) -> None:
    rankings = pl.DataFrame([("q1", "first", "d1", 1, 1.0)], TABLES["rankings"], orient="row")
    found: Any = compare_orders(
        {name: relevant_pairs(each) for name, each in decide(ratings, PANEL, FIVE).items()}, rankings, 1
    ).to_json()
    assert found["against_unanimous"]["majority"] == {
        "tau_b": {"value": None, "low": None, "high": None},
        "tau_ap": None,
        "rank_biased_overlap": None,
    }
