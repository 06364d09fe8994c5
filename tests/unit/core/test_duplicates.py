"""Equal texts under several ids."""

import polars as pl

from curate.core.duplicates import Firsts, follow_aliases, follow_qrels, made_equal
from curate.system import files


def test_classes_of_equal_texts() -> None:
    firsts = Firsts()
    texts = {"d1": "感冒多喝水", "d2": " 感冒多喝水\n", "d3": "感冒多喝水。", "d4": "感冒多喝水。\u3000"}
    assert [firsts.number(name, text) for name, text in texts.items()] == [0, 0, 1, 1]
    assert firsts.names == ["d1", "d3"]


def test_what_masking_made_equal_was_not_equal_before() -> None:
    classes = {"d1": (0, 0), "d2": (0, 0), "d3": (1, 1), "d4": (2, 1), "d5": (1, 1), "d6": (3, 2)}
    rows = [(name, *numbers) for name, numbers in classes.items()]
    texts = pl.DataFrame(rows, {"id": pl.String, "class": pl.Int64, "masked": pl.Int64}, orient="row")
    assert made_equal(texts).rows() == [("d3", "d4"), ("d4", "d3"), ("d5", "d4")]
    assert made_equal(texts.clear()).is_empty()


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
