"""All measures of some ratings at once: the same figures as one by one, and intervals as by literal resampling."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.core.scale import FIVE, Scale
from curate.panel.agreement_figures import PAIRED, SCHEMES, Kind, Level, figures, on_grades, on_parts
from curate.stats.agreement import Scheme, ac, alpha, cohen, cohen_error, cohen_slope, fleiss_z, measure, scalar
from curate.stats.bootstrap import resamples
from curate.stats.tally import compress, crosstab, tally
from tests.support.literal import K, Rows, cohen_pairs, fleiss_gwet, gwet, krippendorff, observed, total, uniform
from tests.support.scales import scales

Matrix = npt.NDArray[np.int64]
MATRICES = st.integers(2, 4).flatmap(
    lambda raters: st.lists(st.lists(st.integers(-1, K - 1), min_size=raters, max_size=raters), min_size=1, max_size=8)
)
ONE_BY_ONE: dict[str, Callable[[Rows], Fraction | None]] = {
    "percent": observed,
    "fleiss": fleiss_gwet,
    "randolph": uniform,
    "alpha_nominal": lambda codes: krippendorff(codes, "nominal"),
    "alpha_ordinal": lambda codes: krippendorff(codes, "ordinal"),
    "alpha_interval": lambda codes: krippendorff(codes, "interval"),
    "ac1": lambda codes: gwet(codes, "nominal"),
    "ac2_linear": lambda codes: gwet(codes, "linear"),
    "ac2_quadratic": lambda codes: gwet(codes, "quadratic"),
}


def close(found: float | None, want: Fraction | float | None) -> bool:
    return found is want if found is None or want is None else found == pytest.approx(float(want), abs=2e-6)


def names(codes: Rows) -> list[str]:
    return [f"r{place}" for place in range(len(codes[0]))]


def panel(queries: int, each: int, seed: int) -> tuple[Matrix, Matrix]:
    """Return codes of three judges with gaps, and the query of each item."""
    random = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), each)
    truth = random.integers(0, K, (len(query), 1))
    codes = np.where(random.random((len(query), 3)) < 0.7, truth, random.integers(0, K, (len(query), 3)))
    return np.where(random.random(codes.shape) < 0.1, -1, codes), query


@settings(max_examples=100)
@given(MATRICES)
def test_every_figure_again_in_literal_loops(codes: Rows) -> None:
    found: Any = figures(codes, Kind(K), names(codes), seed=0, replicates=0).to_json()
    for name, literal in ONE_BY_ONE.items():
        assert close(found[name], literal(codes)), name
    for pair, (one, other) in zip(found["pairs_of_raters"], combinations(range(len(codes[0])), 2), strict=True):
        both = [[row[one], row[other]] for row in codes]
        assert pair["items"] == sum(min(row) >= 0 for row in both)
        for scheme in SCHEMES:
            assert close(pair[scheme], cohen_pairs(both, scheme))


@settings(max_examples=100)
@given(MATRICES, st.data())
def test_what_must_not_change_figures(codes: Rows, data: st.DataObject) -> None:
    """Neither the order of raters, nor that of items, nor items twice (alpha apart), nor grades renamed if nominal."""
    raters = data.draw(st.permutations(range(len(codes[0]))))
    renamed = [*data.draw(st.permutations(range(K))), -1]

    def run(rows: Rows, scale: Level = "interval") -> dict[str, Any]:
        return figures(rows, Kind(K, scale), names(rows), seed=0, replicates=0).to_json()

    before, moved = run(codes), run([[row[rater] for rater in raters] for row in codes[::-1]])
    twice, nominal = run(codes * 2), run([[renamed[code] for code in row] for row in codes], "nominal")
    for name in ONE_BY_ONE:
        assert close(moved[name], before[name])
        assert close(twice[name], before[name]) or name.startswith("alpha")
        assert name not in nominal or close(nominal[name], before[name])
    by_pair = {frozenset(raters[int(name[1:])] for name in pair["raters"]): pair for pair in moved["pairs_of_raters"]}
    for pair in before["pairs_of_raters"]:
        other = by_pair[frozenset(int(name[1:]) for name in pair["raters"])]
        assert all(close(other[scheme], pair[scheme]) for scheme in SCHEMES)
    assert {pair["nominal"] for pair in nominal["pairs_of_raters"]} == {p["nominal"] for p in before["pairs_of_raters"]}


def test_intervals_are_those_of_a_literal_resampling() -> None:
    """Draw the same queries, put their items end to end, and measure again, one figure at a time."""
    codes, query = panel(12, 5, seed=1)
    found: Any = figures(codes, Kind(K), ["a", "b", "c"], query, seed=5, replicates=40).to_json()
    (weights,) = resamples(12, 40, seed=5)
    samples = [np.concatenate([codes[query == q] for q in range(12) for _ in range(int(row[q]))]) for row in weights]
    for name in ONE_BY_ONE:
        each = [getattr(measure(sample, K), name) for sample in samples]
        assert found["intervals"][name] == pytest.approx(np.quantile(each, [0.025, 0.975]).tolist(), abs=2e-6)
    for place, (one, other) in enumerate(combinations(range(3), 2)):
        for scheme in SCHEMES:
            each = [scalar(cohen(crosstab(sample[:, one], sample[:, other], K), scheme)) for sample in samples]
            got = found["pairs_of_raters"][place]["intervals"][scheme]
            assert got == pytest.approx(np.quantile(each, [0.025, 0.975]).tolist(), abs=2e-6)


def test_items_are_resampled_where_there_are_no_clusters() -> None:
    """Equal items are drawn together, which is the same law: the interval is that of items labelled one by one."""
    codes, _ = panel(60, 5, seed=2)
    alike: Any = figures(codes, Kind(K), ["a", "b", "c"], seed=1, replicates=4000).to_json()
    apart: Any = figures(codes, Kind(K), ["a", "b", "c"], np.arange(len(codes)), seed=1, replicates=4000).to_json()
    assert alike["clusters"] == apart["clusters"] == 300
    for name in ONE_BY_ONE:
        assert alike[name] == apart[name]
        assert alike["intervals"][name] == pytest.approx(apart["intervals"][name], abs=0.01)
    assert alike["intervals"]["fleiss"] != apart["intervals"]["fleiss"]


def test_the_cut_and_the_grades_are_measured_from_one_count() -> None:
    codes, query = panel(20, 6, seed=3)
    both: Any = on_grades(codes, ["a", "b", "c"], query, FIVE, seed=1).to_json()
    sides = np.where(codes < 0, -1, codes > 1)
    assert both["all_grades"] == figures(codes, Kind(5), ["a", "b", "c"], query, seed=1).to_json()
    assert both["cut"] == figures(sides, Kind(2), ["a", "b", "c"], query, seed=1).to_json()
    assert both["cut"]["pairs_of_raters"][0]["linear"] == both["cut"]["pairs_of_raters"][0]["nominal"]


def test_all_the_same_is_not_defined() -> None:
    found: Any = figures([[2, 2], [2, 2], [2, 2]], Kind(3), ["a", "b"], seed=0).to_json()
    undefined = ("fleiss", "alpha_nominal", "alpha_ordinal", "alpha_interval")
    assert [found[name] for name in undefined] == [None] * 4
    assert [found["intervals"][name] for name in undefined] == [None] * 4
    assert (found["percent"], found["ac1"], found["unanimous"]) == (1, 1, 3)
    assert found["pairs_of_raters"][0]["nominal"] is None
    assert found["pairs_of_raters"][0]["error"] is None


def test_a_scale_allows_what_it_can_carry() -> None:
    nominal: Any = figures([[0, 1], [1, 1]], Kind(2, "nominal"), ["a", "b"], seed=0).to_json()
    ordinal: Any = figures([[0, 1], [1, 1]], Kind(2, "ordinal"), ["a", "b"], seed=0).to_json()
    assert "alpha_ordinal" not in nominal
    assert "linear" not in nominal["pairs_of_raters"][0]
    assert "alpha_interval" not in ordinal
    assert {"ac2_linear", "ac2_quadratic", "alpha_ordinal"} < ordinal.keys()


@settings(max_examples=60)
@given(MATRICES, st.lists(st.integers(0, 20), min_size=K, max_size=K, unique=True))
def test_unequal_steps(codes: Rows, steps: list[int]) -> None:
    """Distances are those of the numbers themselves: with literal sums over all pairs of ratings."""
    steps = sorted(steps)
    sums = tally(codes, K).sums()
    rows = [[steps[code] for code in row if code >= 0] for row in codes]
    every = [value for row in rows if len(row) > 1 for value in row]
    if len(set(every)) > 1:
        within = total(
            total(Fraction((a - b) ** 2) for a in row for b in row) / (len(row) - 1) for row in rows if len(row) > 1
        )
        between = total(Fraction((a - b) ** 2) for a in every for b in every) / (len(every) - 1)
        assert float(alpha(sums, "interval", steps)) == pytest.approx(float(1 - within / between), abs=1e-9)
    even = [2 * place + 3 for place in range(K)]
    schemes: tuple[Scheme, ...] = ("linear", "quadratic")
    for scheme in schemes:
        assert np.array_equal(ac(sums, scheme, even), ac(sums, scheme), equal_nan=True)


def test_errors_of_independent_items_against_the_jackknife() -> None:
    """Leave each item out in turn: the spread of the figures is that of the delta method, in the long run."""
    random = np.random.default_rng(4)
    first = random.integers(0, 3, 3000)
    second = np.where(random.random(3000) < 0.7, first, random.integers(0, 3, 3000))
    table = crosstab(first, second, 3)
    left = table.table[None] - np.eye(9).reshape(9, 3, 3)
    each = cohen(type(table)(left))
    times = table.table.ravel()
    mean = (times * each).sum() / times.sum()
    jackknife = np.sqrt((times * (each - mean) ** 2).sum() * (3000 - 1) / 3000)
    assert float(cohen_error(table)) == pytest.approx(float(jackknife), rel=0.01)
    assert cohen_slope(table).shape == (3, 3)


def test_z_is_standard_normal_if_raters_guess() -> None:
    random = np.random.default_rng(5)
    z = [float(fleiss_z(tally(random.choice(3, (200, 4), p=[0.2, 0.3, 0.5]), 3).sums())) for _ in range(2000)]
    assert np.mean(z) == pytest.approx(0, abs=0.15)  # kappa's own bias is -1 / items
    assert np.std(z) == pytest.approx(1, abs=4 / np.sqrt(2 * 2000))


def test_compressed_ratings_are_the_same_ratings() -> None:
    codes, query = panel(30, 40, seed=6)
    small = compress(codes, K, query)
    rows = np.repeat(np.column_stack([small.clusters, small.codes]), small.times, axis=0)
    given_rows = np.column_stack([query, codes])
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, given_rows.tolist()))
    assert len(small.codes) < len(codes)


def test_many_raters_have_no_pairs_of_their_own() -> None:
    codes = np.random.default_rng(7).integers(0, 2, (10, PAIRED + 1))
    found: Any = figures(codes, Kind(2), [str(place) for place in range(PAIRED + 1)], seed=0, replicates=10).to_json()
    assert found["pairs_of_raters"] is None
    assert found["intervals"]["fleiss"] is not None


def test_after_a_cascade_the_sample_is_measured() -> None:
    rows = [
        ("q", str(doc), judge, grade)
        for doc in range(4)
        for judge, grade in zip("ab", ["S", "SD"[doc % 2]], strict=True)
    ]
    ratings = pl.DataFrame(rows, ["query_id", "doc_id", "judge", "grade"], orient="row")
    pool = pl.DataFrame(
        [("q", str(doc), 49 + doc) for doc in range(4)], ["query_id", "doc_id", "position"], orient="row"
    )
    none = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String})
    whole: Any = on_parts(ratings, ["a", "b"], none, pool, 0, FIVE).to_json()
    part: Any = on_parts(ratings, ["a", "b"], pool.select("query_id", "doc_id").head(1), pool, 0, FIVE).to_json()
    assert (whole["cut"]["items"], whole["cut"]["percent"], whole["top_50"]["cut"]["items"]) == (4, 0.5, 2)
    assert (part["cut"]["items"], part["cut"]["percent"], part["top_50"]["cut"]["items"]) == (1, 1, 1)


@settings(max_examples=50)
@given(scales(), st.data())
def test_distances_of_any_scale_are_those_of_its_gains(scale: Scale, data: st.DataObject) -> None:
    """Cohen's kappa with quadratic weights is 1 less observed over expected squared differences of gains."""
    place = st.integers(0, len(scale.labels) - 1)
    rows = data.draw(st.lists(st.tuples(place, place), min_size=2, max_size=30))
    found: Any = on_grades(np.array(rows), ["a", "b"], [0] * len(rows), scale, seed=0, replicates=0).to_json()
    [pair] = found["all_grades"]["pairs_of_raters"]
    one, other = (np.array([scale.gains[row[at]] for row in rows], dtype=float) for at in (0, 1))
    expected = ((one[:, None] - other[None, :]) ** 2).mean()
    kappa = None if not expected else 1 - ((one - other) ** 2).mean() / expected
    assert pair["quadratic"] == (None if kappa is None else pytest.approx(kappa, abs=1e-6))
    sides = [[int(label > scale.labels.index(scale.relevant_from)) for label in row] for row in rows]
    assert found["cut"]["percent"] == pytest.approx(np.mean([one == other for one, other in sides]), abs=1e-6)
