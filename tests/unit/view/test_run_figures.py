"""Figures of the report, on tables small enough to count by eye."""

import itertools
from collections import Counter

import polars as pl
import pytest

from curate.core.records import VERDICTS
from curate.stats.distribution import Bin, Spread, spread
from curate.system.files import frame
from curate.view import run_figures
from curate.view.run_figures import Drop, RetrieverGroup


def pool(**found: str) -> pl.DataFrame:
    """Return a pool of one query: document -> first letters of its retrievers."""
    rows = [
        {
            "query_id": "q",
            "doc_id": doc,
            "position": at,
            "hits": [{"retriever": r, "rank": 1, "score": 1.0} for r in by],
        }
        for at, (doc, by) in enumerate(found.items(), start=1)
    ]
    return frame("pool", rows)


def verdicts(*decided: str) -> pl.DataFrame:
    """Return verdicts of one query on documents d0, d1, ..."""
    rows = ({"query_id": "q", "doc_id": f"d{n:03}", "verdict": word} for n, word in enumerate(decided))
    return frame("verdicts", rows)


def test_overlap_counts_who_found_what() -> None:
    pooled = pool(d000="ab", d001="a", d002="b", d003="ab", d004="a")
    found = run_figures.overlap(pooled, verdicts("relevant", "relevant"))
    assert found.retrievers == ["a", "b"]
    assert found.pairs == 5
    assert (found.found, found.alone) == ([4, 3], [2, 1])
    assert (found.relevant, found.relevant_alone) == ([2, 1], [1, 0])
    assert found.together == [
        RetrieverGroup(("a",), 2, 1),
        RetrieverGroup(("a", "b"), 2, 1),
        RetrieverGroup(("b",), 1, 0),
    ]


def test_overlap_of_an_empty_pool_names_no_retriever() -> None:
    assert run_figures.overlap(pool(), verdicts()) == run_figures.Overlap([], 0, [], [], [], [], [])


def test_drops_are_counted_and_keep_the_order_of_the_stages() -> None:
    def dropped(stage: str, *reasons: str) -> pl.DataFrame:
        return frame("dropped", [{"table": "corpus", "id": "x", "stage": stage, "reason": each} for each in reasons])

    found = run_figures.drops([dropped("ingest", "b", "a", "a"), dropped("diversify"), dropped("consensus", "c")])
    assert found == [
        Drop("ingest", "corpus", "a", 2),
        Drop("ingest", "corpus", "b", 1),
        Drop("consensus", "corpus", "c", 1),
    ]


def test_per_query_keeps_queries_without_candidates() -> None:
    queries = frame("queries", [{"query_id": "z", "text": "无"}, {"query_id": "q", "text": "有"}])
    found = run_figures.per_query(queries, pool(d000="a", d001="a"), verdicts("relevant", "contested"))
    assert [(row.query_id, row.pool, row.verdicts) for row in found] == [
        ("z", 0, (0, 0, 0, 0, 0)),
        ("q", 2, (1, 0, 1, 0, 0)),
    ]


def test_spread_of_small_numbers_has_a_bin_a_number() -> None:
    found = spread([3, 0, 1, 1])
    assert (found.low, found.median, found.mean, found.p95, found.high) == (0, 1, 1.25, 3, 3)
    assert found.bins == [Bin(0, 0, 1), Bin(1, 1, 2), Bin(2, 2, 0), Bin(3, 3, 1)]


def test_an_outlier_goes_to_an_open_last_bin() -> None:
    bins = spread([*range(100), *range(100), 9_999]).bins
    assert bins[0] == Bin(0, 9, 20)
    assert bins[-1] == Bin(100, None, 1)
    assert sum(each.count for each in bins) == 201


@pytest.mark.parametrize("scale", [1, 7, 130, 99_999])
def test_bins_are_few_and_hold_every_number(scale: int) -> None:
    numbers = [scale * each for each in range(50)]
    bins = spread(numbers).bins
    assert len(bins) <= 15
    assert sum(each.count for each in bins) == 50
    assert all(before.high == after.low - 1 for before, after in itertools.pairwise(bins) if before.high)


def test_spread_of_nothing_is_not_defined() -> None:
    assert spread([]) == Spread(0, None, None, None, None, None, [])


def test_sample_takes_as_much_of_every_verdict_as_there_is() -> None:
    table = verdicts(*["relevant"] * 3, *["not relevant"] * 500, *["contested"] * 60)
    drawn = run_figures.stratified(table, 20, seed=7)
    assert Counter(verdict for _, _, verdict in drawn) == {"relevant": 3, "not relevant": 9, "contested": 8}
    assert len(set(drawn)) == 20
    assert run_figures.stratified(table.reverse(), 20, seed=7) == drawn, "the draw depends on ids, not on their order"
    assert run_figures.stratified(table, 20, seed=8) != drawn


def test_queries_to_read_are_drawn_whole_and_their_pairs_by_verdict() -> None:
    rows = [(query, f"d{n:02}", "relevant" if n < 2 else "contested") for query in "abcde" for n in range(9)]
    table = frame("verdicts", ({"query_id": q, "doc_id": d, "verdict": v} for q, d, v in rows))
    drawn = run_figures.by_query(table, 3, 5, seed=7)
    queries = [query for query, _, _ in drawn]
    assert queries == sorted(queries)
    assert Counter(Counter(queries).values()) == {5: 3}
    assert Counter(verdict for _, _, verdict in drawn) == {"relevant": 6, "contested": 9}
    assert drawn == run_figures.by_query(table.reverse(), 3, 5, seed=7)
    assert sorted(run_figures.by_query(table, 99, 99, seed=7)) == sorted(rows)
    assert run_figures.by_query(table, 0, 5, seed=7) == []


def test_of_a_query_what_is_not_relevant_is_read_last() -> None:
    drawn = run_figures.by_query(verdicts("not relevant", "contested", "relevant", "not relevant"), 1, 9, seed=7)
    assert [verdict for _, _, verdict in drawn] == ["relevant", "contested", "not relevant", "not relevant"]


def test_a_small_table_is_shown_whole_and_once() -> None:
    assert len(run_figures.stratified(verdicts(*VERDICTS), 20, seed=1)) == len(VERDICTS)
    assert run_figures.stratified(verdicts(*VERDICTS), 0, seed=1) == []


@pytest.mark.parametrize(
    ("figure", "bounds", "shown"),
    [
        (0.7312, [0.701, 0.7649], "0.731 (0.70–0.76)"),
        (-0.05, [-0.1, 0.02], "-0.050 (-0.10 – 0.02)"),
        (-0.263, [-0.33, -0.19], "-0.263 (-0.33 – -0.19)"),
        (0.013, [-0.001, 0.08], "0.013 (0.00–0.08)"),
        (0.069, [0.0608, 0.0773], "0.069 (0.061–0.077)"),
        (0.013, [-0.001, 0.03], "0.013 (-0.001 – 0.030)"),
        (1.0, None, "1.000"),
        (0.0, [0.0, 0.0], "0.000 (0.00–0.00)"),
        (None, None, None),
    ],
)
def test_a_figure_stands_with_its_interval(figure: float | None, bounds: list[float] | None, shown: str | None) -> None:
    assert run_figures.ranged(figure, bounds) == shown


def test_only_a_panel_without_any_other_judge_is_heuristic() -> None:
    assert run_figures.only_heuristics(["lexical", "use"], ["use", "lexical", "e5"])
    assert not run_figures.only_heuristics(["lexical", "model"], ["lexical"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("短", "短"),
        ("一二三四", "一二三四"),
        ("一二三四五", "一二三四…"),
        ("一\n  二", "一 二"),
        ("𠮷𠮷𠮷𠮷𠮷", "𠮷𠮷𠮷𠮷…"),
    ],
)
def test_excerpt_counts_code_points(text: str, shown: str) -> None:
    assert run_figures.excerpt(text, 4) == shown


def test_who_did_not_pass_the_gate_is_known_from_the_report_of_the_stage() -> None:
    judges = {"a": {"state": "passed"}, "b": {"state": "weak"}, "c": {"state": "not enough"}}
    assert run_figures.failed({"gate": {"judges": judges}}) == ["b", "c"]
    assert run_figures.failed({"gate": {"allow_weak_judges": True}}) == run_figures.failed({"gate": None}) == []
    assert run_figures.failed({}) == []
