"""Figures of gradients against scipy and plain loops; and the published recipe on shared data, to the printed digit."""

import math
import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from benchmarks.kinds_gradient import Series, by, chinese, edited, english, panel, series
from curate.stats.rank_correlation import ceiling, gradient_figures, paired_accuracy, pooled
from curate.stats.shortcuts import overlap
from curate.tables.kinds.gradient import LEVELS, mixed, partners
from tests import ROOT

SHARED = ROOT.parent / "shared" / "data"
GROUPS = st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=2, max_size=8)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(GROUPS)
def test_figures_against_plain_loops(groups: list[list[int]]) -> None:
    scores = np.array([float(each) for group in groups for each in group])
    levels = np.array([float(each) for _ in groups for each in LEVELS])
    group = np.repeat(np.arange(len(groups)), len(LEVELS))
    found = gradient_figures(scores, levels, group, 3, replicates=20)
    varied = [each for each in groups if len(set(each)) > 1]
    assert found.undefined == len(groups) - len(varied)
    expected = np.mean([spearmanr(each, LEVELS).statistic for each in varied]) if varied else None
    assert (found.within.value is None) == (expected is None)
    if expected is not None:
        assert found.within.value == pytest.approx(expected, abs=1e-5)
        assert found.pooled.value == pytest.approx(spearmanr(scores, levels).statistic, abs=1e-5)
    rising = [all(one < other for one, other in pairwise(each)) for each in groups]
    assert found.strict.value == pytest.approx(np.mean(rising), abs=1e-5)


def test_the_ceiling_is_what_scores_without_ties_reach() -> None:
    levels = [float(each) for each in LEVELS] * 2_000
    assert ceiling(levels) == pytest.approx(math.sqrt(24 / 25), abs=1e-4)
    scores = np.array([each + place / 1e6 for place, each in enumerate(levels)])
    assert ceiling(levels) == pytest.approx(pooled(scores, np.array(levels)), abs=1e-9)
    assert ceiling([1.0, 1.0]) is None
    assert pooled(np.ones(4), np.arange(4.0)) is None


def test_paired_accuracy_by_kind() -> None:
    scores, levels = np.array([0.9, 0.1, 0.2, 0.3, 0.5, 0.5]), np.array([1.0, 0, 1, 0, 1, 0])
    found = paired_accuracy(scores, levels, np.array([0, 0, 1, 1, 2, 2]), ["a", "b", "b"], 3)
    assert {kind: each.value for kind, each in found.items()} == {"": 0.5, "a": 1.0, "b": 0.25}
    nothing = paired_accuracy(np.array([]), np.array([]), np.array([], dtype=int), [], 3)
    assert nothing[""].value is None


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(LEVELS))
def test_a_mix_is_the_first_part_and_the_last(one: str, other: str, share: int) -> None:
    text = mixed(one, other, share / 100)
    own = round(share / 100 * len(one))
    assert text[:own] == one[:own]
    assert other.endswith(text[own:])
    assert mixed(one, other, 1) == one


@settings(max_examples=40)
@given(st.sets(st.text("甲乙丙丁", min_size=1), min_size=3, max_size=9), st.randoms())
def test_partners_follow_from_the_texts_alone(texts: set[str], order: random.Random) -> None:
    rows = [(text, f"题{text}") for text in sorted(texts)]
    named = {f"n{place}": row for place, row in enumerate(rows)}
    order.shuffle(rows)
    other = {f"m{place}": row for place, row in enumerate(rows)}
    for one, two in zip(partners(named), partners(other), strict=True):
        assert {named[key]: named[value] for key, value in one.items()} == {
            other[key]: other[value] for key, value in two.items()
        }
        assert all(key != value for key, value in one.items())
        assert sorted(one.values()) == sorted(named)


# The published figures

needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")


def figures(items: Series, destinations: list[str] | None = None) -> list[float]:
    """Return pooled, within, strict of shared characters, to three digits, and how many pairs have no rho."""
    scores = by(overlap)(items.sources, destinations or items.destinations)
    found = gradient_figures(scores, items.levels, items.group, 1, 1)
    values = (found.pooled.value, found.within.value, found.strict.value)
    return [*(round(value or 0, 3) for value in values), found.undefined]


@pytest.mark.slow
@needs_data
def test_the_published_figures_of_overlap_on_chinese_mixes() -> None:
    pairs = chinese(SHARED)
    assert len(pairs) == 4_890
    items = series(pairs[:2_000])
    assert figures(items) == [0.583, 0.697, 0.297, 6]
    assert figures(items.first(400))[:2] == [0.573, 0.692]
    pooled_, within, *_ = figures(items, items.foreign)
    assert abs(pooled_) < 0.0025
    assert abs(within) < 0.0105
    variants = {"zero": figures(series(pairs[:2_000], zero="source")), "x": figures(series(pairs[:2_000], x="end"))}
    assert variants["zero"][:2] == [0.591, 0.699]
    assert variants["x"][:2] == [0.520, 0.669]


@pytest.mark.slow
@needs_data
def test_the_published_figures_of_overlap_on_english_mixes() -> None:
    pairs = english(SHARED)
    assert len(pairs) == 2_204
    assert figures(series(pairs[:2_000]))[:2] == [0.261, 0.374]


@pytest.mark.slow
@needs_data
def test_the_published_figures_of_overlap_on_edits() -> None:
    items = edited(SHARED)
    assert Counter(kind for kind, *_ in items) == {"swap": 120, "negation": 120, "dose": 57, "laterality": 3}
    scores = np.array([overlap(title, text) for _, title, *both in items for text in both]).round(12)
    levels, group = np.array([1.0, 0.0] * len(items)), np.repeat(np.arange(len(items)), 2)
    found = paired_accuracy(scores, levels, group, [kind for kind, *_ in items], 1, 1)
    assert {kind: round(each.value or 0, 3) for kind, each in found.items() if kind != "laterality"} == {
        "": 0.803,
        "negation": 0.692,
        "dose": 0.746,
        "swap": 0.954,
    }


@needs_data
def test_the_published_figures_of_grades_as_levels() -> None:
    queries, answers, levels, group = panel(SHARED)
    found = gradient_figures(by(overlap)(answers, queries), levels, group, 1, 1)
    assert len(levels) == 600
    assert (round(found.pooled.value or 0, 3), round(found.within.value or 0, 3)) == (0.378, 0.268)
    assert round(pooled(-np.array([float(len(text)) for text in answers]), levels) or 0, 2) == -0.04
