"""Every statistic against a second derivation, and what must not change it."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.stats.agreement import (
    Level,
    Scheme,
    ac,
    alpha,
    cohen,
    fleiss,
    measure,
    percent,
    prevalence,
    randolph,
    scalar,
    specific,
)
from curate.stats.tally import Sums, crosstab, tally
from tests.support.literal import (
    K,
    Rows,
    cohen_pairs,
    fleiss_drop,
    fleiss_gwet,
    gwet,
    krippendorff,
    observed,
    parts,
    rated,
    specific_to,
    uniform,
)

Literal = Callable[[Rows], Fraction | None]

SAME = settings(max_examples=60)
MATRICES = st.integers(2, 5).flatmap(
    lambda raters: st.lists(st.lists(st.integers(-1, K - 1), min_size=raters, max_size=raters), min_size=1, max_size=8)
)


def mirrored(codes: list[int]) -> list[int]:
    """Turn the scale upside down."""
    return [code if code < 0 else K - 1 - code for code in codes]


SCHEMES: tuple[Scheme, ...] = ("nominal", "linear", "quadratic")
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
DERIVED: list[tuple[Callable[[Sums], npt.NDArray[np.float64]], Literal]] = [
    (percent, observed),
    (fleiss, fleiss_gwet),
    (partial(fleiss, missing="drop"), fleiss_drop),
    (randolph, uniform),
    *((partial(ac, scheme=scheme), partial(gwet, scheme=scheme)) for scheme in SCHEMES),
    *((partial(alpha, level=level), partial(krippendorff, level=level)) for level in LEVELS),
]


def same(found: npt.ArrayLike | None, want: Fraction | float | None) -> bool:
    """Say whether two figures are equal to twelve decimals, or both not defined."""
    figure = None if found is None else scalar(found)
    return figure is want if figure is None or want is None else figure == pytest.approx(float(want), abs=1e-12)


@pytest.mark.slow
@SAME
@given(MATRICES)
def test_literal_loops(codes: Rows) -> None:
    sums = tally(codes, K).sums()
    for statistic, literal in DERIVED:
        assert same(statistic(sums), literal(codes)), literal
    for category in range(K):
        assert same(specific(sums)[category], specific_to(codes, category))
        assert same(prevalence(sums)[category], parts(codes)[category] if any(rated(codes)) else None)


@pytest.mark.slow
@SAME
@given(MATRICES)
def test_summary_holds_these_figures(codes: Rows) -> None:
    found, several = measure(codes, K), [row for row in rated(codes) if len(row) > 1]
    assert same(found.fleiss, fleiss_gwet(codes))
    assert same(measure(codes, K, missing="drop").fleiss, fleiss_drop(codes))
    assert same(found.alpha_ordinal, krippendorff(codes, "ordinal"))
    assert same(found.percent, observed(codes))
    assert same(found.ac1, gwet(codes, "nominal"))
    assert found.under_two == len(codes) - len(several)
    assert found.unanimous == sum(len(set(row)) == 1 for row in several)
    complete = len({len(row) for row in rated(codes) if row}) == 1 and bool(several)
    assert found.estimator == ("complete" if complete else "gwet")


@pytest.mark.slow
@SAME
@given(MATRICES)
def test_cohen_in_literal_loops(codes: Rows) -> None:
    first, second = [row[0] for row in codes], [row[1] for row in codes]
    for scheme in SCHEMES:
        want = cohen_pairs(codes, scheme)
        assert same(cohen(crosstab(first, second, K), scheme), want)
        assert same(cohen(crosstab(second, first, K), scheme), want)
        assert same(cohen(crosstab(mirrored(first), mirrored(second), K), scheme), want)


@pytest.mark.slow
@SAME
@given(MATRICES, st.randoms(use_true_random=False))
def test_order_of_raters_and_items_changes_nothing(codes: Rows, random: Random) -> None:
    before, sums = (
        tally(codes, K).sums(),
        tally(random.sample([random.sample(row, len(row)) for row in codes], len(codes)), K).sums(),
    )
    for statistic, _ in DERIVED:
        assert same(statistic(sums), scalar(statistic(before)))


@pytest.mark.slow
@SAME
@given(MATRICES, st.permutations(range(K)))
def test_names_of_categories_do_not_matter_to_nominal_figures(codes: Rows, names: list[int]) -> None:
    before, after = measure(codes, K), measure([[c if c < 0 else names[c] for c in row] for row in codes], K)
    for figure in ("percent", "fleiss", "alpha_nominal", "ac1"):
        assert same(getattr(after, figure), getattr(before, figure))
    for category in range(K):
        assert same(after.specific[names[category]], before.specific[category])
        assert same(after.prevalence[names[category]], before.prevalence[category])


@SAME
@given(MATRICES)
def test_a_scale_upside_down_measures_the_same(codes: Rows) -> None:
    before, after = tally(codes, K).sums(), tally([mirrored(row) for row in codes], K).sums()
    for statistic, _ in DERIVED:
        assert same(statistic(after), scalar(statistic(before)))


@pytest.mark.slow
@SAME
@given(MATRICES)
def test_items_twice(codes: Rows) -> None:
    """Kappa and its kin stay; alpha, which corrects for small samples, moves by (2 n - 1) / (2 n - 2) from 1."""
    once, twice = tally(codes, K).sums(), tally(codes * 2, K).sums()
    for statistic in (percent, fleiss, partial(fleiss, missing="drop"), randolph, ac, partial(ac, scheme="linear")):
        assert same(statistic(twice), scalar(statistic(once)))
    ratings = float(once.counts.sum())
    for level in LEVELS:
        if (figure := scalar(alpha(once, level))) is not None:
            assert same(alpha(twice, level), 1 - (1 - figure) * (2 * ratings - 1) / (2 * ratings - 2))


@pytest.mark.slow
@SAME
@given(MATRICES, st.data())
def test_clusters_add_up(codes: Rows, data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.sampled_from("abc"), min_size=len(codes), max_size=len(codes)))
    stacked = tally(codes, K).by_cluster(labels)
    whole = stacked.weighted(np.ones(len(stacked)))
    for place, label in enumerate(sorted(set(labels))):
        own = [row for row, at in zip(codes, labels, strict=True) if at == label]
        for statistic, literal in DERIVED:
            assert same(statistic(stacked)[place], literal(own))
            assert same(statistic(whole), literal(codes))
