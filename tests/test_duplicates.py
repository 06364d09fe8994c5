"""Equal texts under several ids."""

import polars as pl

from curate import files
from curate.duplicates import Firsts, follow_aliases, follow_qrels


def test_first_id_of_equal_texts() -> None:
    firsts = Firsts()
    assert firsts.of("d1", "感冒多喝水") == "d1"
    assert firsts.of("d2", " 感冒多喝水\n") == "d1"
    assert firsts.of("d3", "感冒多喝水。") == "d3"
    assert firsts.of("d4", "感冒多喝水。\u3000") == "d3"


def test_qrels_follow_and_keep_the_highest_score() -> None:
    rows = [("q2", "d9", 1), ("q1", "d1", 0), ("q1", "d2", 2), ("q1", "d3", 1)]
    qrels = pl.DataFrame(rows, schema=files.frame("qrels").schema, orient="row")
    moved = follow_qrels(qrels, {"q2": "q1"}, {"d2": "d1"})
    assert moved.rows() == [("q1", "d1", 2), ("q1", "d3", 1), ("q1", "d9", 1)]


def test_without_merged_ids_qrels_are_only_sorted() -> None:
    qrels = pl.DataFrame([("q2", "d1", 1), ("q1", "d2", 1)], schema=files.frame("qrels").schema, orient="row")
    assert follow_qrels(qrels, {}, {}).rows() == [("q1", "d2", 1), ("q2", "d1", 1)]


def test_an_old_alias_follows_to_the_last_kept_id() -> None:
    old = files.frame("aliases", [{"table": "corpus", "old_id": "d3", "kept_id": "d2"}])
    old = pl.concat([old, files.frame("aliases", [{"table": "queries", "old_id": "q3", "kept_id": "d2"}])])
    rows = follow_aliases(old, "corpus", {"d2": "d1"}).rows()
    assert rows == [("corpus", "d2", "d1"), ("corpus", "d3", "d1")]
