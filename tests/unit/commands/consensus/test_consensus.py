"""Consensus on a small run folder, and on real grades whose figures are known."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

from curate.core.records import TABLES
from curate.panel.agreement_figures import Kind
from curate.system.files import frame, read_json, write_json, write_table
from tests.support.pools import QUERIES, pooled, step, table

PANEL = ["a", "b", "c"]
# Votes of a, b, c on the documents of each query.
VOTES = {
    "q1": {"d1": "SSA", "d2": "SAB", "d3": "DDD", "d4": "BCD", "d5": "SS-"},
    "q2": {"d1": "DDC", "d2": "AAA", "d3": "-AD", "d4": "DD-", "d5": "SSS"},
}
TEXTS = {doc_id: f"文本{doc_id}" for doc_id in VOTES["q1"]}


def rated(run: Path, votes: Mapping[str, Mapping[str, str]] = VOTES, panel: Sequence[str] = PANEL) -> Path:
    """Write what the judge stage leaves: ratings and panel; `-` is a rating that failed."""
    rows = [
        {
            "query_id": query_id,
            "doc_id": doc_id,
            "judge": judge,
            "grade": None if grade == "-" else grade,
            "status": "failed" if grade == "-" else "rated",
            "replicate": 0,
        }
        for query_id, documents in votes.items()
        for doc_id, grades in documents.items()
        for judge, grade in zip(PANEL, grades, strict=True)
        if judge in panel
    ]
    (run / "judge").mkdir(parents=True)
    write_table(run / "judge", "ratings", frame("ratings", rows))
    write_table(run / "judge", "samples", frame("samples"))
    write_json(run / "judge" / "panel.json", {judge: {"heuristic": judge} for judge in PANEL})
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return rated(pooled(tmp_path, TEXTS))


def pairs(run: Path, name: str) -> list[tuple[str, str]]:
    return table(run, "consensus", name).select("query_id", "doc_id").rows()


def test_every_pair_has_one_verdict_and_doubtful_ones_a_table(run: Path) -> None:
    report = step(run, "consensus")
    verdicts = {
        (q, d): v for q, d, v in table(run, "consensus", "verdicts").select("query_id", "doc_id", "verdict").rows()
    }
    assert verdicts == {
        ("q1", "d1"): "relevant",
        ("q1", "d2"): "contested",
        ("q1", "d3"): "not relevant",
        ("q1", "d4"): "not relevant",
        ("q1", "d5"): "incomplete",
        ("q2", "d1"): "not relevant",
        ("q2", "d2"): "relevant",
        ("q2", "d3"): "contested",  # two disagree, the third is missing
        ("q2", "d4"): "incomplete",
        ("q2", "d5"): "relevant",
    }
    assert table(run, "consensus", "qrels").rows() == [("q1", "d1", 1), ("q2", "d2", 1), ("q2", "d5", 1)]
    assert pairs(run, "contested") == [("q1", "d2"), ("q2", "d3")]
    assert pairs(run, "incomplete") == [("q1", "d5"), ("q2", "d4")]
    assert table(run, "consensus", "dropped").is_empty()
    assert (report.rows_in, report.rows_out, report.dropped) == (10, 6, 4)
    for name in ("verdicts", "contested", "incomplete", "qrels", "dropped"):
        assert table(run, "consensus", name).schema == pl.Schema(TABLES[name])


def test_the_figures_are_those_of_the_tables(run: Path) -> None:
    report = step(run, "consensus")
    figures = read_json(run / "consensus" / "agreement.json")
    assert figures["counts"] == dict(report.facts)
    assert report.facts == {
        "relevant": 3,
        "not relevant": 3,
        "contested": 2,
        "incomplete": 2,
        "not positive": 0,
        "queries": 2,
        "queries_with_a_positive": 2,
        "relevant_per_query": 1.5,
        "not relevant_per_query": 1.5,
        "contested_per_query": 1.0,
        "incomplete_per_query": 1.0,
        "not positive_per_query": 0.0,
    }
    assert figures["grades"]["a"] == {"A": 1, "B": 1, "D": 3, "S": 4, "failed": 1}
    assert (figures["panel"], figures["policy"]) == (PANEL, "unanimous")
    assert figures["cut"]["unanimous"] == 8  # a pair with two equal ratings counts, as it does for kappa
    assert figures["all_grades"]["unanimous"] == 5
    assert figures["cut"]["items"] == 10


def test_figures_have_intervals_over_queries(tmp_path: Path) -> None:
    """All queries alike: every sample of queries gives the same figures, so an interval is its figure."""
    alike = {f"q{n}": VOTES["q1"] for n in range(4)}
    step(rated(pooled(tmp_path, TEXTS, dict.fromkeys(alike, "问")), alike), "consensus")
    figures = read_json(tmp_path / "consensus" / "agreement.json")
    for side in ("all_grades", "cut"):
        block = figures[side]
        assert block["clusters"] == 4
        assert set(block["intervals"]) == set(Kind(5).measures)
        for name in ("percent", "fleiss", "ac1"):
            assert block["intervals"][name] == pytest.approx([block[name]] * 2, abs=2e-6)
        low, high = block["intervals"]["alpha_ordinal"]  # alpha's correction for few items depends on their number only
        assert low == high == pytest.approx(block["alpha_ordinal"], abs=2e-6)


def test_intervals_resample_queries_not_pairs(run: Path) -> None:
    step(run, "consensus")
    block = read_json(run / "consensus" / "agreement.json")["cut"]
    # Pairs of judges that agree. q1: 1, 1/3, 1, 1, 1 = 13/15. q2: 1, 1, 0, 1, 1 = 4/5. No sample lies outside.
    assert block["intervals"]["percent"] == pytest.approx([0.8, 13 / 15], abs=1e-6)
    assert block["percent"] == pytest.approx(5 / 6, abs=1e-6)


def test_one_query_has_no_interval(tmp_path: Path) -> None:
    step(rated(pooled(tmp_path, TEXTS), {"q1": VOTES["q1"]}), "consensus")
    block = read_json(tmp_path / "consensus" / "agreement.json")["cut"]
    assert (block["clusters"], set(block["intervals"].values())) == (1, {None})
    assert block["percent"] is not None


def test_the_top_of_a_deep_pool_is_measured_apart(tmp_path: Path) -> None:
    """60 pairs: the first 50 agree in full, the last ten not at all."""
    documents = {f"d{n:02}": f"文本{n}" for n in range(60)}
    votes = {"q1": {name: ("SSS", "DDD")[n % 2] if n < 50 else "SDS" for n, name in enumerate(documents)}}
    step(rated(pooled(tmp_path, documents, {"q1": "问"}), votes), "consensus")
    figures = read_json(tmp_path / "consensus" / "agreement.json")
    assert (figures["cut"]["items"], figures["cut"]["percent"]) == (60, pytest.approx((50 + 10 / 3) / 60, abs=1e-6))
    top = figures["top_50"]
    assert [(top[side]["items"], top[side]["percent"], top[side]["fleiss"]) for side in ("all_grades", "cut")] == [
        (50, 1.0, 1.0)
    ] * 2


def test_a_shallow_pool_has_no_top_of_its_own(run: Path) -> None:
    step(run, "consensus")
    assert read_json(run / "consensus" / "agreement.json")["top_50"] is None


def test_a_judge_without_any_rating_still_sits_on_the_panel(tmp_path: Path) -> None:
    run = rated(pooled(tmp_path, TEXTS), panel=["a", "b"])
    report = step(run, "consensus")
    assert report.facts["incomplete"] == report.rows_in == 10
    figures = read_json(run / "consensus" / "agreement.json")
    assert figures["panel"] == PANEL
    assert "c" not in figures["grades"]
    [first, *_] = table(run, "consensus", "verdicts")["votes"].to_list()
    assert first == [{"judge": "a", "grade": "S"}, {"judge": "b", "grade": "S"}, {"judge": "c", "grade": None}]


def ranked(run: Path, *documents: str) -> None:
    """Write rankings of one retriever: the same order for every query."""
    rows = (
        {"query_id": query_id, "retriever": "r", "doc_id": doc_id, "rank": rank, "score": 1.0 / rank}
        for query_id in QUERIES
        for rank, doc_id in enumerate(documents, 1)
    )
    write_table(run / "pool", "rankings", frame("rankings", rows))


def test_a_refined_corpus_says_what_it_leaves_out_and_what_that_does(run: Path) -> None:
    ranked(run, "d4", "d3", "d1", "d2", "d5")
    report = step(run, "consensus", {"corpus": "refined"})
    dropped = table(run, "consensus", "dropped")
    # d2 and d5 are in doubt for one query and positive for the other; d3 and d4 are in doubt and positive nowhere.
    assert dropped.select("table", "id", "stage").rows() == [
        ("corpus", "d3", "consensus"),
        ("corpus", "d4", "consensus"),
    ]
    assert set(dropped["reason"]) == {"refined corpus: contested or incomplete somewhere, positive nowhere"}
    effect = report.facts["ndcg_at_10"]
    # q1: d1 at rank 3 (1/log2 4 = 0.5), then at 1; q2: d2 and d5 at 4 and 5, then at 2 and 3, of an ideal 1 + 0.6309.
    assert effect == {
        "r": {"full": round((0.5 + 0.8175 / 1.6309) / 2, 4), "refined": round((1 + 1.1309 / 1.6309) / 2, 4)}
    }


def test_without_a_positive_refinement_has_no_effect_to_report(tmp_path: Path) -> None:
    run = rated(pooled(tmp_path, TEXTS), {"q1": {"d1": "SSD", "d2": "DDD"}})
    ranked(run, "d1", "d2")
    report = step(run, "consensus", {"corpus": "refined"})
    assert report.facts["ndcg_at_10"] == {"r": {"full": None, "refined": None}}
    assert report.facts["queries_with_a_positive"] == 0


def test_nothing_to_decide_is_no_error_and_no_number(tmp_path: Path) -> None:
    report = step(rated(pooled(tmp_path, TEXTS), {}), "consensus")
    figures = read_json(tmp_path / "consensus" / "agreement.json")
    assert (report.rows_in, figures["cut"]["fleiss"], figures["cut"]["percent"]) == (0, None, None)


def test_the_same_ratings_give_the_same_bytes(run: Path) -> None:
    step(run, "consensus")
    before = {path.name: path.read_bytes() for path in (run / "consensus").iterdir()}
    ratings = table(run, "judge", "ratings")
    write_table(run / "judge", "ratings", ratings.sample(fraction=1, shuffle=True, seed=3))
    step(run, "consensus")
    assert {path.name: path.read_bytes() for path in (run / "consensus").iterdir()} == before
