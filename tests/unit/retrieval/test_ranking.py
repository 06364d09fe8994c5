"""Fusion and pools against literal definitions; nDCG by hand."""

import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import log2

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.pool.stage import pool
from curate.core.records import TABLES
from curate.retrieval.fusion import Method
from curate.retrieval.ranking import best_first, ndcg, ordered

Rankings = Mapping[str, Sequence[str]]


def table(rankings: Rankings, query_id: str = "q") -> pl.DataFrame:
    """Return lists of documents as a `rankings` table."""
    lists = [(name, list(enumerate(ranking, start=1))) for name, ranking in rankings.items()]
    rows = [(query_id, name, doc_id, rank, 1 / rank) for name, ranks in lists for rank, doc_id in ranks]
    return pl.DataFrame(rows, schema=TABLES["rankings"], orient="row")


def pooled(rankings: Rankings, size: int, method: Method) -> list[str]:
    return pool(table(rankings), size, method)["doc_id"].to_list()


def literal_fusion(rankings: Rankings) -> list[str]:
    """Order all documents by the exact sum of 1 / (60 + rank), then by id."""
    scores: dict[str, Fraction] = {}
    for ranking in rankings.values():
        for rank, doc_id in enumerate(ranking, start=1):
            scores[doc_id] = scores.get(doc_id, Fraction(0)) + Fraction(1, 60 + rank)
    return sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))


def literal_equal_depth(rankings: Rankings, size: int) -> list[str]:
    """Take the union of every top d for the largest d with at most `size` documents, fill up and order by fusion."""

    def union(depth: int) -> set[str]:
        return {doc_id for ranking in rankings.values() for doc_id in ranking[:depth]}

    deepest = max(map(len, rankings.values()), default=0)
    inside = union(max(depth for depth in range(deepest + 1) if len(union(depth)) <= size))
    fused = literal_fusion(rankings)
    chosen = inside | set([doc_id for doc_id in fused if doc_id not in inside][: size - len(inside)])
    return [doc_id for doc_id in fused if doc_id in chosen]


def literal_turns(rankings: Rankings, size: int) -> list[str]:
    """Let the retrievers, by name, give their documents in turn, each once, until there are `size`."""
    found: dict[str, None] = {}
    for turn in range(max(map(len, rankings.values()), default=0)):
        for _, ranking in sorted(rankings.items()):
            found |= dict.fromkeys(ranking[turn : turn + 1])
    return list(found)[:size]


documents = st.lists(st.sampled_from([f"d{number}" for number in range(14)]), unique=True, max_size=10)
some_rankings = st.dictionaries(st.sampled_from(["bm25", "e5", "use", "gte"]), documents, max_size=4)


@pytest.mark.slow
@given(some_rankings, st.integers(1, 16))
def test_pools_are_what_their_definitions_say(rankings: Rankings, size: int) -> None:
    fused = literal_fusion(rankings)
    assert pooled(rankings, size, "union") == fused
    assert pooled(rankings, size, "rrf") == fused[:size]
    assert pooled(rankings, size, "equal-depth") == literal_equal_depth(rankings, size)
    assert pooled(rankings, size, "round-robin") == literal_turns(rankings, size)


@pytest.mark.slow
@given(some_rankings, some_rankings, st.integers(1, 16), st.randoms())
def test_order_of_rows_and_other_queries_change_nothing(
    one: Rankings, two: Rankings, size: int, chance: random.Random
) -> None:
    both = pl.concat([table(one, "q1"), table(two, "q2")])
    order = list(range(len(both)))
    chance.shuffle(order)
    together = pool(both[order], size, "equal-depth")
    for query_id, rankings in (("q1", one), ("q2", two)):
        mine = together.filter(pl.col("query_id") == query_id)
        assert mine["doc_id"].to_list() == pooled(rankings, size, "equal-depth")
        assert mine.equals(pool(table(rankings, query_id), size, "equal-depth"))


def test_fusion_by_hand() -> None:
    rows = pool(table({"bm25": ["a", "b", "c"], "e5": ["b", "d", "a"]}), 9, "rrf").rows(named=True)
    assert [(row["position"], row["doc_id"]) for row in rows] == [(1, "b"), (2, "a"), (3, "d"), (4, "c")]
    assert rows[1]["hits"] == [
        {"retriever": "bm25", "rank": 1, "score": 1.0},
        {"retriever": "e5", "rank": 3, "score": 1 / 3},
    ]
    assert rows[2]["hits"] == [{"retriever": "e5", "rank": 2, "score": 0.5}]


def test_turns_by_hand() -> None:
    turns = {"bm25": ["a", "b", "c"], "e5": ["b", "d", "a"], "use": ["a"]}
    assert pooled(turns, 9, "round-robin") == ["a", "b", "d", "c"]
    assert pooled(turns, 2, "round-robin") == ["a", "b"]


def test_equal_sums_are_ties_by_id() -> None:
    assert pooled({"a": ["z", "y", "x"], "b": ["x", "y", "z"]}, 2, "rrf") == ["x", "z"]
    assert pooled({"a": ["9"], "b": ["10"]}, 5, "union") == ["10", "9"]
    # x has the ranks 1, 2, 7, 3 and z has 2, 1, 3, 7: summed in that order, the sum of z is larger in its last bit
    four = {"a": "xz", "b": "zx", "c": "mnzopqx", "d": "rsxtuvz"}
    assert pooled(four, 2, "rrf") == ["x", "z"]


def test_equal_depth_trusts_every_retriever_alike() -> None:
    long = {"bm25": ["a", "b", "c", "d"], "e5": ["e", "f", "g", "h"]}
    assert pooled(long, 4, "equal-depth") == ["a", "e", "b", "f"]
    assert pooled(long, 5, "equal-depth") == ["a", "e", "b", "f", "c"], "depth 3 would give six; fusion fills up"
    # x, y and z are found by both, deep down, so fusion likes them best; equal depth takes the tops all the same
    both = {"bm25": ["a", "b", "x", "y", "z"], "e5": ["c", "d", "z", "y", "x"]}
    assert pooled(both, 4, "rrf") == ["x", "z", "y", "a"]
    assert pooled(both, 4, "equal-depth") == ["a", "c", "b", "d"]
    assert pooled(both, 1, "equal-depth") == ["x"], "not even depth 1 fits"


def test_a_query_that_nothing_was_found_for_has_no_pool() -> None:
    assert pooled({"bm25": []}, 5, "equal-depth") == []
    assert pooled({}, 5, "rrf") == []


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), max_size=20), st.integers(1, 25))
def test_best_first_is_a_sort(scores: list[float], depth: int) -> None:
    ids = [f"d{(7 * row) % 23}" for row in range(len(scores))]
    expected = sorted((-score, doc_id) for score, doc_id in zip(scores, ids, strict=True) if score > 0)[:depth]
    places = np.array([sorted(ids).index(doc_id) for doc_id in ids], dtype=np.int64)
    rows = best_first(places, np.array(scores, dtype=np.float64), depth)
    assert [(-scores[row], ids[row]) for row in rows] == expected


@pytest.mark.parametrize(
    ("ranking", "relevant", "depth", "expected"),
    [
        ("abc", "a", 10, 1.0),
        ("abc", "c", 10, 1 / 2),
        ("abc", "bc", 10, (1 / log2(3) + 1 / 2) / (1 + 1 / log2(3))),
        ("abc", "xc", 10, (1 / 2) / (1 + 1 / log2(3))),
        ("abc", "c", 2, 0.0),
        ("abc", "abcd", 2, 1.0),
        ("", "a", 10, 0.0),
    ],
)
def test_ndcg_by_hand(ranking: str, relevant: str, depth: int, expected: float) -> None:
    assert ndcg(ranking, set(relevant), depth) == pytest.approx(expected)


def test_ndcg_without_a_relevant_document_is_not_defined() -> None:
    with pytest.raises(ValueError, match="not defined"):
        ndcg("abc", set())


some_hits = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-1.0, 0.5, 1.0, math.inf]), st.integers(0, 5)))


@pytest.mark.slow
@given(some_hits, st.integers(1, 5), st.booleans())
def test_lists_are_put_in_order_and_cut(rows: list[tuple[int, float, int]], depth: int, straight: bool) -> None:
    """Each query's documents by their best score, then by number; lists that are in order already, and any."""
    rows = sorted(rows, key=lambda row: (row[0], -row[1], row[2]) if straight else row[:1])
    best: dict[tuple[int, int], float] = {}
    for query, score, doc in rows:
        best[query, doc] = max(score, best.get((query, doc), -math.inf))
    expected = [
        (query, rank, doc, score)
        for query in range(4)
        for rank, (score, doc) in enumerate(
            sorted((-score, doc) for (asked, doc), score in best.items() if asked == query)[:depth], start=1
        )
    ]
    queries, docs = (np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 2))
    scores = np.array([score for _, score, _ in rows], dtype=np.float64)
    kept, ranks = ordered(queries, docs, scores, depth)
    assert list(zip(queries[kept], ranks, docs[kept], -scores[kept], strict=True)) == expected
