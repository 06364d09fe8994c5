"""Strata and allocation of an audit's sample, by hand."""

import math
from collections.abc import Mapping
from statistics import mean

import polars as pl
import pytest

from benchmarks.audit_design import audit, made, population
from curate.core.errors import ConfigError
from curate.core.records import TABLES
from curate.core.scale import FIVE
from curate.panel import audit_design, sampling_design
from curate.panel.audit_design import CLAIMED, FP, LABELLED, NEAR, REST, UNLABELLED

SIZES = {
    f"relevant{LABELLED}": 400, f"contested{LABELLED}": 100, f"not relevant{LABELLED}": 200,
    CLAIMED: 2_000, f"contested{UNLABELLED}": 1_000, NEAR: 4_000, REST: 40_000,
}  # fmt: skip


def pairs(*rows: tuple[str, str, str, Mapping[str, int | None]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return verdicts and pool of rows: document, verdict, grades of the judges, retriever -> rank; one query."""
    verdicts = [
        {
            "query_id": "q", "doc_id": doc, "verdict": verdict, "policy": "unanimous",
            "votes": [{"judge": f"j{at}", "grade": grade} for at, grade in enumerate(grades)],
        }
        for doc, verdict, grades, _ in rows
    ]  # fmt: skip
    pool = [
        {
            "query_id": "q", "doc_id": doc, "position": position,
            "hits": [{"retriever": name, "rank": rank, "score": None} for name, rank in ranks.items()],
        }
        for position, (doc, _, _, ranks) in enumerate(rows, start=1)
    ]  # fmt: skip
    return pl.DataFrame(verdicts, TABLES["verdicts"]), pl.DataFrame(pool, TABLES["pool"])


ROWS = (
    ("d01", "not relevant", "DDD", {"words": 10, "use": 90}),
    ("d02", "not relevant", "DDD", {"words": 11, "use": 1}),
    ("d03", "not relevant", "DCD", {"words": 50}),
    ("d04", "not relevant", "DCD", {"words": 51, "use": 2}),
    ("d05", "not relevant", "CCB", {"use": 3}),
    ("d06", "not positive", "C", {"words": 20, "use": 30}),
    ("d07", "incomplete", "S", {"words": 1}),
    ("d08", "contested", "SSD", {"use": 40}),
    ("d09", "relevant", "SSS", {"words": 60}),
    ("d10", "not relevant", "DDD", {"words": 1}),
    ("d11", "contested", "SDD", {"words": 1}),
    ("d12", "relevant", "SSA", {"legacy": None}),
)
LABELS = pl.DataFrame([("q", doc, 1) for doc in ("d10", "d11", "d12")], ["query_id", "doc_id", "score"], orient="row")


def strata(*lexical: str) -> dict[str, str]:
    verdicts, pool = pairs(*ROWS)
    named = audit_design.strata(verdicts, LABELS, pool, lexical, FIVE)
    assert named["doc_id"].is_sorted()
    return dict(named.select("doc_id", "stratum").iter_rows())


def test_seven_strata_by_label_verdict_and_nearness() -> None:
    """Near is rank 10 or better of a lexical retriever, or rank 50 or better with a grade above the worst."""
    assert strata("words", "bm25") == {
        "d01": NEAR, "d02": REST, "d03": NEAR, "d04": REST, "d05": REST, "d06": NEAR,
        "d07": f"contested{UNLABELLED}", "d08": f"contested{UNLABELLED}", "d09": CLAIMED,
        "d10": f"not relevant{LABELLED}", "d11": f"contested{LABELLED}", "d12": f"relevant{LABELLED}",
    }  # fmt: skip


def test_without_a_lexical_retriever_near_is_the_top_ten_of_any() -> None:
    named = strata("bm25")
    assert [doc for doc in ("d01", "d02", "d03", "d04", "d05", "d06") if named[doc] == NEAR] == [
        "d01", "d02", "d04", "d05"
    ]  # fmt: skip


def test_a_design_of_seven_strata_by_hand() -> None:
    """Of 1,000 rows 150 are for labels, 250 for what is uncertain, 600 for negatives; Neyman's allocation in each."""
    drawn = audit_design.allocate(SIZES, sampling_design.guesses(SIZES), 1_000)
    assert sum(drawn.values()) == 1_000
    groups = (
        (150, {f"relevant{LABELLED}": 0.05, f"contested{LABELLED}": 0.5, f"not relevant{LABELLED}": 0.3}),
        (250, {CLAIMED: 0.3, f"contested{UNLABELLED}": 0.2}),
        (600, {NEAR: 0.03, REST: 0.005}),
    )
    for rows, guesses in groups:
        weights = {name: SIZES[name] * math.sqrt(guess * (1 - guess)) for name, guess in guesses.items()}
        assert sum(drawn[name] for name in guesses) == rows
        for name, weight in weights.items():
            assert drawn[name] == pytest.approx(rows * weight / sum(weights.values()), abs=1)


def test_every_stratum_has_its_minimum() -> None:
    """Five rows with a label and ten without one."""
    least = {name: 5 if name.endswith(LABELLED) else 10 for name in SIZES}
    guesses = sampling_design.guesses(SIZES)
    assert audit_design.allocate(SIZES, guesses, 55) == least
    with pytest.raises(ConfigError, match=r"--size: found 54, .*use --size 55"):
        audit_design.allocate(SIZES, guesses, 54)
    assert audit_design.allocate({CLAIMED: 3, REST: 99}, guesses, 13) == {CLAIMED: 3, REST: 10}


@pytest.mark.parametrize("target", [None, FP])
def test_pairs_that_a_group_lacks_go_to_the_negatives_and_then_to_the_others(target: str | None) -> None:
    sizes = {f"relevant{LABELLED}": 4, CLAIMED: 90, f"not relevant{UNLABELLED}": 50}
    guesses = sampling_design.guesses(sizes)
    assert audit_design.allocate(sizes, guesses, 60, target)[f"relevant{LABELLED}"] == 4
    assert audit_design.allocate(sizes, guesses, 60, target)[CLAIMED] == 15
    assert audit_design.allocate(sizes, guesses, 130, target) == {**sizes, CLAIMED: 76}
    assert audit_design.allocate(sizes, guesses, 999, target) == sizes


@pytest.mark.slow
def test_the_false_negatives_of_a_made_population_are_narrower_and_covered() -> None:
    """Of 300 answers per audit; `benchmarks/audit_design.py` has more seeds and real sets."""
    truth = population()
    halves: dict[str, list[float]] = {"before": [], "after": []}
    covered = []
    for seed in range(16):
        audited = made(seed)
        for design, pairs_ in audited.frames.items():
            intervals = audit(pairs_, audited.queries, design, 300, truth, seed)
            assert intervals is not None
            halves[design].append(intervals[0].half)
            covered += [interval.holds for interval in intervals if design == "after"]
    assert mean(halves["after"]) < 0.7 * mean(halves["before"])
    assert mean(covered) > 0.85
