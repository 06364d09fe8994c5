"""Figures of gradients against scipy and plain loops; and the published recipe on shared data, to the printed digit."""

import json
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from curate.core.scale import FIVE
from curate.formats.kinds.mixing import LEVELS, level, mixed, partners, successors
from curate.stages.gradient.grades import grade_level
from curate.stats.gradients import ceiling, gradient_figures, paired_accuracy, pooled
from curate.stats.shortcuts import overlap
from tests import ROOT

SHARED = ROOT.parent / "shared" / "data"
GROUPS = st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=2, max_size=8)


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
    rising = [all(one < other for one, other in zip(each, each[1:], strict=False)) for each in groups]
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


# The published recipe


def recipe(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[str], list[str]]:
    """Return sources, destinations and foreign destinations of all levels, pair by pair."""
    named = {str(place): pair for place, pair in enumerate(pairs)}
    z, y = ({}, {})
    for seed, found in ((14, z), (15, y)):
        order = list(range(len(pairs)))
        random.Random(seed).shuffle(order)
        found.update(successors([str(each) for each in order]))
    items = [level(name, share, named, z, y)[:2] for name in named for share in LEVELS]
    strange = [named[y[name]][1] for name in named for _ in LEVELS]
    return [one for one, _ in items], [other for _, other in items], strange


def chinese() -> list[tuple[str, str]]:
    rows = [json.loads(line) for line in (SHARED / "zh_legacy/queries.jsonl").read_text(encoding="utf-8").splitlines()]
    seen: set[str] = set()
    found = []
    for row in sorted(rows, key=lambda each: each["_id"]):
        ask, title = row["text"].strip(), row["metadata"]["title"].strip()
        if len(ask) >= 20 and ask != title and not {ask, title} & seen:
            seen |= {ask, title}
            found.append((ask, title))
    random.Random(13).shuffle(found)
    return found


def english() -> list[tuple[str, str]]:
    folder = SHARED / "medquad_legacy_en"
    texts = {
        name: {row["_id"]: row["text"] for row in map(json.loads, (folder / name).read_text("utf-8").splitlines())}
        for name in ("queries.jsonl", "corpus.jsonl")
    }
    seen: set[str] = set()
    found = []
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, doc, _ = line.split("\t")
        words, question = texts["corpus.jsonl"][doc].split(), texts["queries.jsonl"][query]
        answer = " ".join(words[:60])
        if len(words) >= 60 and not {question, answer} & seen:
            seen |= {question, answer}
            found.append((answer, question))
    random.Random(13).shuffle(found)
    return found


def figures(sources: Sequence[str], destinations: Sequence[str]) -> tuple[float | None, ...]:
    scores = np.array([overlap(*pair) for pair in zip(sources, destinations, strict=True)])
    group = np.repeat(np.arange(len(scores) // 5), 5)
    found = gradient_figures(scores, np.array([float(each) for each in LEVELS] * (len(scores) // 5)), group, 1, 1)
    return found.pooled.value, found.within.value, found.strict.value, found.undefined


needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")


@needs_data
def test_the_published_figures_of_overlap_on_chinese_mixes() -> None:
    pairs = chinese()
    assert len(pairs) == 4_890
    sources, destinations, strange = recipe(pairs[:2_000])
    rho, within, strict, undefined = figures(sources, destinations)
    assert (round(rho or 0, 3), round(within or 0, 3), strict, undefined) == (0.583, 0.697, 0.2975, 6)
    first = figures(sources[:2_000], destinations[:2_000])  # of the first 400 pairs
    assert [round(each or 0, 3) for each in first[:3]] == [0.573, 0.692, 0.292]
    rho, within, *_ = figures(sources, strange)
    assert abs(rho or 1) < 0.0035
    assert abs(within or 1) < 0.015


@needs_data
def test_the_published_figures_of_overlap_on_english_mixes() -> None:
    pairs = english()
    assert len(pairs) == 2_204
    sources, destinations, _ = recipe(pairs[:2_000])
    assert [round(each or 0, 3) for each in figures(sources, destinations)[:2]] == [0.261, 0.374]


@needs_data
def test_the_published_figures_of_grades_as_levels() -> None:
    folder = SHARED / "panel"
    texts = {
        row["_id"]: row["text"]
        for name in ("queries.jsonl", "corpus.jsonl")
        for row in map(json.loads, (folder / name).read_text(encoding="utf-8").splitlines())
    }
    votes: dict[tuple[str, str], list[dict[str, str]]] = {}
    for line in (folder / "ratings.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, doc, judge, grade, _ = line.split("\t")
        votes.setdefault((query, doc), []).append({"judge": judge, "grade": grade})
    levels = np.array([grade_level(each, FIVE) for each in votes.values()])
    scores = np.array([overlap(texts[doc], texts[query]) for query, doc in votes])
    places = {query: place for place, query in enumerate(dict.fromkeys(query for query, _ in votes))}
    found = gradient_figures(scores, levels, np.array([places[query] for query, _ in votes]), 1, 1)
    assert len(levels) == 600
    assert (round(found.pooled.value or 0, 3), round(found.within.value or 0, 3)) == (0.378, 0.268)
    lengths = np.array([float(len(texts[doc])) for _, doc in votes])
    assert round(pooled(lengths, levels) or 0, 2) == -0.04
