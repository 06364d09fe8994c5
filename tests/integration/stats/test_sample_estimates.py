"""What a graded sample proves: worked figures, second derivations, and how often an interval holds the truth.

A mean lies in its own interval by construction, so coverage is of the population's value: 2,000 samples, seeds 0 to
1,999, of a pool whose every pair is known; 1,000 for kappa. The standard error of a coverage is half a percent or 0.7.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from curate.core.errors import ConfigError, DataError
from curate.panel.sampling_design import allocate
from curate.stats.agreement import Scheme, cohen, cohen_slope
from curate.stats.sample_estimates import Estimate, StratumCounts, kappa, recall, share, wilson
from curate.stats.tally import Crosstab
from tests.support.defined import defined

SEEDS = 2000
SCHEMES: tuple[Scheme, ...] = ("nominal", "linear", "quadratic")
HUGE = 10**15
"""A pool of which any sample is next to nothing."""


@st.composite
def a_part(draw: st.DrawFn) -> StratumCounts:
    size = draw(st.integers(1, 60))
    answered = draw(st.integers(1, size))
    return StratumCounts(size, answered, draw(st.integers(0, answered)))


PARTS = st.lists(a_part(), min_size=1, max_size=6)


def rows(parts: Sequence[StratumCounts]) -> list[tuple[float, bool]]:
    """Return every answered pair of a sample by itself: how many pairs it stands for, and if it is a hit."""
    return [(part.size / part.answered, place < part.hits) for part in parts for place in range(part.answered)]


# Figures that others published or computed.


@pytest.mark.parametrize(
    ("hits", "drawn", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_newcombe_printed_it(hits: int, drawn: int, low: float, high: float) -> None:
    """Newcombe 1998, Two-sided confidence intervals for the single proportion, table I, method 3."""
    found = defined(wilson(hits, drawn))
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.9, 0.95]))
def test_wilson_is_that_of_statsmodels(case: tuple[int, int], level: float) -> None:
    hits, drawn = case
    found = defined(wilson(hits, drawn, level))
    want = proportion_confint(hits, drawn, alpha=1 - level, method="wilson")
    assert (found.low, found.high) == pytest.approx(want, abs=1e-12)
    assert (found.value, found.effective, found.answered) == (hits / drawn, drawn, drawn)


def test_thirty_of_thirty_is_not_perfection() -> None:
    found = defined(wilson(30, 30))
    assert (round(found.low, 2), found.high) == (0.89, 1.0)
    assert wilson(0, 0) is None


# The estimators, derived again.


@given(PARTS)
def test_share_is_horvitz_and_thompsons(parts: list[StratumCounts]) -> None:
    found, weighed = defined(share(parts)), rows(parts)
    assert found.value == pytest.approx(sum(w for w, hit in weighed if hit) / sum(w for w, _ in weighed), abs=1e-12)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.answered == len(weighed)


@given(PARTS, PARTS)
def test_recall_is_a_ratio_of_weights(found: list[StratumCounts], missed: list[StratumCounts]) -> None:
    got = recall(found, missed)
    one, other = (sum(w for w, hit in rows(parts) if hit) for parts in (found, missed))
    if not one + other:
        assert got is None
        return
    assert got is not None
    assert got.value == pytest.approx(one / (one + other), abs=1e-12)
    assert 0 <= got.low <= got.value <= got.high <= 1


@given(PARTS)
def test_turning_hits_round_turns_the_interval_round(parts: list[StratumCounts]) -> None:
    found = defined(share(parts))
    turned = defined(share([StratumCounts(part.size, part.answered, part.answered - part.hits) for part in parts]))
    assert (1 - turned.high, 1 - turned.low) == pytest.approx((found.low, found.high), abs=1e-9)


@given(PARTS, PARTS)
def test_recall_and_its_complement(found: list[StratumCounts], missed: list[StratumCounts]) -> None:
    one, other = recall(found, missed), recall(missed, found)
    if one is None or other is None:
        assert one is other
        return
    assert (1 - other.high, 1 - other.low) == pytest.approx((one.low, one.high), abs=1e-9)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_one_stratum_of_a_huge_pool_is_plain_wilson(case: tuple[int, int]) -> None:
    hits, drawn = case
    found, want = defined(share([StratumCounts(HUGE, drawn, hits)])), defined(wilson(hits, drawn))
    assert (found.low, found.high, found.effective) == pytest.approx((want.low, want.high, drawn), rel=1e-9, abs=1e-12)


def test_effective_size_by_hand() -> None:
    """Half of 5 and 20: q = 3/6 and 5/22 are smoothed; V = (1/3)^2 (95/99) .25/5 + (2/3)^2 (180/199) q (1 - q)/20."""
    found = defined(share([StratumCounts(100, 5, 2.5), StratumCounts(200, 20, 4.5)]))
    q = 5 / 21
    variance = (1 / 9) * (95 / 99) * 0.25 / 5 + (4 / 9) * (180 / 199) * q * (1 - q) / 20
    middle = (0.5 + 2 * q) / 3
    assert found.value == pytest.approx((0.5 + 2 * 0.225) / 3)
    assert found.effective == pytest.approx(middle * (1 - middle) / variance)


# Where there is little to go by.


def test_a_pool_that_was_read_whole_leaves_no_doubt() -> None:
    assert share([StratumCounts(7, 7, 2), StratumCounts(1, 1, 1)]) == Estimate(3 / 8, 3 / 8, 3 / 8, 0.95, 8, math.inf)
    assert recall([StratumCounts(4, 4, 3)], [StratumCounts(9, 9, 1)]) == Estimate(0.75, 0.75, 0.75, 0.95, 13, math.inf)


def test_whole_strata_make_the_others_less_uncertain() -> None:
    alone, beside = (
        defined(share([StratumCounts(100, 10, 2)])),
        defined(share([StratumCounts(100, 10, 2), StratumCounts(100, 100, 20)])),
    )
    assert beside.value == alone.value
    assert beside.high - beside.low < 0.6 * (alone.high - alone.low)


def test_undefined_is_none() -> None:
    assert share([]) is None
    assert share([StratumCounts(0, 0, 0)]) is None
    assert share([StratumCounts(10, 10, 1), StratumCounts(3, 0, 0)]) is None
    assert recall([StratumCounts(10, 5, 0)], [StratumCounts(10, 5, 0)]) is None
    assert recall([StratumCounts(10, 5, 1)], [StratumCounts(10, 0, 0)]) is None
    assert recall([], []) is None
    assert share([StratumCounts(10, 4, 1), StratumCounts(0, 0, 0)]) == share([StratumCounts(10, 4, 1)])


def test_no_hit_at_all_still_has_a_width() -> None:
    """Strata without a hit have an estimated variance of 0; the interval must not believe it."""
    found = defined(share([StratumCounts(1000, 5, 0), StratumCounts(1000, 1, 0), StratumCounts(50000, 100, 0)]))
    assert found.value == found.low == 0
    assert 0.02 < found.high < 0.08
    every = defined(recall([StratumCounts(1000, 50, 40)], [StratumCounts(100000, 200, 0)]))
    assert every.value == every.high == 1
    assert every.low < 0.7


@pytest.mark.parametrize(("size", "answered", "hits"), [(5, 6, 1), (5, 3, 4), (5, 3, -1)])
def test_impossible_counts_are_refused(size: int, answered: int, hits: int) -> None:
    with pytest.raises(DataError, match="expected no more hits than answers"):
        StratumCounts(size, answered, hits)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_an_impossible_level_is_refused(level: float) -> None:
    with pytest.raises(ConfigError, match=r"use 0\.95"):
        share([StratumCounts(10, 5, 1)], level)


# Kappa.


def panel(seed: int, sizes: Sequence[int], categories: int = 2) -> list[npt.NDArray[np.int64]]:
    """Return a pool of pairs, stratum by stratum: rows of the panel's code and an assessor's, who often agree."""
    random = np.random.default_rng(seed)
    pool = []
    for place, size in enumerate(sizes):
        first = random.integers(0, categories, size) if categories > 2 else np.full(size, place % 2)
        second = np.where(random.random(size) < 0.85, first, random.integers(0, categories, size))
        pool.append(np.stack([first, second], axis=1))
    return pool


def graded(sample: Sequence[npt.NDArray[np.int64]]) -> tuple[list[str], npt.NDArray[np.int64]]:
    return [f"s{place}" for place, part in enumerate(sample) for _ in part], np.concatenate(sample)


@pytest.mark.parametrize("scheme", ["nominal", "quadratic"])
def test_kappa_is_that_of_a_pool_in_which_every_row_is_copied(scheme: Scheme) -> None:
    sample = panel(3, [20, 30, 40], categories=5)
    labels, codes = graded(sample)
    got = kappa(labels, codes[:, 0], codes[:, 1], {"s0": 200, "s1": 30, "s2": 120}, 5, scheme=scheme)
    copied = np.concatenate([np.repeat(part, times, axis=0) for part, times in zip(sample, [10, 1, 3], strict=True)])
    table = np.zeros((5, 5))
    np.add.at(table, (copied[:, 0], copied[:, 1]), 1)
    assert got is not None
    weights = "fc" if scheme == "quadratic" else None
    assert got.value == pytest.approx(cohens_kappa(table, wt=weights, return_results=False), abs=1e-12)
    assert defined(got.low) < got.value < defined(got.high)
    assert got.answered == 90


def test_order_of_rows_changes_no_kappa() -> None:
    labels, codes = graded(panel(4, [20, 30]))
    order = np.random.default_rng(0).permutation(len(labels))
    want = kappa(labels, codes[:, 0], codes[:, 1], {"s0": 500, "s1": 400}, 2)
    assert (
        kappa([labels[place] for place in order], codes[order, 0], codes[order, 1], {"s0": 500, "s1": 400}, 2) == want
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_slope_is_what_one_pair_more_changes(scheme: Scheme) -> None:
    table = np.random.default_rng(1).uniform(1, 9, (5, 5))
    step = 1e-4 * np.eye(25).reshape(25, 5, 5)
    change = (cohen(Crosstab(table + step), scheme) - cohen(Crosstab(table - step), scheme)) / 2e-4
    assert cohen_slope(Crosstab(table), scheme).ravel() == pytest.approx(change, rel=1e-6, abs=1e-9)
    stacked = cohen_slope(Crosstab(np.stack([table, table.T])), scheme)
    assert stacked[1] == pytest.approx(stacked[0].T)


def test_variance_of_kappa_is_that_of_statsmodels_in_one_large_stratum() -> None:
    """Fleiss, Cohen & Everitt 1969; with 4,000 rows the smoothing is next to nothing."""
    table = np.array([[1200, 210], [350, 2240]])
    first, second = (np.repeat(codes, table.ravel()) for codes in ([0, 0, 1, 1], [0, 1, 0, 1]))
    got = defined(kappa(["all"] * 4000, first, second, {"all": HUGE}, 2))
    want = cohens_kappa(table)
    assert got.value == pytest.approx(want.kappa, abs=1e-12)
    assert math.sqrt((1 - got.value**2) / got.effective) == pytest.approx(want.std_kappa, rel=2e-3)


def test_variance_of_a_stratified_kappa_derived_again() -> None:
    """Cell by cell: what one pair more would change, its variance within a stratum, and the part not drawn."""
    sizes, seen = [300, 80], np.array([[[20.0, 5], [1, 0]], [[2, 0], [6, 30]]])
    drawn = seen.sum(axis=(1, 2))
    labels = np.repeat(["a", "b"], drawn.astype(int)).tolist()
    codes = np.concatenate([np.repeat(np.arange(4), table.ravel().astype(int)) for table in seen])
    got = kappa(labels, codes // 2, codes % 2, {"a": 300, "b": 80}, 2)
    again = [
        [[(table[i, j] + table[i].sum() / n / 2) / (n + 1) for j in (0, 1)] for i in (0, 1)]
        for table, n in zip(seen, drawn, strict=True)
    ]
    pool = sum(size * np.array(table) for size, table in zip(sizes, again, strict=True))

    def change(i: int, j: int) -> float:
        step = np.zeros((2, 2))
        step[i, j] = 1e-3
        return float(cohen(Crosstab(pool + step)) - cohen(Crosstab(pool - step))) / 2e-3

    variance = 0.0
    for size, n, table in zip(sizes, drawn.tolist(), again, strict=True):
        each = [(table[i][j], change(i, j)) for i in (0, 1) for j in (0, 1)]
        mean = sum(part * slope for part, slope in each)
        variance += size**2 / n * (size - n) / (size - 1) * sum(part * (slope - mean) ** 2 for part, slope in each)
    smooth = float(cohen(Crosstab(np.asarray(pool))))
    assert got is not None
    assert got.effective == pytest.approx((1 - smooth**2) / variance, rel=1e-6)


def test_rows_that_one_did_not_rate_keep_their_place_in_the_sample() -> None:
    """They are in no cell, but the stratum's rows are still rows / size of it."""
    labels, codes = graded(panel(5, [40, 40]))
    codes[:10, 0] = -1
    got = defined(kappa(labels, codes[:, 0], codes[:, 1], {"s0": 400, "s1": 40}, 2))
    part = defined(kappa(labels[10:], codes[10:, 0], codes[10:, 1], {"s0": 300, "s1": 40}, 2))
    assert got.value == pytest.approx(part.value)
    assert got.answered == 70


def test_kappa_where_there_is_little_to_go_by() -> None:
    def of(codes: list[tuple[int, int]], strata: str, sizes: dict[str, int]) -> Estimate | None:
        first, second = zip(*codes, strict=True) if codes else ((), ())
        return kappa(list(strata), first, second, sizes, 2)

    mixed = [(0, 0), (1, 1), (0, 1), (1, 0), (1, 1)]
    assert of([], "", {"a": 0}) is None
    assert of(mixed, "aaaaa", {"a": 9, "b": 4}) is None
    assert of([(0, 0)] * 3, "aaa", {"a": 9}) is None
    alone, agreed = defined(of(mixed, "aaaab", {"a": 9, "b": 4})), of([(0, 0), (1, 1)] * 10, "a" * 20, {"a": 900})
    assert alone.low < alone.value < alone.high
    assert agreed is not None
    assert agreed.value == agreed.high == 1
    assert 0.3 < agreed.low < 0.8
    census = defined(of(mixed, "aaaab", {"a": 4, "b": 1, "c": 0}))
    assert (census.low, census.high) == pytest.approx((census.value, census.value))


def test_kappa_refuses_what_is_no_sample() -> None:
    with pytest.raises(DataError, match="found 2 rows of the stratum 'a', which has 1 pairs"):
        kappa(["a", "a"], [0, 1], [0, 1], {"a": 1}, 2)
    with pytest.raises(DataError, match="stratum 'b', which has 0 pairs"):
        kappa(["b"], [0], [0], {"a": 1}, 2)


# Coverage.


@dataclass(frozen=True)
class Survey:
    """A pool and a design: sizes of strata, their true shares, what was guessed, and the size of the sample."""

    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    guesses: tuple[float, ...]
    sample: int

    def hits(self) -> list[int]:
        return [round(size * part) for size, part in zip(self.sizes, self.shares, strict=True)]

    def samples(self) -> list[list[StratumCounts]]:
        """Return what the samples find, each drawn without replacement in every stratum."""
        names = [f"{place:02}" for place in range(len(self.sizes))]
        guessed = dict(zip(names, self.guesses, strict=True))
        allocation = allocate(dict(zip(names, self.sizes, strict=True)), guessed, self.sample)
        drawn = [allocation[name] for name in names]
        bad = [size - hits for size, hits in zip(self.sizes, self.hits(), strict=True)]
        seen = (np.random.default_rng(seed).hypergeometric(self.hits(), bad, drawn) for seed in range(SEEDS))
        return [[StratumCounts(*row) for row in zip(self.sizes, drawn, found.tolist(), strict=True)] for found in seen]


def covered(truth: float, estimates: Sequence[Estimate | None]) -> float:
    """Return in which share of the samples the interval holds the truth; one without an interval does not."""
    return sum(each is not None and each.low <= truth <= each.high for each in estimates) / len(estimates)


POOL = (3000, 6000, 9000, 8000, 280000, 10000, 4000, 47000)
GUESSED = (0.05, 0.05, 0.1, 0.1, 0.02, 0.02, 0.08, 0.08)
SMALL = (40, 8, 300, 5, 2000, 90, 60, 30)
SURVEYS = {
    "one stratum": Survey((367000,), (0.067,), (0.067,), 500),
    "one stratum, a fifth of it drawn": Survey((1000,), (0.1,), (0.1,), 200),
    "one stratum, 3 %": Survey((50000,), (0.03,), (0.03,), 300),
    "5,000 of 367,000": Survey(POOL, GUESSED, GUESSED, 5000),
    "1,000": Survey(POOL, GUESSED, GUESSED, 1000),
    "500": Survey(POOL, GUESSED, GUESSED, 500),
    "500, bad guesses": Survey(POOL, (0.1, 0.15, 0.3, 0.3, 0.005, 0.005, 0.2, 0.15), GUESSED, 500),
    "500, rare": Survey(POOL, (0.05, 0.05, 0.06, 0.06, 0.028, 0.02, 0.03, 0.03), GUESSED, 500),
    "1,000, rarer": Survey(POOL, (0.02, 0.02, 0.03, 0.03, 0.004, 0.004, 0.01, 0.01), GUESSED, 1000),
    "small strata": Survey(SMALL, (0.1, 0.25, 0.1, 0.2, 0.02, 0.03, 0.1, 0.1), GUESSED, 200),
    "five rows each": Survey((200,) * 8, (0.05, 0.1, 0.02, 0.08, 0.3, 0.2, 0.1, 0.05), GUESSED, 40),
    "five rows each, rare": Survey((200,) * 8, (0.03,) * 8, GUESSED, 40),
}
DISCRETE = {"five rows each, rare"}
"""Of 40 rows 1.2 are hits on average, so there are few intervals to be had: they cover 0.972, which is conservative."""


@pytest.mark.parametrize("name", SURVEYS)
def test_coverage_of_a_share(name: str) -> None:
    survey = SURVEYS[name]
    found = covered(sum(survey.hits()) / sum(survey.sizes), [share(parts) for parts in survey.samples()])
    assert 0.93 <= found <= (0.98 if name in DISCRETE else 0.97)


JUDGED = (3000, 6000, 9000, 8000, 10000, 20000, 4000, 27000, 280000)
RELEVANT = (0.95, 0.95, 0.9, 0.9, 0.5, 0.3, 0.1, 0.05, 0.005)
EXPECTED = (0.05, 0.05, 0.1, 0.1, 0.5, 0.5, 0.08, 0.08, 0.02)
RECALLS = {
    "5,000": (Survey(JUDGED, RELEVANT, EXPECTED, 5000), 4),
    "1,000": (Survey(JUDGED, RELEVANT, EXPECTED, 1000), 4),
    "5,000, few missed": (Survey(JUDGED, (*RELEVANT[:6], 0.02, 0.01, 0.0005), EXPECTED, 5000), 4),
    "small pool": (Survey((30, 60, 90, 80, 100, 200, 40, 270, 1800), RELEVANT, EXPECTED, 300), 4),
    "two strata": (Survey((20000, 300000), (0.9, 0.005), (0.2, 0.02), 1000), 1),
    "two strata, very few missed": (Survey((20000, 300000), (0.9, 0.0005), (0.02, 0.02), 1000), 1),
}


@pytest.mark.parametrize("name", RECALLS)
def test_coverage_of_a_recall(name: str) -> None:
    survey, first = RECALLS[name]
    hits = survey.hits()
    found = covered(sum(hits[:first]) / sum(hits), [recall(parts[:first], parts[first:]) for parts in survey.samples()])
    assert 0.93 <= found <= 0.985


@dataclass(frozen=True)
class Panel:
    """A pool whose pairs have a code by the panel and one by an assessor, and rows drawn of each stratum."""

    sizes: tuple[int, ...]
    cells: tuple[npt.NDArray[np.float64], ...]
    drawn: tuple[int, ...]
    scheme: Scheme = "nominal"

    def tables(self) -> list[npt.NDArray[np.int64]]:
        """Return the pool: pairs in every cell of every stratum."""
        rounded = [np.floor(size * cells / cells.sum()) for size, cells in zip(self.sizes, self.cells, strict=True)]
        for size, table in zip(self.sizes, rounded, strict=True):
            table[np.unravel_index(table.argmax(), table.shape)] += size - table.sum()
        return [table.astype(np.int64) for table in rounded]


def cut(*shares: float) -> tuple[npt.NDArray[np.float64], ...]:
    """Return strata in which the panel says relevant, then as many where not; an assessor says relevant so often."""
    return tuple(
        np.array([[share, 1 - share], [0, 0]] if place < len(shares) / 2 else [[0, 0], [share, 1 - share]])
        for place, share in enumerate(shares)
    )


def grades(noise: float, *, relevant: bool) -> npt.NDArray[np.float64]:
    """Return a stratum of five grades: an assessor is sometimes a grade higher, and now and then anywhere."""
    cells = noise / 25 + (1 - noise) / 5 * (0.8 * np.eye(5) + 0.2 * np.eye(5, k=-1))
    cells[2:] *= not relevant
    cells[:2] *= relevant
    return cells


FIVE = tuple(grades(noise, relevant=relevant) for relevant in (True, False) for noise in (0.1, 0.3))
PANELS = {
    "cut, 1,000": Panel((9000, 17000, 300000, 41000), cut(0.95, 0.9, 0.005, 0.05), (60, 150, 600, 190)),
    "cut, 300": Panel((9000, 17000, 300000, 41000), cut(0.95, 0.9, 0.005, 0.05), (30, 60, 150, 60)),
    "cut, half of the pool": Panel((100, 100, 200, 50), cut(0.9, 0.8, 0.05, 0.1), (50, 70, 80, 20)),
    "chance": Panel((10000, 10000), cut(0.3, 0.3), (100, 100)),
    "five grades, 500": Panel((9000, 17000, 30000, 41000), FIVE, (60, 150, 150, 140), "quadratic"),
    "five grades, 1,000": Panel((9000, 17000, 300000, 41000), FIVE, (60, 150, 600, 190), "quadratic"),
    "five grades, nominal": Panel((9000, 17000, 30000, 41000), FIVE, (60, 150, 150, 140)),
}


@pytest.mark.parametrize("name", PANELS)
def test_coverage_of_a_kappa(name: str) -> None:
    survey = PANELS[name]
    tables, side = survey.tables(), len(survey.cells[0])
    truth = float(cohen(Crosstab(sum(tables).astype(np.float64)), survey.scheme))  # type: ignore[union-attr]
    names = [str(place) for place in range(len(tables))]
    labels = np.repeat(names, survey.drawn).tolist()
    found = []
    for seed in range(SEEDS // 2):
        random = np.random.default_rng(seed)
        seen = [random.multivariate_hypergeometric(t.ravel(), n) for t, n in zip(tables, survey.drawn, strict=True)]
        codes = np.concatenate([np.repeat(np.arange(side**2), each) for each in seen])
        sizes = dict(zip(names, survey.sizes, strict=True))
        found.append(kappa(labels, codes // side, codes % side, sizes, side, scheme=survey.scheme))
    assert 0.93 <= covered(truth, found) <= 0.97
