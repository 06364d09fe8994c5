"""Reasons of changed labels, of versions written by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.diff.changes import BEYOND, UNEXPLAINED, altered, changes, effects, other_votes
from curate.commands.diff.versions import LabelVersion
from curate.core.records import TABLES
from curate.system.files import frame

Said = tuple[str, dict[str, str | None], str]
"""Verdict, votes, policy."""
YES: Said = ("relevant", {"a": "S", "b": "A"}, "unanimous")
NO: Said = ("not relevant", {"a": "D", "b": "C"}, "unanimous")
SPLIT: Said = ("contested", {"a": "S", "b": "C"}, "unanimous")
NONE = pl.DataFrame(schema=TABLES["rankings"])


def version(said: dict[tuple[str, str], Said], hits: dict[tuple[str, str], list[str]] | None = None) -> LabelVersion:
    rows = [
        {
            "query_id": query,
            "doc_id": doc,
            "verdict": verdict,
            "votes": [{"judge": judge, "grade": grade} for judge, grade in votes.items()],
            "policy": policy,
        }
        for (query, doc), (verdict, votes, policy) in said.items()
    ]
    pool = [
        {
            "query_id": query,
            "doc_id": doc,
            "position": 1,
            "hits": [{"retriever": name, "rank": 1, "score": 1.0} for name in names],
        }
        for (query, doc), names in (hits or {}).items()
    ]
    return LabelVersion(
        place=Path("x"),
        queries={query: query for query, _ in said},
        documents={doc: doc for _, doc in said},
        verdicts=frame("verdicts", rows),
        panels={"run": {"a": "1", "b": "1"}},
        cut="S A B C D, relevant from A",
        pool=None if hits is None else frame("pool", pool),
    )


@pytest.mark.parametrize(
    ("old", "new", "reason", "detail"),
    [
        (SPLIT, ("relevant", SPLIT[1], "expert-over-panel"), "people's answers", "unanimous -> expert-over-panel"),
        (("relevant", SPLIT[1], "expert-over-panel"), SPLIT, "people's answers", "expert-over-panel -> unanimous"),
        (
            ("relevant", YES[1], "expert-over-panel"),
            ("not relevant", NO[1], "expert-over-panel"),
            "people's answers",
            "expert-over-panel -> expert-over-panel",
        ),
        (SPLIT, ("relevant", SPLIT[1], "accepted-by-sum"), "threshold on the sum of grades", None),
        (SPLIT, ("relevant", SPLIT[1], "settled-by-c"), "judge that settles contested pairs", None),
        (SPLIT, ("relevant", SPLIT[1], "majority"), "another rule", "unanimous -> majority"),
        (SPLIT, YES, "other grades by the same judges and prompts", "b C -> A"),
        (SPLIT, ("relevant", {"a": "S"}, "unanimous"), "another panel", "b C -> not asked"),
        (YES, ("incomplete", {"a": "S", "b": None}, "unanimous"), None, "b A -> no grade"),
        (YES, ("contested", YES[1], "unanimous"), UNEXPLAINED, ""),
    ],
)
def test_a_changed_verdict_has_its_reason(old: Said, new: Said, reason: str | None, detail: str | None) -> None:
    pair = ("q", "d")
    (row,) = changes(version({pair: old}), version({pair: new})).to_dicts()
    assert (row["before"], row["after"]) == (old[0], new[0])
    assert reason in (None, row["reason"])
    assert detail in (None, row["detail"])


def test_a_judge_of_another_prompt_is_told_from_one_that_answered_otherwise() -> None:
    old, new = version({("q", "d"): SPLIT}), version({("q", "d"): YES})
    other = replace(new, panels={"run": {"a": "1", "b": "2"}})
    assert changes(old, other)["reason"].to_list() == ["another model, prompt or rubric of a judge"]
    unknown = replace(new, panels={"manifest": {"a": "x", "b": "y"}})
    assert "say nothing alike" in changes(old, unknown)["reason"][0]


@pytest.mark.parametrize("policy", ["accepted-by-sum", "settled-by-c"])
def test_judges_that_moved_are_seen_behind_an_equal_threshold_or_settling_judge(policy: str) -> None:
    pair, name = ("q", "d"), "accept" if policy.startswith("accepted") else "settle"
    old, new = version({pair: ("contested", SPLIT[1], policy)}), version({pair: ("relevant", YES[1], policy)})
    old, new = replace(old, beyond={name: "6"}), replace(new, beyond={name: "6"})
    assert changes(old, new)["detail"].to_list() == ["b C -> A"]
    (row,) = changes(old, replace(new, beyond={name: "7"})).to_dicts()
    assert (row["reason"], row["detail"]) == (BEYOND[name], "6 -> 7")


def test_a_settling_judge_that_answered_otherwise_is_the_reason_though_it_is_the_same() -> None:
    old, new = (version({("q", "d"): (said, SPLIT[1], "settled-by-c")}) for said in ("relevant", "not relevant"))
    assert changes(old, new)["reason"].to_list() == [BEYOND["settle"]]


def test_another_gain_of_one_verdict_is_a_changed_label_where_both_versions_are_graded() -> None:
    pair = ("q", "d")
    old, new = version({pair: YES}), version({pair: ("relevant", {"a": "A", "b": "A"}, "unanimous")})
    gains = [pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [each]}) for each in (3, 2)]
    assert changes(replace(old, graded=gains[0]), new).is_empty()
    (row,) = changes(replace(old, graded=gains[0]), replace(new, graded=gains[1])).to_dicts()
    assert (row["gain_before"], row["gain_after"], row["detail"]) == (3, 2, "a S -> A")
    below = replace(old, graded=gains[1], gain="minimum")
    assert changes(replace(old, graded=gains[0]), below)["reason"].to_list() == ["another choice of the gain"]


def test_a_query_and_a_document_of_one_id_left_for_reasons_of_their_own() -> None:
    old, new = version({("x", "x"): YES, ("y", "x"): NO, ("y", "z"): NO}), version({("y", "z"): NO})
    gone = {("queries", "x"): "export: no positive", ("documents", "x"): "ingest: same text as z"}
    assert changes(old, replace(new, gone=gone))["detail"].to_list() == [*gone.values()]


def test_another_cut_explains_equal_grades() -> None:
    old, new = version({("q", "d"): NO}), version({("q", "d"): ("relevant", NO[1], "unanimous")})
    (row,) = changes(old, replace(new, cut="S A B C D, relevant from C")).to_dicts()
    assert row["reason"] == "another scale or cut"


def test_pairs_join_with_the_systems_that_found_them_and_leave_with_what_dropped_them() -> None:
    old = version({("q", "d"): YES, ("q", "e"): NO, ("r", "d"): NO}, {})
    new = version({("q", "d"): YES, ("q", "f"): YES}, {("q", "f"): ["new", "bm25"]})
    new = replace(new, documents={**new.documents, "e": "e"}, gone={("queries", "r"): "diversify: redundant (q)"})
    old = replace(old, documents={**old.documents, "f": "f"})
    assert [(row["doc_id"], row["reason"], row["detail"]) for row in changes(old, new).to_dicts()] == [
        ("e", "left the pool", ""),
        ("f", "joined the pool", "bm25, new"),
        ("d", "query left", "diversify: redundant (q)"),
    ]


def test_ids_that_changed_places_are_seen_though_all_texts_are_there() -> None:
    old, new = version({("q", "d"): YES, ("q", "e"): NO}), version({("q", "d"): NO, ("q", "e"): YES})
    new = replace(new, documents={"d": "e", "e": "d"})
    assert set(changes(old, new)["reason"]) == {"text of the document differs"}
    assert altered(old, new)["documents"]["text_differs"] == ["d", "e"]


def test_other_grades_under_one_verdict_are_counted_apart() -> None:
    old, new = version({("q", "d"): YES}), version({("q", "d"): ("relevant", {"a": "A", "b": "A"}, "unanimous")})
    assert (len(changes(old, new)), other_votes(old, new)) == (0, 1)


def test_without_a_common_relevant_query_no_score_is_defined_and_without_a_ranking_there_is_no_effect() -> None:
    old, new = version({("q", "d"): YES}), version({("q", "d"): NO})
    assert effects(old, new, NONE, 1) is None
    hit = {"query_id": "q", "retriever": "s", "doc_id": "d", "rank": 1, "score": 1.0}
    measured = effects(old, new, frame("rankings", [hit]), 1)
    assert measured is not None
    found: Any = measured.to_json()
    (row,) = found["systems"]
    assert found["tau"] == {"value": None, "low": None, "high": None}
    assert (row["own_before"], row["own_after"], row["rank_before"]) == (1.0, None, None)
