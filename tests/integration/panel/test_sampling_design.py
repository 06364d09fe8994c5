"""The design of a sample: strata by eye, allocations by hand, draws that depend on nothing but the seed."""

import math
import time
from collections.abc import Mapping

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curate.core.errors import ConfigError, DataError
from curate.core.records import TABLES
from curate.core.scale import FIVE, Scale
from curate.panel.sampling_design import allocate, apportion, counts, draw, floors, guesses, strata, verdict_of
from curate.stats.sample_estimates import StratumCounts, share
from tests.support.scales import scales

VERDICT = {"relevant": "SA", "not relevant": "BCD"}
SIZES = {
    "relevant, one grade, top 50": 3000,
    "relevant, one grade, deeper": 6000,
    "relevant, split, top 50": 9000,
    "relevant, split, deeper": 8000,
    "not relevant, all D, top 50": 10000,
    "not relevant, all D, deeper": 270000,
    "not relevant, mixed, top 50": 4000,
    "not relevant, mixed, deeper": 27000,
    "contested, top 50": 10000,
    "contested, deeper": 19500,
    "incomplete": 480,
    "not positive": 20,
}


def judged(rows: list[tuple[str, str, int]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the verdicts and the pool of pairs given by verdict, grades (- for none) and position."""
    keys = [(f"q{place % 7}", f"d{place:06}") for place in range(len(rows))]
    verdicts = [
        {
            "query_id": query,
            "doc_id": document,
            "verdict": verdict,
            "votes": [
                {"judge": f"j{seat}", "grade": None if grade == "-" else grade} for seat, grade in enumerate(grades)
            ],
            "policy": "unanimous",
        }
        for (query, document), (verdict, grades, _) in zip(keys, rows, strict=True)
    ]
    pool = [(*key, position, None) for key, (_, _, position) in zip(keys, rows, strict=True)]
    return (
        pl.DataFrame(verdicts, schema=TABLES["verdicts"]).sort("query_id", "doc_id"),
        pl.DataFrame(pool, schema=TABLES["pool"], orient="row"),
    )


def named(rows: list[tuple[str, str, int]]) -> list[str]:
    """Return the strata in the order in which the pairs were given."""
    return strata(*judged(rows), FIVE).sort("doc_id")["stratum"].to_list()


CASES = [
    ("relevant", "SSS", 1, "relevant, one grade, top 50"),
    ("relevant", "AAA", 51, "relevant, one grade, deeper"),
    ("relevant", "SAS", 50, "relevant, split, top 50"),
    ("relevant", "AS", 200, "relevant, split, deeper"),
    ("relevant", "S", 7, "relevant, one grade, top 50"),
    ("not relevant", "DDD", 50, "not relevant, all D, top 50"),
    ("not relevant", "D", 51, "not relevant, all D, deeper"),
    ("not relevant", "CCC", 3, "not relevant, mixed, top 50"),
    ("not relevant", "DDB", 99, "not relevant, mixed, deeper"),
    ("contested", "SDD", 1, "contested, top 50"),
    ("contested", "S-D", 60, "contested, deeper"),
    ("incomplete", "S-S", 60, "incomplete"),
    ("incomplete", "---", 6, "incomplete"),
    ("not positive", "D--", 6, "not positive"),
]


def test_strata_by_eye() -> None:
    assert named([case[:3] for case in CASES]) == [case[3] for case in CASES]


def test_strata_are_a_dozen_have_a_guess_and_are_sorted() -> None:
    rows = [
        (verdict, "".join(grades), position)
        for verdict, known in {**VERDICT, "contested": "SD", "incomplete": "-", "not positive": "D"}.items()
        for grades in ((a, b) for a in known for b in known)
        for position in (1, 100)
    ]
    frame = strata(*judged(rows), FIVE)
    assert set(frame["stratum"]) == set(SIZES)
    assert all(0 < guess < 1 for guess in guesses(counts(frame)).values())
    assert frame.select("query_id", "doc_id").equals(frame.select("query_id", "doc_id").sort("query_id", "doc_id"))


def test_order_of_the_pool_changes_no_stratum() -> None:
    verdicts, pool = judged([case[:3] for case in CASES])
    shuffled = pool.sample(fraction=1, shuffle=True, seed=3)
    assert strata(verdicts.reverse(), shuffled, FIVE).equals(strata(verdicts, pool, FIVE))


def test_strata_refuse_what_they_do_not_know() -> None:
    verdicts, pool = judged([("relevant", "SS", 1), ("relevant", "SS", 2)])
    with pytest.raises(DataError, match="found 1 pairs that are not in the pool, the first is 'q1 d000001'"):
        strata(verdicts, pool.head(1), FIVE)
    with pytest.raises(DataError, match="found 2 pairs that have another verdict"):
        strata(verdicts.with_columns(verdict=pl.lit("perhaps")), pool, FIVE)
    with pytest.raises(ConfigError, match="no guess for the stratum 'relevent, split, deeper'; did you mean 'relevant"):
        guesses(["relevent, split, deeper"])


def test_no_pair_at_all() -> None:
    frame = strata(*judged([]), FIVE)
    assert counts(frame) == {}
    assert allocate({}, {}, 100) == {}
    assert draw(frame, {}, seed=1).columns == ["query_id", "doc_id", "stratum", "probability"]


# Allocation.


def test_neyman_by_hand() -> None:
    """N sqrt(p (1 - p)) is 100 x 0.5 = 50 and 300 x 0.3 = 90."""
    assert allocate({"a": 100, "b": 300}, {"a": 0.5, "b": 0.1}, 70) == {"a": 25, "b": 45}


def test_the_largest_remainder_goes_up() -> None:
    """Equal guesses: 1.1, 2.2 and 7.7 of 11."""
    assert allocate({"a": 10, "b": 20, "c": 70}, dict.fromkeys("abc", 0.3), 11, least=1) == {"a": 1, "b": 2, "c": 8}


def test_bounds_give_to_the_others_in_proportion() -> None:
    """c gets its least, d all that it has; what is left, 140 - 5 - 2, goes 50 to 90."""
    sizes = {"a": 100, "b": 300, "c": 6, "d": 2}
    found = allocate(sizes, {"a": 0.5, "b": 0.1, "c": 0.02, "d": 0.5}, 147)
    assert found == {"a": 50, "b": 90, "c": 5, "d": 2}
    assert allocate({"a": 10, "b": 10, "c": 10}, dict.fromkeys("abc", 0.1), 20) == {"a": 7, "b": 7, "c": 6}


@st.composite
def designs(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, float], int, int]:
    names = [f"s{place:02}" for place in range(draw(st.integers(1, 12)))]
    sizes = {name: draw(st.one_of(st.integers(0, 12), st.integers(0, 400000))) for name in names}
    shares = {name: draw(st.floats(0.001, 0.999)) for name in names}
    return sizes, shares, draw(st.integers(0, 20000)), draw(st.integers(1, 9))


@given(designs())
@settings(max_examples=300)
def test_allocation_adds_up_within_its_bounds(design: tuple[dict[str, int], dict[str, float], int, int]) -> None:
    sizes, shares, size, least = design
    low = sum(min(least, pairs) for pairs in sizes.values())
    if min(size, sum(sizes.values())) < low:
        with pytest.raises(ConfigError, match=f"expected at least {low} pairs"):
            allocate(sizes, shares, size, least)
        return
    found = allocate(sizes, shares, size, least)
    assert sum(found.values()) == min(size, sum(sizes.values()))
    assert all(min(least, sizes[name]) <= found[name] <= sizes[name] for name in sizes)
    backwards = dict(reversed(sizes.items()))
    assert allocate(backwards, shares, size, least) == found


@given(designs())
@settings(max_examples=200)
def test_allocation_is_proportional_where_no_bound_holds(
    design: tuple[dict[str, int], dict[str, float], int, int],
) -> None:
    """Rows of one more than the least and one less than all stand in Neyman's proportion, but for the rounding."""
    sizes, shares, size, least = design
    assume(sum(min(least, pairs) for pairs in sizes.values()) <= size)
    found = allocate(sizes, shares, size, least)
    inner = [name for name in sizes if min(least, sizes[name]) + 1 < found[name] < sizes[name] - 1]
    rates = [
        ((found[name] - 1) / weight, (found[name] + 1) / weight)
        for name in inner
        for weight in [sizes[name] * math.sqrt(shares[name] * (1 - shares[name]))]
    ]
    assert not rates or max(low for low, _ in rates) <= min(high for _, high in rates) + 1e-9


def test_neyman_beats_every_neighbour() -> None:
    """No pair moved from one stratum to another makes the variance of the share clearly smaller (Cochran 1977, 5.5)."""
    shares = guesses(SIZES)
    found = allocate(SIZES, shares, 3000)

    def variance(drawn: Mapping[str, int]) -> float:
        terms = (SIZES[n] ** 2 * (1 / drawn[n] - 1 / SIZES[n]) * shares[n] * (1 - shares[n]) for n in SIZES)
        return sum(terms) / sum(SIZES.values()) ** 2

    moves = [{**found, a: found[a] + 20, b: found[b] - 20} for a in SIZES for b in SIZES if a != b and found[b] > 25]
    legal = [move for move in moves if all(move[name] <= SIZES[name] for name in SIZES)]
    assert len(legal) > 50
    assert all(variance(move) > variance(found) for move in legal)


@pytest.mark.parametrize("guess", [None, 0.0, 1.0, -0.1])
def test_a_guess_must_be_a_share(guess: float | None) -> None:
    with pytest.raises(ConfigError, match="for the stratum 'a', expected a share above 0"):
        allocate({"a": 100}, {} if guess is None else {"a": guess}, 10)


def test_too_small_a_sample_names_the_least() -> None:
    with pytest.raises(
        ConfigError, match="found a sample of 59 pairs with at least 5 from each of 12 strata, expected at least 60"
    ):
        allocate(SIZES, guesses(SIZES), 59)
    assert set(allocate(SIZES, guesses(SIZES), 60).values()) == {5}
    with pytest.raises(ConfigError, match="one per stratum"):
        allocate(SIZES, guesses(SIZES), 600, least=0)


@given(designs())
@settings(max_examples=60)
def test_positives_and_contested_pairs_have_a_floor(design: tuple[dict[str, int], dict[str, float], int, int]) -> None:
    """A tenth of the sample is positives and a twentieth contested, or all that there are, whatever the weights say."""
    unnamed, _, size, least = design
    sizes = dict(zip(SIZES, unnamed.values(), strict=False))
    weights = {name: 1e-6 if verdict_of(name) in ("relevant", "contested") else 1.0 for name in sizes}
    low = {name: min(least, pairs) for name, pairs in sizes.items()}
    size = min(size, sum(sizes.values()))
    assume(size >= sum(low.values()))
    drawn = apportion(sizes, weights, size, least, floors(sizes, size, least))
    assert sum(drawn.values()) == size
    assert all(low[name] <= drawn[name] <= sizes[name] for name in sizes)
    for verdict, part in (("relevant", 0.1), ("contested", 0.05)):
        own = [name for name in sizes if verdict_of(name) == verdict]
        wanted = min(int(part * size), sum(sizes[name] for name in own))
        room = size - sum(low.values())
        assert sum(drawn[name] for name in own) >= wanted or room < 0.15 * size


# Draws.


def frame(sizes: Mapping[str, int]) -> pl.DataFrame:
    """Return that many pairs of every stratum, sorted by key."""
    names = [name for name, size in sizes.items() for _ in range(size)]
    rows = [(f"q{place % 13:02}", f"d{place:06}", name) for place, name in enumerate(names)]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "stratum"], orient="row").sort("query_id", "doc_id")


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_a_draw_is_what_was_allocated(given_sizes: list[int], data: st.DataObject) -> None:
    sizes = {f"s{place}": size for place, size in enumerate(given_sizes)}
    allocation = {name: data.draw(st.integers(0, size)) for name, size in sizes.items()}
    pairs, seed = frame(sizes), data.draw(st.integers(0, 2**40))
    drawn = draw(pairs, allocation, seed)
    assert counts(drawn) == {name: count for name, count in allocation.items() if count}
    assert drawn.schema["probability"] == pl.Float64
    assert drawn.equals(drawn.sort("query_id", "doc_id"))
    assert drawn.join(pairs, on=["query_id", "doc_id", "stratum"]).height == len(drawn) == drawn.n_unique(["doc_id"])
    assert all(row["probability"] == allocation[row["stratum"]] / sizes[row["stratum"]] for row in drawn.to_dicts())
    shuffled = pairs.sample(fraction=1, shuffle=True, seed=1)
    assert draw(shuffled, dict(reversed(allocation.items())), seed).equals(drawn)
    weights = drawn.group_by("stratum").agg((1 / pl.col("probability")).sum().round(6)).iter_rows()
    assert dict(weights) == {name: sizes[name] for name, count in allocation.items() if count}


def test_another_seed_draws_others_and_a_stratum_does_not_hang_on_its_neighbours() -> None:
    pairs = frame({"a": 400, "b": 300})
    first = draw(pairs, {"a": 40, "b": 30}, seed=1)
    assert not draw(pairs, {"a": 40, "b": 30}, seed=2).equals(first)
    alone = draw(pairs.filter(pl.col("stratum") == "a"), {"a": 40}, seed=1)
    assert alone.equals(first.filter(pl.col("stratum") == "a"))


def test_every_pair_is_drawn_as_often_as_its_probability_says() -> None:
    """2,000 draws: 4 standard errors of a share of 1 / 4 are 0.039, of 3 / 5 they are 0.044."""
    pairs, allocation = frame({"a": 20, "b": 5}), {"a": 5, "b": 3}
    drawn = pl.concat(draw(pairs, allocation, seed) for seed in range(2000))
    often = drawn.group_by("doc_id", "stratum").agg(pl.len() / 2000, pl.col("probability").first())
    assert len(often) == 25
    assert ((often["len"] - often["probability"]).abs() < 0.045).all()


@pytest.mark.parametrize("allocation", [{"a": 5}, {"a": 5, "b": 6}, {"a": 5, "b": -1}, {"a": 1, "b": 1, "c": 1}])
def test_a_draw_refuses_the_allocation_of_another_pool(allocation: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="give an allocation of this pool"):
        draw(frame({"a": 20, "b": 5}), allocation, seed=1)


def test_from_pool_to_interval() -> None:
    """The whole way, 1,000 times: allocate, draw, look at the pairs drawn, estimate; the truth is 226 of 2,110."""
    sizes, wrong = {"a": 60, "b": 1800, "c": 250}, {"a": 24, "b": 90, "c": 112}
    pairs = frame(sizes)
    place = pl.int_range(pl.len()).over("stratum")
    pairs = pairs.with_columns(hit=place < pl.col("stratum").replace_strict(wrong))
    allocation = allocate(sizes, {"a": 0.3, "b": 0.1, "c": 0.3}, 250)
    covered = 0
    for seed in range(1000):
        drawn = draw(pairs, allocation, seed)
        hits = dict(drawn.group_by("stratum").agg(pl.col("hit").sum()).iter_rows())
        found = share([StratumCounts(sizes[name], allocation[name], hits[name]) for name in sizes])
        assert found is not None
        assert found.value == pytest.approx(drawn.select(pl.col("hit").dot(1 / pl.col("probability"))).item() / 2110)
        covered += found.low <= 226 / 2110 <= found.high
    assert 0.93 <= covered / 1000 <= 0.97


def test_a_pool_of_full_size_is_fast() -> None:
    """An export of 5,000 of 367,000 pairs may take three seconds, files and all; these parts take about half of one."""
    known = {"relevant": "SS", "not relevant": "DD", "contested": "SD", "incomplete": "--", "not positive": "D-"}
    each, _ = judged([(verdict, grades, 1) for verdict, grades in known.items()])
    pairs = frame(SIZES).with_columns(verdict=pl.col("stratum").str.split(", ").list.first())
    verdicts = pairs.join(each.drop("query_id", "doc_id"), on="verdict", maintain_order="left")
    pool = pairs.select("query_id", "doc_id", position=pl.int_range(pl.len(), dtype=pl.Int32) % 200)
    start = time.perf_counter()
    placed = strata(verdicts.select(*TABLES["verdicts"]), pool, FIVE)
    sizes = counts(placed)
    drawn = draw(placed, allocate(sizes, guesses(sizes), 5000), seed=1)
    assert (len(placed), len(drawn)) == (367000, 5000)
    assert time.perf_counter() - start < 3


@given(scales())
def test_the_worst_grade_has_the_guess_of_d_whatever_it_is_called(scale: Scale) -> None:
    worst = scale.labels[-1]
    for label in (worst, "x, deeper", "y, top 50", "all"):
        found = guesses([f"not relevant, all {label}, {band}" for band in ("top 50", "deeper")])
        assert [*found.values()] == [0.02, 0.003]
    verdicts, pool = judged([("not relevant", "D", 60)])
    worded = pl.Series([[{"judge": "a", "grade": worst}]], dtype=TABLES["verdicts"]["votes"])
    assert strata(verdicts.with_columns(votes=worded), pool, scale)["stratum"].to_list() == [
        f"not relevant, all {worst}, deeper"
    ]
