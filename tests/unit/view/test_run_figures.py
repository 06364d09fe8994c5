"""Figures of the report, on tables small enough to count by eye."""

import itertools

import polars as pl
import pytest

from curate.stats.distribution import Bin, Spread, spread
from curate.system.files import frame
from curate.view import run_figures
from curate.view.run_figures import Drop, RetrieverGroup
from curate.view.words import strings


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
    assert found.bins == (Bin(0, 0, 1), Bin(1, 1, 2), Bin(2, 2, 0), Bin(3, 3, 1))


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
    assert spread([]) == Spread(0, None, None, None, None, None, ())


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
    assert run_figures.weak(judges) == ["b"], "too few controls show nothing"
    assert run_figures.failed({"gate": {"allow_weak_judges": True}}) == run_figures.failed({"gate": None}) == []
    assert run_figures.failed({}) == []


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        ((0.994, 0.986, 0.999), "99.4 % (98.6–99.9)"),
        ((0.94, 0.9, 0.97), "94 % (90–97)"),
        ((1.0, 0.9, 1.0), "100 % (90–100)"),
        ((0.5, None, None), "50 %"),
    ],
)
def test_a_share_has_a_decimal_where_whole_percents_would_hide_something(
    figure: tuple[float | None, ...], shown: str
) -> None:
    assert run_figures.percents(dict(zip(("value", "low", "high"), figure, strict=True)), strings("en")) == shown
