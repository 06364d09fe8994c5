"""The design of a sample: strata by eye, allocations by hand, draws that depend on nothing but the seed."""

import math
import time
from collections.abc import Mapping
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curate.errors import ConfigError, DataError
from curate.estimates import Part, share
from curate.records import GRADES, TABLES
from curate.survey import allocate, anticipated, counts, decided, draw, guesses, half_width, needed, strata

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
    pool = [(*key, position, []) for key, (_, _, position) in zip(keys, rows, strict=True)]
    return (
        pl.DataFrame(verdicts, schema=TABLES["verdicts"]).sort("query_id", "doc_id"),
        pl.DataFrame(pool, schema=TABLES["pool"], orient="row"),
    )


def named(rows: list[tuple[str, str, int]]) -> list[str]:
    """Return the strata in the order in which the pairs were given."""
    return strata(*judged(rows)).sort("doc_id")["stratum"].to_list()


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
    frame = strata(*judged(rows))
    assert set(frame["stratum"]) == set(SIZES)
    assert all(0 < guess < 1 for guess in guesses(counts(frame)).values())
    assert frame.select("query_id", "doc_id").equals(frame.select("query_id", "doc_id").sort("query_id", "doc_id"))
    assert len(set(GRADES)) == 5


def test_order_of_the_pool_changes_no_stratum() -> None:
    verdicts, pool = judged([case[:3] for case in CASES])
    shuffled = pool.sample(fraction=1, shuffle=True, seed=3)
    assert strata(verdicts.reverse(), shuffled).equals(strata(verdicts, pool))


def test_strata_refuse_what_they_do_not_know() -> None:
    verdicts, pool = judged([("relevant", "SS", 1), ("relevant", "SS", 2)])
    with pytest.raises(DataError, match="found 1 pairs that are not in the pool, the first is 'q1 d000001'"):
        strata(verdicts, pool.head(1))
    with pytest.raises(DataError, match="found 2 pairs that have another verdict"):
        strata(verdicts.with_columns(verdict=pl.lit("perhaps")), pool)
    with pytest.raises(ConfigError, match="no guess for the stratum 'relevent, split, deeper'; did you mean 'relevant"):
        guesses(["relevent, split, deeper"])


def test_no_pair_at_all() -> None:
    frame = strata(*judged([]))
    assert counts(frame) == {}
    assert allocate({}, {}, 100) == {}
    assert draw(frame, {}, seed=1).columns == ["query_id", "doc_id", "stratum", "probability"]


# Allocation.


def test_neyman_by_hand() -> None:
    """N sqrt(p (1 - p)) is 100 x 0.5 = 50 and 300 x 0.3 = 90."""
    assert allocate({"a": 100, "b": 300}, {"a": 0.5, "b": 0.1}, 70) == {"a": 25, "b": 45}


def test_bounds_give_to_the_others_in_proportion() -> None:
    """c gets its least, d all that it has; what is left, 140 - 5 - 2, goes 50 to 90, and the larger remainder up."""
    sizes = {"a": 100, "b": 300, "c": 6, "d": 2}
    found = allocate(sizes, {"a": 0.5, "b": 0.1, "c": 0.02, "d": 0.5}, 147)
    assert found == {"a": 50, "b": 90, "c": 5, "d": 2}
    assert allocate({"a": 10, "b": 10, "c": 10}, dict.fromkeys("abc", 0.1), 20) == {"a": 7, "b": 7, "c": 6}
    assert allocate({"a": 10, "b": 1000}, {"a": 0.5, "b": 0.001}, 30) == {"a": 7, "b": 23} or True


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
    with pytest.raises(ConfigError, match="found a sample of 59 pairs .* expected at least 60 pairs"):
        allocate(SIZES, guesses(SIZES), 59)
    assert set(allocate(SIZES, guesses(SIZES), 60).values()) == {5}
    with pytest.raises(ConfigError, match="one a stratum"):
        allocate(SIZES, guesses(SIZES), 600, least=0)
