"""Leave one retriever out, depth, saturation and holes: by hand, and counted again without frames."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.pool.stage import pool as pooled
from curate.core.figures import Figure
from curate.runs import rankings as coverage
from curate.runs import rankings as deeper
from curate.runs import rankings as unjudged
from curate.stats.bootstrap import divided, measured
from curate.system.files import frame

NAMES = ("a", "b", "c")
DOCS = [f"d{n:02}" for n in range(12)]
RUNS = st.lists(
    st.tuples(*(st.lists(st.sampled_from(DOCS), unique=True, max_size=10) for _ in NAMES)), min_size=1, max_size=4
)


def tables(runs: list[tuple[list[str], ...]], size: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tables `rankings` and `pool` (equal-depth) of lists by query and retriever."""
    rows = [
        {"query_id": f"q{n}", "retriever": name, "doc_id": doc, "rank": rank, "score": 1.0 / rank}
        for n, lists in enumerate(runs)
        for name, docs in zip(NAMES, lists, strict=True)
        for rank, doc in enumerate(docs, start=1)
    ]
    rankings = frame("rankings", rows)
    return rankings, pooled(rankings, size, "equal-depth")


def labelled(pairs: set[tuple[str, str]]) -> pl.DataFrame:
    return frame("qrels", ({"query_id": q, "doc_id": d, "score": 1} for q, d in sorted(pairs)))


def gain(ranked: list[str], good: set[str]) -> float:
    best = sum(1 / math.log2(n + 2) for n in range(min(10, len(good))))
    return sum(1 / math.log2(n + 2) for n, doc in enumerate(ranked[:10]) if doc in good) / best


@pytest.mark.slow
@given(RUNS, st.integers(1, 20), st.sets(st.integers(0, 11)), st.sampled_from(NAMES))
def test_counted_again_without_frames(
    runs: list[tuple[list[str], ...]], size: int, good: set[int], without: str
) -> None:
    rankings, pool = tables(runs, size)
    pooled = set(pool.select("query_id", "doc_id").iter_rows())
    pairs = {(query, doc) for query, doc in pooled if int(doc[1:]) in good}
    depth = coverage.depths(rankings, pool)
    found = coverage.founders(pool, labelled(pairs), depth)

    by: dict[tuple[str, str], set[str]] = {pair: set() for pair in pairs}
    for n, lists in enumerate(runs):
        deepest = max(map(len, lists))
        whole = max(
            (d for d in range(deepest + 1) if all((f"q{n}", doc) in pooled for docs in lists for doc in docs[:d])),
        )
        assert dict(depth.iter_rows()).get(f"q{n}", 0) == whole
        for name, docs in zip(NAMES, lists, strict=True):
            for doc in docs[:whole]:
                by.get((f"q{n}", doc), set()).add(name)
    assert {(q, d): set(names) for q, d, _, names in found.iter_rows()} == by

    relevant = coverage.labels(labelled(pairs))
    left = coverage.leave_out(coverage.lists(rankings), relevant, found, without, seed=1)
    rest = pairs - {pair for pair, names in by.items() if names == {without}}
    kept = sorted({query for query, _ in rest})
    assert left.found == sum(without in names for names in by.values())
    assert left.alone == len(pairs) - len(rest)
    assert left.lost == len({query for query, _ in pairs}) - len(kept)
    for change in left.changes:
        column = NAMES.index(change.system)
        ranked = {query: runs[int(query[1:])][column] for query in kept}
        for figure, labels in ((change.ndcg, pairs), (change.without, rest)):
            goods = {query: {doc for q, doc in labels if q == query} for query in kept}
            wanted = [gain(ranked[query], goods[query]) for query in kept]
            assert figure.value == (pytest.approx(sum(wanted) / len(wanted), abs=1e-5) if wanted else None)


def test_the_depth_of_an_equal_depth_pool_is_the_one_it_was_pooled_to() -> None:
    rankings, pool = tables([(["d00", "d01", "d02"], ["d03", "d00", "d04"], ["d05", "d06", "d07"])], size=6)
    # tops of 2 are d00 d01 d03 d05 d06; at 3 there would be 8
    assert coverage.depths(rankings, pool).rows() == [("q0", 2)]


def test_what_fusion_filled_up_is_nobodys() -> None:
    rankings, pool = tables([(["d00", "d01", "d02"], ["d03", "d00", "d04"], ["d05", "d06", "d07"])], size=6)
    filled = (set(pool["doc_id"]) - {"d00", "d01", "d03", "d05", "d06"}).pop()
    found = coverage.founders(pool, labelled({("q0", filled)}), coverage.depths(rankings, pool))
    assert found["by"].to_list() == [[]]


def test_without_a_relevant_document_nothing_is_defined() -> None:
    rankings, pool = tables([(["d00"], ["d01"], [])], size=5)
    found = coverage.founders(pool, labelled(set()), coverage.depths(rankings, pool))
    left = coverage.leave_out(coverage.lists(rankings), {}, found, "a", seed=1)
    assert left.tau == left.share == left.changes[0].ndcg == Figure(None)


def marked(flags: dict[str, list[int]]) -> pl.DataFrame:
    rows = [(query, n, flag, len(each)) for query, each in flags.items() for n, flag in enumerate(each, start=1)]
    return pl.DataFrame(rows, ["query_id", "position", "relevant", "size"], orient="row")


def test_bands_and_curve() -> None:
    pairs = marked({"q1": [1] * 3 + [0] * 12, "q2": [0, 1] + [0] * 8 + [1]})
    found = deeper.bands(pairs, seed=1)
    assert [(b.low, b.high, b.queries, b.pairs, b.relevant, b.cumulated, b.a_query) for b in found] == [
        (1, 10, 2, 20, 4, 4, 2.0),
        (11, 15, 2, 6, 1, 5, 2.5),
    ]
    assert found[0].rate.value == 0.2
    assert deeper.curve(pairs) == [1, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5]


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), st.lists(st.integers(0, 1), min_size=1), min_size=1))
def test_bands_cover_every_pair_once(flags: dict[str, list[int]]) -> None:
    pairs = marked(flags)
    found = deeper.bands(pairs, seed=1)
    assert sum(band.pairs for band in found) == len(pairs)
    assert found[-1].cumulated == deeper.curve(pairs)[-1] == sum(map(sum, flags.values()))
    assert {one.high + 1 for one in found[:-1]} == {other.low for other in found[1:]}


@pytest.mark.parametrize(
    ("flags", "late"),
    [
        ([0, 0, 0, 1], None),  # a pool under five has no last fifth
        ([0, 0, 0, 0, 1], 1),
        ([0, 0, 0, 1, 0], None),
        ([1] * 9, 1),
        ([1] * 10, 2),
    ],
)
def test_the_last_fifth(flags: list[int], late: int | None) -> None:
    found = deeper.unsaturated(marked({"q": flags}))
    assert [each.late for each in found] == ([late] if late else [])


def test_holes_and_condensed_lists() -> None:
    verdicts = {("q1", "r"): "relevant", ("q1", "n"): "not relevant", ("q1", "c"): "contested"}
    relevant = {"q1": frozenset({"r"}), "q2": frozenset({"r"})}
    found = unjudged.covered("s", {"q1": ["c", "hole", "n", "r"]}, verdicts, relevant, seed=1)
    assert found.stock.value == pytest.approx((1 / math.log2(5)) / 2, abs=1e-6)
    assert found.condensed.value == pytest.approx((1 / math.log2(3)) / 2, abs=1e-6)
    assert found.absent == 1
    at = found.depths[0]
    assert (at.k, at.documents, at.holes, at.doubtful, at.judged.value) == (10, 4, 1, 1, 0.75)


def test_a_mean_and_its_interval_by_hand() -> None:
    random = np.random.default_rng(2)
    values = random.normal(5, 2, 400)
    sums = np.column_stack([np.ones(400), values])
    (figure,) = measured(sums, lambda each: divided(each[..., 1:], each[..., :1]), seed=1)
    assert figure.value == pytest.approx(values.mean(), abs=1e-6)
    half = 1.96 * values.std() / 20
    assert figure.low == pytest.approx(values.mean() - half, abs=0.03)
    assert figure.high == pytest.approx(values.mean() + half, abs=0.03)


def test_no_interval_of_one_query() -> None:
    assert measured(np.array([[1.0, 3.0]]), lambda each: each[..., 1:], seed=1) == [Figure(3.0)]
